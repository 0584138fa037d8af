"""Which earlier groups a rewritten log came from, line by line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .log import is_heading, parse_lines

#: Smaller pieces of a reflection are joined: each piece is a block of the actor's context.
MIN_PIECE_CHARS = 1_200


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a rewritten log and the numbers of the sources it came from, in order."""

    text: str
    sources: tuple[int, ...]


def split_by_source(text: str, sources: Sequence[str]) -> list[Piece]:
    """Split a rewritten log into pieces and tell for each which sources it came from.

    ``sources`` are the texts that were rewritten, oldest first. A line belongs to the sources that
    hold it word for word; else to those with a line of the same day and time; else to those with
    its day. A piece begins at a ``Date:`` heading; a piece of which nothing is known came from all.
    """
    finders = _finders(sources)
    pieces: list[Piece] = []
    for section in _sections(text):
        found: set[int] = set()
        for line in parse_lines(section):
            for finder, key in zip(
                finders, (line.text, (line.day, line.time), line.day), strict=True
            ):
                if matches := finder(key):
                    found.update(matches)
                    break
        pieces.append(Piece(section, tuple(sorted(found)) or tuple(range(len(sources)))))
    return pieces


def _finders(sources: Sequence[str]) -> tuple[Callable[[object], set[int]], ...]:
    by_text: dict[object, set[int]] = defaultdict(set)
    by_time: dict[object, set[int]] = defaultdict(set)
    by_day: dict[object, set[int]] = defaultdict(set)
    for number, source in enumerate(sources):
        for line in parse_lines(source):
            by_text[line.text].add(number)
            if line.day is not None:
                by_day[line.day].add(number)
                if line.time:
                    by_time[line.day, line.time].add(number)

    def finder(index: dict[object, set[int]]) -> Callable[[object], set[int]]:
        return lambda key: index.get(key, set())

    return finder(by_text), finder(by_time), finder(by_day)


def _sections(text: str) -> list[str]:
    """Cut at date headings, joining sections until each is worth a block of its own."""
    sections: list[list[str]] = [[]]
    size = 0
    for line in text.splitlines():
        if is_heading(line) is not None and size >= MIN_PIECE_CHARS:
            sections.append([])
            size = 0
        sections[-1].append(line)
        size += len(line) + 1
    joined = ("\n".join(lines).strip() for lines in sections)
    return [section for section in joined if section]
