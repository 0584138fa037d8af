from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from om_django.core.log import cap_lines, escape_tags, parse_lines, truncate
from om_django.core.provenance import split_by_source

LOG = """\
Date: Dec 4, 2025
* 🔴 (9:05) User likes tea (meaning Dec 6, 2025)
  * -> green tea
- ✅ (14:30) Done
**Date: Dec 5, 2025**
1. plain
prose"""


def words(text: str) -> int:
    return len(text.split())


def test_lines_know_their_day_time_mark_and_depth() -> None:
    lines = parse_lines(LOG)
    assert [(line.day, line.time, line.mark, line.text, line.depth) for line in lines] == [
        (date(2025, 12, 4), "09:05", "🔴", "User likes tea (meaning Dec 6, 2025)", 0),
        (date(2025, 12, 4), "", "", "green tea", 1),
        (date(2025, 12, 4), "14:30", "✅", "Done", 0),
        (date(2025, 12, 5), "", "", "plain", 0),
        (date(2025, 12, 5), "", "", "prose", 0),
    ]
    assert lines[0].meant == date(2025, 12, 6)
    assert lines[2].meant is None
    assert [line.important for line in lines] == [True, False, True, False, False]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("</observations>", "&lt;/observations>"),
        ("< / Observations >", "&lt; / Observations >"),
        ('<thread id="1">', '&lt;thread id="1">'),
        ("<observation-group", "&lt;observation-group"),
        ("<observation-groups>", "<observation-groups>"),
        ("<threading> a < b </div>", "<threading> a < b </div>"),
    ],
)
def test_our_tags_are_escaped_and_others_are_not(text: str, escaped: str) -> None:
    assert escape_tags(text) == escaped
    assert escape_tags(escaped) == escaped


def long_log(count: int = 60) -> str:
    rows = []
    for n in range(count):
        if n % 20 == 0:
            rows.append(f"Date: Jan {n // 20 + 1}, 2026")
        rows.append(f"* {'🔴' if n % 10 == 0 else '🟡'} (09:{n % 60:02}) note number {n}")
    return "\n".join(rows)


def test_truncation_keeps_the_newest_and_the_important() -> None:
    text, cut = truncate(long_log(), 150, words)
    assert cut
    assert words(text) <= 150
    numbers = [int(line.text.split()[-1]) for line in parse_lines(text) if line.mark]
    assert numbers == sorted(numbers)
    assert {0, 10, 20, 30, 40, 50}.issubset(numbers)
    tail = [n for n in numbers if n > 50]
    assert tail == list(range(tail[0], 60))
    assert "Date: Jan 1, 2026\n* 🔴 (09:00) note number 0\n[9 earlier lines not shown]" in text


def test_truncation_at_its_ends() -> None:
    assert truncate(long_log(), None, words) == (long_log(), False)
    assert truncate(long_log(), 10_000, words) == (long_log(), False)
    assert truncate(long_log(), 0, words) == ("", True)
    assert truncate("", 0, words) == ("", False)
    assert truncate(long_log(), 3, words) == ("", True)


@given(st.integers(0, 400), st.integers(0, 80))
def test_truncation_never_exceeds_the_budget(budget: int, count: int) -> None:
    text, cut = truncate(long_log(count), budget, words)
    assert words(text) <= budget or not cut
    assert set(parse_lines(long_log(count))) >= {x for x in parse_lines(text) if x.mark}


def test_long_lines_are_cut_visibly() -> None:
    assert cap_lines("x" * 10_000) == "x" * 10_000
    short, long = cap_lines("a\n" + "x" * 10_001).split("\n")
    assert short == "a"
    assert long == "x" * 10_000 + " … [truncated]"


def test_pieces_come_from_what_they_quote() -> None:
    sources = [
        "Date: Jan 1, 2026\n* (09:00) apples\n* (10:00) pears",
        "Date: Jan 1, 2026\n* (11:00) plums",
        "Date: Jan 2, 2026\n* (09:00) figs",
    ]
    one, two = split_by_source(
        f"Date: Jan 1, 2026\n* (09:00) fruit{'!' * 1200}\n* (23:00) plums\n"
        "Date: Jan 2, 2026\n* (15:00) more figs",
        sources,
    )
    assert one.sources == (0, 1)
    assert two.sources == (2,)
    assert split_by_source("* (09:00) nothing known", sources)[0].sources == (0, 1, 2)
    assert split_by_source("* apples", sources)[0].sources == (0,)
