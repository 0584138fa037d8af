"""Days as the log writes them, independent of any locale."""

from __future__ import annotations

import re
from datetime import date

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_MONTH_NUMBER = {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)}
_MONTH = "(?:" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + r")\.?"
_PATTERNS = (
    # Dec 4, 2025 / December 4th 2025 / Dec 4-6, 2025 (the first day)
    re.compile(
        rf"(?P<month>{_MONTH})\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
        r"(?:\s*[-–]\s*\d{1,2})?,?\s+(?P<year>\d{4})",
        re.IGNORECASE,
    ),
    # 4 December 2025
    re.compile(
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?P<month>{_MONTH}),?\s+(?P<year>\d{{4}})",
        re.IGNORECASE,
    ),
    # 2025-12-04
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"),
    # 2025年12月4日
    re.compile(r"(?P<year>\d{4})\s*年\s*(?P<month>\d{1,2})\s*月\s*(?P<day>\d{1,2})\s*日"),
    # early May 2023, May 2023
    re.compile(
        rf"(?:(?P<part>early|mid|late)[\s-]+)?(?P<month>{_MONTH})\s+(?P<year>\d{{4}})",
        re.IGNORECASE,
    ),
)
_DAY_OF_PART = {"early": 7, "mid": 15, "late": 23}


def format_day(day: date) -> str:
    """Return a day as headings and end dates write it: ``Dec 4, 2025``."""
    return f"{MONTHS[day.month - 1][:3]} {day.day}, {day.year}"


def parse_day(text: str) -> date | None:
    """Return the first date named in ``text``, or ``None``.

    Understands ``Dec 4, 2025`` with full or short month, ``4 December 2025``, ranges (their first
    day), ``2025-12-04``, ``2025年12月4日``, and months: early, mid and late are the 7th, 15th and
    23rd, a month alone is its 1st.
    """
    found: tuple[int, date] | None = None
    for pattern in _PATTERNS:
        match = pattern.search(text)
        if match is None or (found is not None and match.start() >= found[0]):
            continue
        day = _to_date(match.groupdict())
        if day is not None:
            found = (match.start(), day)
    return found[1] if found else None


def _to_date(groups: dict[str, str | None]) -> date | None:
    month_text = groups["month"] or ""
    month = int(month_text) if month_text.isdigit() else _MONTH_NUMBER[month_text[:3].lower()]
    if groups.get("day"):
        day = int(groups["day"] or 1)
    else:
        day = _DAY_OF_PART.get((groups.get("part") or "").lower(), 1)
    try:
        return date(int(groups["year"] or 0), month, day)
    except ValueError:
        return None


def relative_day(day: date, today: date) -> str:
    """Return how far ``day`` is from ``today`` in words, as the reference words it."""
    days = (today - day).days
    if days == 0:
        return "today"
    if days == 1:
        return "yesterday"
    if days == -1:
        return "tomorrow"
    span = _span(abs(days))
    return f"{span} ago" if days > 0 else f"in {span}"


def _span(days: int) -> str:
    for limit, unit, size in ((7, "day", 1), (30, "week", 7), (365, "month", 30)):
        if days < limit:
            number = max(1, days // size)
            return f"{number} {unit}{'s' if number > 1 else ''}"
    years = days // 365
    return f"{years} year{'s' if years > 1 else ''}"
