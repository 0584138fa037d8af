from __future__ import annotations

from datetime import date, timedelta

import pytest

from om_django.core.dates import format_day, parse_day, relative_day


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Dec 4, 2025", date(2025, 12, 4)),
        ("December 4th, 2025", date(2025, 12, 4)),
        ("4 December 2025", date(2025, 12, 4)),
        ("May 30-31, 2023", date(2023, 5, 30)),
        ("2023-05-01", date(2023, 5, 1)),
        ("2025年12月4日", date(2025, 12, 4)),
        ("late May 2023", date(2023, 5, 23)),
        ("early-May 2023", date(2023, 5, 7)),
        ("mid May 2023", date(2023, 5, 15)),
        ("May 2023", date(2023, 5, 1)),
        ("from 2023-05-01 to May 9, 2023", date(2023, 5, 1)),
        ("Feb 30, 2025", None),
        ("soon", None),
        ("", None),
        ("maybe 2025", None),
    ],
)
def test_days_are_read(text: str, day: date | None) -> None:
    assert parse_day(text) == day


@pytest.mark.parametrize("ordinal", range(738000, 738800, 37))
def test_what_is_written_is_read(ordinal: int) -> None:
    day = date.fromordinal(ordinal)
    assert parse_day(format_day(day)) == day


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (0, "today"),
        (1, "yesterday"),
        (6, "6 days ago"),
        (7, "1 week ago"),
        (14, "2 weeks ago"),
        (30, "1 month ago"),
        (60, "2 months ago"),
        (364, "12 months ago"),
        (365, "1 year ago"),
        (800, "2 years ago"),
        (-1, "tomorrow"),
        (-3, "in 3 days"),
        (-10, "in 1 week"),
    ],
)
def test_distance_in_words(ago: int, words: str) -> None:
    today = date(2026, 1, 5)
    assert relative_day(today - timedelta(days=ago), today) == words
