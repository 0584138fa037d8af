"""Markdown made plain: notes quote what was said, not how it was set."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_RULE_ROW = re.compile(r"^\s*\|?[\s:|-]*-{3,}[\s:|-]*$")
_LINE_START = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+•]\s+(?:\[[ xX]\]\s+)?|\d{1,2}[.)]\s+)+")
# Of whole words only: "x**2" and "a * b" are no emphasis.
_EMPHASIS = re.compile(
    r"(?<![\w*])(?P<mark>\*{1,3})(?=[^\s*])(?P<text>[^*\n]{1,400})(?<=\S)(?P=mark)(?![\w*])"
)
_LINK = re.compile(r"!?\[([^\]\n]{1,200})\]\((?:https?://|/|#)[^)\s]{0,500}\)")
_MARKS = re.compile(r"[*_#>|`~\[]|^\s*[-+•\d]", re.MULTILINE)


def plain(text: str) -> str:
    """Return text without marks: list items and rows are lines, a block of code its first line."""
    return "\n".join(_lines(text)) if _MARKS.search(text) else text


def _lines(text: str) -> Iterator[str]:
    code: list[str] | None = None
    previous = ""
    for line in text.split("\n"):
        if _FENCE.match(line):
            if code is not None:
                yield _code(code)
            code = [] if code is None else None
        elif code is not None:
            code.append(line)
        elif _RULE_ROW.match(line):
            # What stands above the rule of a table names columns.
            previous = "" if "|" in line else previous
        else:
            if previous:
                yield previous
            previous = _line(line)
    if previous:
        yield previous
    if code is not None:
        yield _code(code)


def _line(line: str) -> str:
    if line.lstrip().startswith("|"):
        line = ", ".join(filter(None, (cell.strip() for cell in line.split("|"))))
    line = _LINE_START.sub("", line)
    line = _LINK.sub(r"\1", line)
    return _EMPHASIS.sub(r"\g<text>", line)


def _code(lines: list[str]) -> str:
    lines = [" ".join(line.split()) for line in lines if line.strip()]
    if not lines:
        return ""
    more = f" (+{len(lines) - 1} lines of code)" if len(lines) > 1 else ""
    return f"`{lines[0][:160]}`{more}"
