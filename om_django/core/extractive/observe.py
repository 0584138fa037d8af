"""The Observer by rules: it quotes what seems to matter and dates it. It does not understand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime

from ..answers import NOTHING
from ..dates import format_day
from ..log import escape_tags, parse_lines
from ..messages import FilePart, ImagePart, Message, TextPart
from ..observer import ObserverInput
from ..temporal import Resolved, resolve
from ..transcript import attachment_name, is_image
from . import sections, sentences, tools
from . import words as w
from .novelty import Known
from .score import DATED, Judge, Judged, is_order, leans

#: One token of notes for so many tokens of conversation, by level.
COMPRESSION = (6.2, 9.0, 14.0)
#: However small the input is, a note or two must fit; a short exchange is denser than a long one.
LEAST_TOKENS = (75, 55, 40)
SHORT_BONUS = (240, 80, 0)
SHORT_TOKENS = 1_500
#: What is as strong as this may pass the budget, up to a fifth of the input at level 0.
STRONG = 5.6
STRONG_COMPRESSION = (5.7, 7.5, 14.0)
MAX_LINES = (400, 120, 40)
#: Lines of one pasted document.
MAX_LINES_A_MESSAGE = 12
JOINED_CHARS = 230
WORTH = 1.55
#: What the mark, time, speaker and line end cost.
FRAME_TOKENS = 12
DATE_TOKENS = 10
HEADING_TOKENS = 10


@dataclass(frozen=True, slots=True)
class Note:
    """A candidate line."""

    order: int
    message: int
    when: datetime | None
    speaker: str
    text: str
    judged: Judged
    meant: Resolved | None = None
    sentence: int = -1

    @property
    def day(self) -> date | None:
        return self.when.date() if self.when else None

    def line(self) -> str:
        stamp = f"({self.when:%H:%M}) " if self.when else ""
        meant = f" ({self.meant[1]} {format_day(self.meant[0])})" if self.meant else ""
        text = f"{self.speaker}: {self.text}" if self.speaker else self.text
        return escape_tags(f"* {self.judged.mark} {stamp}{text}{meant}")


def observe(task: ObserverInput, count: Callable[[str], int]) -> str:
    """Return the answer to an Observer call."""
    notes = candidates(task)
    size = _size(task.messages, count)
    level = min(task.level, len(COMPRESSION) - 1)
    bonus = SHORT_BONUS[level] * max(0.0, 1 - size / SHORT_TOKENS)
    budget = max(LEAST_TOKENS[level], min(0.6 * size, size / COMPRESSION[level] + bonus))
    strong = max(budget, size / STRONG_COMPRESSION[level])
    chosen = _choose(notes, budget, strong, MAX_LINES[level], count)
    lines: list[str] = []
    day: date | None = None
    written: set[str] = set()
    for note in _joined(chosen):
        line = note.line()
        if line in written:
            continue
        written.add(line)
        if note.day is not None and note.day != day:
            day = note.day
            lines.append(f"Date: {format_day(day)}")
        lines.append(line)
    body = "\n".join(lines) or NOTHING
    return sections.answer(body, sections.of_conversation(task))


def _size(messages: Iterable[Message], count: Callable[[str], int]) -> int:
    return sum(
        message.tokens if message.tokens is not None else count(_visible(message))
        for message in messages
        if message.role != "system"
    )


def _visible(message: Message) -> str:
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    texts += [part.args_text() for part in message.tool_calls]
    texts += [part.result_text() for part in message.tool_results]
    return "\n".join(texts)


def candidates(task: ObserverInput) -> list[Note]:
    """Return everything worth a note, scored, in order, without repeats."""
    known = Known()
    frequency: Counter[str] = Counter()
    for line in parse_lines(task.previous):
        stems = w.content(w.words(line.text))
        frequency.update(stems)
        known.add(stems)
    split = [
        (index, message, sentences.split(sentences.without_reminders(message.text)))
        for index, message in enumerate(task.messages)
        if message.role in ("user", "assistant")
    ]
    for _, message, _ in split:
        frequency.update(set(map(w.stem, w.words(message.text))))
    names = sentences.names_called([t for _, _, texts in split for t in texts[:3]])
    judge = Judge(frequency)
    by_message = {index: texts for index, _, texts in split}
    outcomes = tools.Exchanges(task.messages)
    notes: list[Note] = []
    for index, message in enumerate(task.messages):
        when = message.created_at.astimezone(task.zone) if message.created_at else None
        found: list[Note] = []
        for number, text in enumerate(by_message.get(index, ())):
            note = _note(text, message.role, when, judge, names)
            if note is not None:
                found.append(replace(note, sentence=number))
        if len(found) > MAX_LINES_A_MESSAGE:
            best = sorted(found, key=lambda n: -n.judged.score)[:MAX_LINES_A_MESSAGE]
            keep = set(map(id, best))
            found = [n for n in found if id(n) in keep]
        found += _attachments(message, when)
        found += [Note(0, 0, when, "", text, judged) for text, judged in outcomes.of(message)]
        for note in found:
            if known.fresh(note.judged.stems, note.judged.facts):
                known.add(note.judged.stems)
                notes.append(replace(note, order=len(notes), message=index))
    return notes


def _note(
    sentence: str, role: str, when: datetime | None, judge: Judge, names: frozenset[str]
) -> Note | None:
    text = sentences.core(sentence, names)
    if len(text) < 3:
        return None
    judged = judge.judge(text, role=role, whole=sentence)
    if judged.score < WORTH - DATED:
        return None
    dated = resolve(text, when) if when is not None else None
    if dated is not None:
        judged = replace(judged, score=judged.score + DATED)
    if judged.score < WORTH:
        return None
    short = _shortened(text, judge)
    if short != text:
        judged = replace(judged, stems=tuple(w.content(w.words(short))))
        dated = dated if dated is not None and when and resolve(short, when) == dated else None
    short = sentences.clip(sentences.hide_secrets(short))
    if dated is not None and when is not None and dated[0] == when.date():
        dated = None
    speaker = role.capitalize()
    if role == "user" and (judged.question or is_order(short)):
        speaker = "User asked"
    return Note(0, 0, when, speaker, short, judged, dated)


def _shortened(text: str, judge: Judge) -> str:
    """Drop clauses at both ends that say little beside the rest."""
    spans = sentences.clauses(text)
    if len(spans) < 2:
        return text
    worth = [_worth(text[a:b], judge) for a, b in spans]
    limit = 0.34 * max(worth)
    while len(spans) > 1 and worth[-1] < limit:
        spans.pop()
        worth.pop()
    while len(spans) > 1 and worth[0] < limit:
        spans.pop(0)
        worth.pop(0)
    short = text[spans[0][0] : spans[-1][1]].strip(" ,;-–—")
    return short if spans[0][0] == 0 else sentences.capital(sentences.core(short))


def _worth(clause: str, judge: Judge) -> float:
    tokens = w.words(clause)
    bag = set(tokens)
    score = sum(map(judge.rarity, w.content(tokens)))
    score += 1.5 * len([t for t in bag if t[:1].isdigit()])
    return score + 0.5 * len(bag & w.LIFE) + 0.5 * len(bag & (w.EVENT | w.DECISION))


def _attachments(message: Message, when: datetime | None) -> list[Note]:
    notes: list[Note] = []
    for part in message.parts:
        if isinstance(part, ImagePart | FilePart):
            kind = "image" if is_image(part) else "file"
            name = sentences.clip(sentences.hide_secrets(attachment_name(part)), 80)
            text = f"sent {kind} {name}".rstrip()
            judged = Judged(2.4 if name else 1.7, "🟡" if name else "🟢", (text,))
            notes.append(Note(0, 0, when, message.role.capitalize(), text, judged))
    return notes


def _estimate(note: Note) -> float:
    """Estimate the tokens of a text: exact counting of every candidate would cost more."""
    size = len(note.text)
    return size / (4.3 if note.text.isascii() else 1.7 if w.CJK.search(note.text) else 3.6)


def _choose(
    notes: list[Note], budget: float, strong: float, most: int, count: Callable[[str], int]
) -> list[Note]:
    """Take the notes with the most for their size until the budget is spent, in order.

    A note that leans on the sentence before it takes that one along.
    """
    place = {(n.message, n.sentence): n for n in notes if n.sentence >= 0}
    chosen: dict[int, Note] = {}
    messages: set[int] = set()
    days: set[date | None] = {None}
    spent = 0.0

    def price(note: Note) -> float:
        frame = 2 if note.message in messages else FRAME_TOKENS
        frame += 0 if note.day in days else HEADING_TOKENS
        return count(note.text) + frame + (DATE_TOKENS if note.meant else 0)

    def rank(note: Note) -> tuple[float, int]:
        size = FRAME_TOKENS + _estimate(note) + (DATE_TOKENS if note.meant else 0)
        return -note.judged.score / size**0.35, note.order

    for note in sorted(notes, key=rank):
        if note.order in chosen:
            continue
        limit = strong if note.judged.score >= STRONG else budget
        # What is left holds no line: counting on would be in vain.
        if chosen and (len(chosen) >= most or strong - spent < FRAME_TOKENS):
            break
        if chosen and spent + 0.5 * _estimate(note) > limit:
            continue
        wanted = [note]
        before = place.get((note.message, note.sentence - 1)) if leans(note.text) else None
        if before is not None and before.order not in chosen:
            wanted.append(before)
        cost = sum(map(price, wanted))
        if chosen and spent + cost > limit:
            continue
        spent += cost
        messages.add(note.message)
        days.add(note.day)
        chosen.update((n.order, n) for n in wanted)
    return [chosen[order] for order in sorted(chosen)]


def _joined(notes: list[Note]) -> list[Note]:
    """Join what one message said into one line, unless two days are spoken of."""
    out: list[Note] = []
    for note in notes:
        last = out[-1] if out else None
        if (
            last is not None
            and last.message == note.message
            and last.speaker == note.speaker != ""
            and last.judged.mark == note.judged.mark
            and last.meant == note.meant
            and len(last.text) + len(note.text) <= JOINED_CHARS
        ):
            out[-1] = replace(note, text=f"{last.text}; {note.text}")
        else:
            out.append(note)
    return out
