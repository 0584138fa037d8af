"""Relative days."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from om_django.core.temporal import add_months, resolve

WEDNESDAY = datetime(2025, 12, 3, 14, 30, tzinfo=UTC)
MEANING, ESTIMATED = "meaning", "estimated"


@pytest.mark.parametrize(
    ("text", "day", "how"),
    [
        ("I moved yesterday", date(2025, 12, 2), MEANING),
        ("we talked last night", date(2025, 12, 2), MEANING),
        ("the day before yesterday", date(2025, 12, 1), MEANING),
        ("see you tomorrow morning", date(2025, 12, 4), MEANING),
        ("the day after tomorrow", date(2025, 12, 5), MEANING),
        ("it arrived last Tuesday", date(2025, 12, 2), MEANING),
        ("last Wednesday", date(2025, 11, 26), MEANING),
        ("last Fri I ran", date(2025, 11, 28), MEANING),
        ("this Friday", date(2025, 12, 5), MEANING),
        ("we fly on Friday", date(2025, 12, 5), MEANING),
        ("I met him on Friday", date(2025, 11, 28), MEANING),
        ("next Friday", date(2025, 12, 12), ESTIMATED),
        ("three days ago", date(2025, 11, 30), MEANING),
        ("in three days", date(2025, 12, 6), MEANING),
        ("10 days from now", date(2025, 12, 13), MEANING),
        ("two weeks ago", date(2025, 11, 19), ESTIMATED),
        ("a couple of weeks ago", date(2025, 11, 19), ESTIMATED),
        ("in two weeks", date(2025, 12, 17), ESTIMATED),
        ("last week", date(2025, 11, 26), ESTIMATED),
        ("next week", date(2025, 12, 10), ESTIMATED),
        ("this weekend", date(2025, 12, 6), ESTIMATED),
        ("last weekend", date(2025, 11, 29), ESTIMATED),
        ("next month", date(2026, 1, 15), ESTIMATED),
        ("last month", date(2025, 11, 15), ESTIMATED),
        ("3 months ago", date(2025, 9, 3), ESTIMATED),
        ("last year", date(2024, 7, 1), ESTIMATED),
        ("next year", date(2026, 7, 1), ESTIMATED),
        ("five years ago", date(2020, 12, 3), ESTIMATED),
        ("since last summer", date(2025, 7, 15), ESTIMATED),
        ("by the end of the month", date(2025, 12, 31), MEANING),
        ("by the end of next month", date(2026, 1, 31), MEANING),
        ("by the 14th", date(2025, 12, 14), MEANING),
        ("the launch is on March 5", date(2026, 3, 5), MEANING),
        ("on 20 November", date(2025, 11, 20), MEANING),
        ("on May 8, 2023", date(2023, 5, 8), MEANING),
        ("due 2026-01-31", date(2026, 1, 31), MEANING),
        ("early May 2023", date(2023, 5, 7), ESTIMATED),
        ("in February", date(2026, 2, 15), ESTIMATED),
        ("last year, and again yesterday", date(2025, 12, 2), MEANING),
        ("signed on Thursday 2 April at 11:20", date(2026, 4, 2), MEANING),
        ("she promised it by Monday", date(2025, 12, 8), MEANING),
        ("on Friday we had a blast", date(2025, 11, 28), MEANING),
        ("from 5 January to 9 January", date(2026, 1, 5), MEANING),
        ("needs 23–29 November off", date(2025, 11, 23), MEANING),
        ("Wednesday the 17th at 15:00", date(2025, 12, 17), MEANING),
        ("he fed it once in August", date(2025, 8, 15), ESTIMATED),
        ("no help until June", date(2026, 6, 15), ESTIMATED),
        ("mine since November", date(2025, 11, 15), ESTIMATED),
        ("昨天我搬家了", date(2025, 12, 2), MEANING),
        ("明天开会", date(2025, 12, 4), MEANING),
        ("上周五", date(2025, 11, 28), MEANING),
        ("上周", date(2025, 11, 26), ESTIMATED),
        ("下个月去东京", date(2026, 1, 15), ESTIMATED),
        ("三天前", date(2025, 11, 30), MEANING),
        ("去年", date(2024, 7, 1), ESTIMATED),
        ("ich bin gestern umgezogen", date(2025, 12, 2), MEANING),
        ("mudei ontem", date(2025, 12, 2), MEANING),
        ("wczoraj", date(2025, 12, 2), MEANING),
    ],
)
def test_a_named_day_resolves(text: str, day: date, how: str) -> None:
    assert resolve(text, WEDNESDAY) == (day, how)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "recently",
        "soon",
        "some day",
        "a few days ago",
        "a while ago",
        "today",
        "this week",
        "may I ask something",
        "they march on",
        "guten Morgen",
        "esta mañana",
        "on February 30",
        "500 years ago",
        "at 10:30 in the office",
        "in 3 minutes",
        "12 may be too many",
        "order by 16 July, delivery 23 July",
        "cold in February and warm in July",
        "she reveals it in June",
    ],
)
def test_vague_words_and_the_present_do_not(text: str) -> None:
    assert resolve(text, WEDNESDAY) is None


def test_the_day_is_counted_in_the_speakers_zone() -> None:
    said = datetime(2026, 2, 4, 5, 30, tzinfo=UTC).astimezone(ZoneInfo("America/Chicago"))
    assert resolve("I moved yesterday", said) == (date(2026, 2, 2), MEANING)


@pytest.mark.parametrize(
    "when", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
)
def test_the_ends_of_the_calendar(when: datetime) -> None:
    for text in ("yesterday", "tomorrow", "last year", "next year", "80 years ago", "on Friday"):
        resolve(text, when)


def test_add_months_keeps_inside_the_month() -> None:
    assert add_months(date(2024, 1, 31), 1) == date(2024, 2, 29)
    assert add_months(date(2024, 1, 31), -11) == date(2023, 2, 28)


@given(st.text(max_size=300), st.datetimes())
def test_any_text_is_fine(text: str, when: datetime) -> None:
    assert resolve(text, when) == resolve(text, when)


def test_hostile_text_is_linear() -> None:
    began = time.perf_counter()
    for text in ("last " * 200_000, "1" * 1_000_000, " " * 1_000_000, "may " * 250_000):
        resolve(text, WEDNESDAY)
    assert time.perf_counter() - began < 1
