"""The observation log: lines with marks and dates, grouped by the messages they came from.

A line of the log reads ``* 🔴 (14:30) text (meaning Dec 6, 2025)``. Three dates meet in it: the
``Date:`` heading above is the day it was observed, the time in front is when the statement was
made, and the date at the end, where there is one, is the day that is spoken of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from .dates import parse_day

HIGH, MEDIUM, LOW, DONE = "🔴", "🟡", "🟢", "✅"
MARKS = (HIGH, MEDIUM, LOW, DONE)
MAX_LINE_CHARS = 10_000
CUT_MARK = " … [truncated]"

# The tags with a meaning in prompts and in the context. Content may not carry them unescaped.
STRUCTURAL_TAGS = (
    "observations",
    "observation",
    "observation-group",
    "previous-observations",
    "conversation",
    "other-conversation",
    "prior-values",
    "thread",
    "current-task",
    "suggested-response",
    "thread-title",
    "extracted-values",
    "system-reminder",
    "guidance",
)
_TAG = re.compile(
    r"<(?=\s{0,8}/?\s{0,8}(?:" + "|".join(STRUCTURAL_TAGS) + r")(?![\w-]))", re.IGNORECASE
)
_HEADING = re.compile(r"^\s*(?:\*\*)?Date:\s*(?P<day>[^*\n]{4,60}?)(?:\*\*)?\s*$", re.IGNORECASE)
_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<bullet>[*\-•]|\d{1,3}[.)])[ \t]+(?:->[ \t]*)?"
    rf"(?P<mark>[{''.join(MARKS)}])?\ufe0f?[ \t]*"
    r"(?:\((?P<time>\d{1,2}:\d{2})(?::\d{2})?\))?[ \t]*(?P<text>.*)$"
)
_END_DATE = re.compile(r"\((?:meaning|estimated)\s+(?P<day>[^()]{3,60})\)\s*\.?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log. ``day`` is that of the heading above; ``depth`` 0 is a top-level line."""

    raw: str
    day: date | None
    time: str
    mark: str
    text: str
    depth: int

    @property
    def meant(self) -> date | None:
        """The date at the end of the line: the day that is spoken of."""
        match = _END_DATE.search(self.text)
        return parse_day(match["day"]) if match else None

    @property
    def important(self) -> bool:
        return self.mark in (HIGH, DONE)


def escape_tags(text: str) -> str:
    """Return ``text`` with our own tags made harmless: their ``<`` becomes ``&lt;``."""
    return _TAG.sub("&lt;", text) if "<" in text else text


def is_heading(line: str) -> date | None:
    """Return the day of a ``Date:`` heading, or ``None``."""
    match = _HEADING.match(line)
    return parse_day(match["day"]) if match else None


def parse_lines(text: str) -> list[Line]:
    """Return the lines of a log, headings and blank lines left out."""
    lines: list[Line] = []
    day: date | None = None
    for raw in text.splitlines():
        if not raw.strip():
            continue
        heading = is_heading(raw)
        if heading is not None:
            day = heading
            continue
        match = _LINE.match(raw)
        if match is None:
            lines.append(Line(raw, day, "", "", raw.strip(), 0))
            continue
        indent = len(match["indent"].expandtabs(2))
        time = match["time"] or ""
        lines.append(
            Line(
                raw,
                day,
                time.zfill(5) if time else "",
                match["mark"] or "",
                match["text"].strip(),
                indent // 2,
            )
        )
    return lines


def cap_lines(text: str) -> str:
    """Cut lines of more than 10,000 characters, with a visible mark. Source: reference."""
    if len(text) <= MAX_LINE_CHARS:
        return text
    return "\n".join(
        line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + CUT_MARK
        for line in text.split("\n")
    )


def join_texts(texts: Iterable[str]) -> str:
    """Return group texts as one log."""
    return "\n\n".join(text for text in texts if text.strip())


def truncate(text: str, budget: int | None, count: Callable[[str], int]) -> tuple[str, bool]:
    """Fit a log into ``budget`` tokens and tell whether anything was left out.

    The newest lines stay, and with up to half of the budget the newest older lines marked 🔴 or ✅;
    gaps are noted, and the ``Date:`` heading of every kept line stays. ``None`` keeps all, 0
    nothing. Source: reference, ``previousObserverTokens``.
    """
    if budget is None or (budget > 0 and count(text) <= budget):
        return text, False
    if budget <= 0:
        return "", bool(text.strip())
    rows = _rows(text)
    costs = [count(row.raw) + 1 for row in rows]
    heading_costs = [count(row.heading) + 1 for row in rows]
    important = _newest_important(rows, costs, heading_costs, budget // 2)
    # The note of a gap costs about eight tokens; sizes add up only roughly, so check and give way.
    room = budget - 8
    while room > 0:
        kept = _fill(rows, costs, heading_costs, important, room)
        out = _render(rows, kept)
        if count(out) <= budget:
            return out, True
        room -= max(4, (count(out) - budget))
    return "", True


@dataclass(frozen=True, slots=True)
class _Row:
    raw: str
    heading: str
    important: bool


def _rows(text: str) -> list[_Row]:
    rows: list[_Row] = []
    heading = ""
    for raw in text.splitlines():
        if not raw.strip():
            continue
        if is_heading(raw) is not None:
            heading = raw.strip()
            continue
        match = _LINE.match(raw)
        rows.append(_Row(raw, heading, bool(match and match["mark"] in (HIGH, DONE))))
    return rows


def _newest_important(
    rows: Sequence[_Row], costs: Sequence[int], heading_costs: Sequence[int], budget: int
) -> set[int]:
    chosen: set[int] = set()
    headings: set[str] = set()
    for index in range(len(rows) - 1, -1, -1):
        if not rows[index].important:
            continue
        cost = costs[index] + (0 if rows[index].heading in headings else heading_costs[index])
        if cost > budget:
            continue
        budget -= cost
        chosen.add(index)
        headings.add(rows[index].heading)
    return chosen


def _fill(
    rows: Sequence[_Row],
    costs: Sequence[int],
    heading_costs: Sequence[int],
    important: set[int],
    room: int,
) -> set[int]:
    """Take important rows newest first up to half of the room, then the tail with what is left."""
    kept: set[int] = set()
    headings: set[str] = set()

    def take(index: int, limit: int) -> int:
        cost = costs[index] + (0 if rows[index].heading in headings else heading_costs[index])
        if index in kept or cost > limit:
            return 0 if index in kept else -1
        kept.add(index)
        headings.add(rows[index].heading)
        return cost

    for index in sorted(important, reverse=True):
        spent = take(index, room)
        room -= max(0, spent)
    for index in range(len(rows) - 1, -1, -1):
        spent = take(index, room)
        if spent < 0:
            break
        room -= spent
    return kept


def _render(rows: Sequence[_Row], kept: set[int]) -> str:
    out: list[str] = []
    heading = ""
    hidden = 0
    for index, row in enumerate(rows):
        if index not in kept:
            hidden += 1
            continue
        if hidden:
            out.append(f"[{hidden} earlier {'line' if hidden == 1 else 'lines'} not shown]")
            hidden = 0
        if row.heading and row.heading != heading:
            out.append(row.heading)
            heading = row.heading
        out.append(row.raw)
    if hidden:
        out.append(f"[{hidden} {'line' if hidden == 1 else 'lines'} not shown]")
    return "\n".join(out)
