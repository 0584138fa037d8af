"""The Reflector by rules: it drops repeats, joins what is old and keeps what is specific."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

from ..answers import NOTHING
from ..dates import format_day
from ..log import DONE, HIGH, LOW, MEDIUM, Line, escape_tags, parse_lines
from ..reflector import ReflectorInput
from . import sections, sentences
from . import words as w
from .novelty import Known
from .score import Judge

#: The share of the target to fill, by level: room is left, or the next reflection comes at once.
AIM = (0.7, 0.68, 0.5, 0.38, 0.25)
#: The share of lines, counted from the oldest, that may be joined by day.
OLD_SHARE = (0.5, 0.7, 0.85, 1.0, 1.0)
ATOM_CHARS = (600, 400, 240, 160, 120)
GROUP_CHARS = 420
FRAME_TOKENS = 9
DATE_TOKENS = 9
HEADING_TOKENS = 9
_BONUS = {HIGH: 1.3, DONE: 1.3, MEDIUM: 0.2, LOW: -0.8, "": 0.0}
_SPEAKER = re.compile(r"^(?P<speaker>User asked|User|Assistant): ")
_MEANT = re.compile(r"\s*(?P<meant>\((?:meaning|estimated) [^()]{3,60}\))\s*\.?\s*$", re.IGNORECASE)
_STAMP = re.compile(r"\((?P<time>\d\d:\d\d)\) ")
_THREAD_TAG = re.compile(r"^(?:<|&lt;)\s?/?\s?thread\b", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[*\-•]|\d{1,3}[.)])\s")


@dataclass(slots=True)
class Atom:
    """One statement of a line: what is kept or dropped as a whole."""

    order: int
    group: int
    text: str
    score: float
    tokens: float
    time: str = ""


@dataclass(slots=True)
class Group:
    """What becomes one line: a line of the log, or several old ones of one day and kind.

    The time of the first statement stands in front, a later one before the statement it belongs to.
    """

    day: date | None
    mark: str
    speaker: str
    meant: str
    raw: str = ""
    parent: int | None = None
    chars: int = 0
    frame: float = FRAME_TOKENS
    kept: list[Atom] = field(default_factory=list)

    def line(self) -> str:
        if self.raw:
            return self.raw
        kept = sorted(self.kept, key=lambda a: a.order)
        time = kept[0].time
        head = f"{self.mark} ({time})" if time else self.mark
        parts: list[str] = []
        for atom in kept:
            parts.append(atom.text if atom.time == time else f"({atom.time}) {atom.text}")
            time = atom.time
        text = "; ".join(parts)
        text = f"{self.speaker}: {text}" if self.speaker else text
        return " ".join(filter(None, ("*", head, text, self.meant)))


def reflect(task: ReflectorInput, count: Callable[[str], int]) -> str:
    """Return the answer to a Reflector call."""
    body = condensed(task.log, task.target_tokens, task.level, count)
    return sections.answer(body, sections.of_log(task.sections, task.prior))


def condensed(log: str, target: int, level: int, count: Callable[[str], int]) -> str:
    """Return the log rewritten to strictly below ``target`` tokens, its order kept."""
    level = max(0, min(level, len(AIM) - 1))
    aim = max(1, int(target * AIM[level]))
    groups, atoms = _plan(log, level)
    if not groups:
        return NOTHING
    total = sum(a.tokens for a in atoms) + sum(g.frame for g in groups)
    budget = min(float(aim), total + HEADING_TOKENS * len(groups))
    text = ""
    for _ in range(8):
        candidate = _render(groups, _choose(groups, atoms, budget))
        size = count(candidate)
        if candidate and size <= aim:
            text = candidate if len(candidate) > len(text) else text
            if size >= 0.93 * aim or budget >= total + HEADING_TOKENS * len(groups):
                break
            budget *= min(1.5, 0.97 * aim / max(1, size))
        else:
            budget *= min(0.95, 0.97 * aim / max(1, size))
        if budget < FRAME_TOKENS:
            break
    return text or _least(groups, atoms, target, count)


def _plan(log: str, level: int) -> tuple[list[Group], list[Atom]]:
    lines = [line for line in parse_lines(log) if line.text and not _THREAD_TAG.match(line.text)]
    frequency: Counter[str] = Counter()
    for line in lines:
        frequency.update(set(w.content(w.words(line.text))))
    judge = Judge(frequency)
    known = Known()
    seen: set[str] = set()
    groups: list[Group] = []
    atoms: list[Atom] = []
    joined: dict[tuple[object, ...], int] = {}
    old = int(len(lines) * OLD_SHARE[level])
    parent: int | None = None
    for number, line in enumerate(lines):
        age = 1.0 - number / max(1, len(lines) - 1)
        below = line.depth > 0 or (line.raw[:1] in (" ", "\t") and not _BULLET.match(line.raw))
        if below and parent is not None:
            _child(line, parent, groups, atoms, judge, seen, level)
            continue
        speaker, text, meant = _taken_apart(line.text)
        mark = line.mark or MEDIUM
        parts: list[tuple[str, float, str]] = []
        time = line.time
        for part in _atoms_of(text, ATOM_CHARS[level]):
            if time and (stamp := _STAMP.match(part)):
                time, part = stamp["time"], part[stamp.end() :]
            tokens = w.words(part)
            stems = w.content(tokens)
            facts = [t for t in tokens if t[:1].isdigit()]
            # Without a telling word only an exact repeat is one.
            new = known.fresh(stems, facts) if stems else part not in seen
            if not new or part in seen:
                continue
            known.add(stems)
            seen.add(part)
            parts.append((part, _score(judge, part, speaker, mark, bool(meant), age), time))
        if not parts:
            continue
        day = line.day or (groups[-1].day if groups else None)
        key = (day, bool(time), speaker, mark, meant)
        index = joined.get(key, -1) if number < old and line.mark and speaker else -1
        size = sum(len(part) for part, _, _ in parts)
        if index < 0 or groups[index].chars + size > GROUP_CHARS:
            index = len(groups)
            groups.append(Group(day, mark, speaker, meant))
            groups[index].frame += DATE_TOKENS if meant else 0
            if number < old and speaker:
                joined[key] = index
        groups[index].chars += size
        parent = index
        atoms += [
            Atom(len(atoms) + i, index, part, score, _tokens(part), time)
            for i, (part, score, time) in enumerate(parts)
        ]
    return groups, atoms


def _child(
    line: Line,
    parent: int,
    groups: list[Group],
    atoms: list[Atom],
    judge: Judge,
    seen: set[str],
    level: int,
) -> None:
    """Take a sub-note or a further line of code: it needs the line above."""
    raw = sentences.clip(line.raw.rstrip(), ATOM_CHARS[level])
    # In the old days of a log the same detail is written again and again.
    if raw in seen:
        return
    seen.add(raw)
    score = 0.8 * _score(judge, line.text, "", line.mark or LOW, line.meant is not None, 0.5)
    index = len(groups)
    groups.append(Group(groups[parent].day, "", "", "", raw, parent, frame=2.0))
    atoms.append(Atom(len(atoms), index, raw, score, _tokens(raw)))


def _taken_apart(text: str) -> tuple[str, str, str]:
    """Return the speaker, the statement and the end date of a line."""
    match = _SPEAKER.match(text)
    speaker = match["speaker"] if match else ""
    body = text[match.end() :] if match else text
    # Searched in the tail alone: the pattern would be tried at every blank of a long line.
    end = _MEANT.search(body, max(0, len(body) - 100))
    return (speaker, body[: end.start()], end["meant"]) if end else (speaker, body, "")


def _atoms_of(text: str, limit: int) -> list[str]:
    parts = [part.strip() for part in text.split("; ")]
    return [sentences.clip(part, limit) for part in parts if part]


def _score(judge: Judge, text: str, speaker: str, mark: str, dated: bool, age: float) -> float:
    role = "assistant" if speaker == "Assistant" or text.startswith("Tool ") else "user"
    judged = judge.judge(text[: sentences.MAX_SENTENCE_CHARS], role=role, dated=dated)
    score = max(0.1, judged.score + _BONUS.get(mark, 0.0))
    decay = 0.1 if mark in (HIGH, DONE) else 0.3
    return score * (1.0 - decay * age)


def _tokens(text: str) -> float:
    if text.isascii():
        return len(text) / 4.3 + 1
    return len(text) / (1.7 if w.CJK.search(text) else 3.0) + 1


def _choose(groups: Sequence[Group], atoms: Sequence[Atom], budget: float) -> set[int]:
    """Take the statements with the most for their size; return the groups that have any."""
    for group in groups:
        group.kept = []
    open_groups: set[int] = set()
    days: set[date | None] = {None}
    ranked = sorted(atoms, key=lambda a: (-a.score / (a.tokens + 4) ** 0.35, a.order))
    spent = 0.0
    for atom in ranked:
        needed = {atom.group} - open_groups
        parent = groups[atom.group].parent
        if parent is not None and parent not in open_groups:
            continue
        price = atom.tokens + sum(groups[g].frame for g in needed)
        day = groups[atom.group].day
        price += 0 if day in days else HEADING_TOKENS
        if spent + price > budget:
            continue
        spent += price
        days.add(day)
        open_groups |= needed
        groups[atom.group].kept.append(atom)
    return open_groups


def _render(groups: Sequence[Group], chosen: set[int]) -> str:
    out: list[str] = []
    day: date | None = None
    written: set[str] = set()
    order = sorted(chosen, key=lambda i: (_anchor(groups, i), i))
    for index in order:
        group = groups[index]
        line = escape_tags(group.line())
        if line in written:
            continue
        written.add(line)
        if group.day is not None and group.day != day:
            day = group.day
            out.append(f"Date: {format_day(day)}")
        out.append(line)
    return "\n".join(out)


def _anchor(groups: Sequence[Group], index: int) -> int:
    parent = groups[index].parent
    return index if parent is None else parent


def _least(
    groups: Sequence[Group], atoms: Sequence[Atom], target: int, count: Callable[[str], int]
) -> str:
    """Return one line that fits below a target too small for a log."""
    tops = [a for a in atoms if groups[a.group].parent is None]
    best = max(tops or atoms, key=lambda a: a.score)
    group = groups[best.group]
    line = ""
    for limit in (200, 120, 80, 50, 30, 16):
        text = sentences.clip(best.text.strip(), limit)
        line = escape_tags(f"* {group.mark or MEDIUM} {text}")
        stamped = Group(group.day, group.mark or MEDIUM, group.speaker, group.meant)
        stamped.kept = [Atom(0, 0, text, 0.0, 0.0, best.time)]
        full = escape_tags(stamped.line())
        if group.day is not None:
            full = f"Date: {format_day(group.day)}\n{full}"
        for candidate in (full, line):
            if count(candidate) < target:
                return candidate
    return line
