"""Reading what the Observer and the Reflector answered, tolerantly and without trust.

Nothing a model writes is taken as structure unless it stands where the prompt asked for it, and
nothing is dropped in silence: every answer is judged, see :class:`Verdict`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from .log import MARKS, cap_lines, escape_tags, is_heading

MIN_JUDGED_CHARS = 2_000
WINDOW_CHARS = 200
MAX_RAW_LINE_CHARS = 50_000
NOTHING = "(nothing to note)"


class Verdict(enum.StrEnum):
    """What an answer is worth."""

    OK = "ok"
    #: The model said that there is nothing worth a note.
    NOTHING = "nothing"
    EMPTY = "empty"
    #: There is text, but no observation in it.
    UNPARSABLE = "unparsable"
    #: A repetition loop or an endless line.
    DEGENERATE = "degenerate"
    #: The output limit cut it off before a full line was written.
    CUT = "cut"

    @property
    def sound(self) -> bool:
        return self in (Verdict.OK, Verdict.NOTHING)


@dataclass(frozen=True, slots=True)
class Answer:
    """A parsed answer. ``values`` are the inline sections by slug; ``detail`` explains a fault."""

    verdict: Verdict
    observations: str = ""
    values: dict[str, str] = field(default_factory=dict)
    detail: str = ""


_FENCE = re.compile(r"^[ \t]*```[\w-]*[ \t]*$", re.MULTILINE)
_OPEN = re.compile(r"^[ \t]*<\s*observations\b[^<>]*>", re.IGNORECASE | re.MULTILINE)
_CLOSE = re.compile(r"</\s*observations\s*>", re.IGNORECASE)
_CLOSE_LINE = re.compile(r"^[ \t]*</\s*observations\s*>", re.IGNORECASE | re.MULTILINE)
_LIST_LINE = re.compile(r"^[ \t]*(?:[*\-•]|\d{1,3}[.)])[ \t]+\S")
_NOTHING = re.compile(r"^[*\-\s]*\(?\s*nothing (?:new )?to note\s*\)?\.?\s*$", re.IGNORECASE)


def parse_answer(
    raw: str, *, slugs: Collection[str] = (), cut: bool = False, prose: bool = False
) -> Answer:
    """Read one answer.

    ``slugs`` are the inline sections asked for. ``cut`` says that the output limit ended the
    answer: then the last, unfinished line is not used. With ``prose`` an answer without any tag or
    list is taken whole (the Reflector; source: reference), else it is unparsable.
    """
    fault = find_loop(raw)
    if fault:
        return Answer(Verdict.DEGENERATE, detail=fault)
    text = _FENCE.sub("", raw).strip()
    if not text:
        return Answer(
            Verdict.CUT if cut else Verdict.EMPTY,
            detail="the output limit left no visible text: raise max_output_tokens"
            if cut
            else "the answer is empty",
        )
    block, rest, closed = _split(text)
    values = _sections(rest, slugs)
    if block is None:
        return _without_block(text, slugs, values, cut=cut, prose=prose)
    if cut and not closed:
        block = block.rpartition("\n")[0]
    return _judge(block, values, cut=cut and not closed)


def _judge(block: str, values: dict[str, str], *, cut: bool) -> Answer:
    if _NOTHING.match(block.strip()):
        return Answer(Verdict.NOTHING, values=values)
    observations = tidy(block)
    if not any(is_heading(line) is None for line in observations.splitlines()):
        if cut:
            return Answer(
                Verdict.CUT, detail="the output limit cut the first line: raise max_output_tokens"
            )
        return Answer(Verdict.EMPTY, values=values, detail="the observations block is empty")
    return Answer(Verdict.OK, observations, values)


def _without_block(
    text: str, slugs: Collection[str], values: dict[str, str], *, cut: bool, prose: bool
) -> Answer:
    body = _strip_sections(text, slugs)
    if cut:
        body = body.rpartition("\n")[0]
    if _NOTHING.match(body.strip()):
        return Answer(Verdict.NOTHING, values=values)
    lines = [
        line for line in body.splitlines() if _LIST_LINE.match(line) or is_heading(line) is not None
    ]
    if any(_LIST_LINE.match(line) for line in lines):
        return Answer(Verdict.OK, tidy("\n".join(lines)), values)
    if prose and body.strip() and not cut:
        return Answer(Verdict.OK, tidy(body), values)
    return Answer(Verdict.UNPARSABLE, values=values, detail="there is no observations block")


def _split(text: str) -> tuple[str | None, str, bool]:
    """Return the blocks joined, the text outside of them, and whether the last one is closed.

    Tags count at the start of a line. Only where no closing tag stands so, the last one anywhere is
    taken: a tag that is quoted inside of an observation ends nothing.
    """
    blocks: list[str] = []
    outside: list[str] = []
    position = 0
    closed = True
    while (opening := _OPEN.search(text, position)) is not None:
        outside.append(text[position : opening.start()])
        closing = _CLOSE_LINE.search(text, opening.end())
        if closing is None:
            for closing in _CLOSE.finditer(text, opening.end()):  # noqa: B007
                pass
        closed = closing is not None
        if closing is not None:
            blocks.append(text[opening.end() : closing.start()])
            position = closing.end()
        else:
            blocks.append(text[opening.end() :])
            position = len(text)
    outside.append(text[position:])
    if not blocks:
        return None, text, True
    joined = "\n".join(block.strip("\n") for block in blocks if block.strip())
    return joined, "\n".join(outside), closed


def _section(text: str, slug: str) -> Iterator[re.Match[str]]:
    """Find the sections of a slug: opened at the start of a line, up to the next closing tag."""
    name = re.escape(slug)
    pattern = re.compile(
        rf"^[ \t]*<{name}>(?P<value>.*?)</{name}>", re.DOTALL | re.MULTILINE | re.IGNORECASE
    )
    # Nothing is searched behind the last closing tag: openings there would each scan to the end.
    return pattern.finditer(text, 0, text.lower().rfind(f"</{slug}>") + len(slug) + 3)


def _sections(text: str, slugs: Collection[str]) -> dict[str, str]:
    """Return the last section of each slug: "" when it is empty, no entry when it is absent."""
    values: dict[str, str] = {}
    for slug in slugs:
        for match in _section(text, slug):
            values[slug] = escape_tags(match["value"].strip())
    return values


def _strip_sections(text: str, slugs: Collection[str]) -> str:
    for slug in slugs:
        for match in reversed(list(_section(text, slug))):
            text = text[: match.start()] + text[match.end() :]
    return text


def tidy(block: str) -> str:
    """Return observations as stored: our tags escaped, prose lines made items, long lines cut."""
    out: list[str] = []
    for line in block.splitlines():
        stripped = line.rstrip()
        if not stripped.strip():
            continue
        heading = is_heading(stripped)
        if heading is not None:
            out.append(stripped.strip().strip("*").strip())
        elif _LIST_LINE.match(stripped):
            out.append(stripped)
        elif stripped.lstrip().startswith(MARKS):
            out.append(f"* {stripped.strip()}")
        elif out and is_heading(out[-1]) is None and stripped.startswith((" ", "\t")):
            # A further line of the item above: code and lists keep their shape.
            out.append(stripped)
        else:
            out.append(f"* {stripped.strip()}")
    return escape_tags(cap_lines("\n".join(out)))


def find_loop(text: str) -> str:
    """Return what is degenerate about a text, "" when nothing is. Source: reference.

    Texts under 2,000 characters are not judged. A text is degenerate when more than 40 % of about
    fifty sampled windows of 200 characters repeat, when a line is longer than 50,000 characters, or
    when more than half of at least twenty long lines repeat an earlier one.
    """
    if len(text) < MIN_JUDGED_CHARS:
        return ""
    step = max(1, len(text) // 50)
    windows = [text[i : i + WINDOW_CHARS] for i in range(0, len(text) - WINDOW_CHARS + 1, step)]
    repeated = len(windows) - len(set(windows))
    if len(windows) > 5 and repeated > 0.4 * len(windows):
        return f"{repeated} of {len(windows)} sampled passages repeat"
    lines = text.splitlines()
    longest = max(map(len, lines), default=0)
    if longest > MAX_RAW_LINE_CHARS:
        return f"one line has {longest} characters"
    long_lines = [stripped for line in lines if len(stripped := line.strip()) >= 24]
    repeats = len(long_lines) - len(set(long_lines))
    if len(long_lines) >= 20 and repeats > 0.5 * len(long_lines):
        return f"{repeats} of {len(long_lines)} lines repeat an earlier one"
    return ""
