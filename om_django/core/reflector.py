"""The Reflector's call, and which of its attempts is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import prompts
from .answers import Answer, parse_answer
from .log import escape_tags
from .observer import Prompt, block, sections_text, values_text

MAX_LEVEL = 4
MAX_RISE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorInput:
    """All that one Reflector call depends on. Sizes are in tokens."""

    log: str
    log_tokens: int
    target_tokens: int
    level: int = 0
    sections: Mapping[str, str] = field(default_factory=dict)
    prior: Mapping[str, str] = field(default_factory=dict)
    instruction: str = ""
    language: str = ""
    extra_request: str = ""


def build_reflector_prompt(task: ReflectorInput) -> Prompt:
    """Build the call."""
    language = (
        prompts.LANGUAGE_FIXED.format(language=task.language)
        if task.language
        else "Write in the language of the log; names and quotes stay as they are."
    )
    system = [
        prompts.REFLECTOR_ROLE,
        prompts.RULES,
        prompts.FORMAT,
        language + "\n",
        sections_text(task.sections),
    ]
    if task.instruction.strip():
        system.append(f"Instructions of this application\n\n{task.instruction.strip()}\n")
    if task.extra_request.strip():
        system.append(f"This time in particular\n\n{task.extra_request.strip()}\n")
    guidance = prompts.REFLECTOR_GUIDANCE[min(task.level, MAX_LEVEL)]
    if guidance:
        system.append(guidance + "\n")
    system.append(prompts.REFLECTOR_TARGET.format(target=task.target_tokens, size=task.log_tokens))
    blocks = [block("observations", escape_tags(task.log))]
    if task.prior:
        blocks.append(block("prior-values", values_text(task.prior)))
    return Prompt(system="\n".join(part for part in system if part), prompt="\n\n".join(blocks))


def parse_reflector_answer(raw: str, task: ReflectorInput, *, cut: bool = False) -> Answer:
    """Read an answer. A cut one loses its unfinished line and everything that should follow it."""
    return parse_answer(raw, slugs=task.sections, cut=cut, prose=True)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A judged attempt: its answer, and the tokens of its observations as they would be stored."""

    level: int
    answer: Answer
    tokens: int
    cut: bool = False


def levels(start: int) -> range:
    """Return the compression levels to try, up to three above the start. Source: reference."""
    return range(start, min(MAX_LEVEL, start + MAX_RISE) + 1)


def good(attempt: Attempt, target: int) -> bool:
    """Tell whether an attempt ends the ladder: sound, whole and below the target."""
    return _usable(attempt) and not attempt.cut and attempt.tokens < target


def best(attempts: Sequence[Attempt], source_tokens: int) -> Attempt | None:
    """Return the smallest sound attempt that is smaller than its source, or ``None``.

    A cut answer lacks an unknown part of the log, so a whole one always goes before it.
    """
    usable = [a for a in attempts if _usable(a) and not a.cut and a.tokens < source_tokens]
    return min(usable, key=lambda attempt: attempt.tokens, default=None)


def _usable(attempt: Attempt) -> bool:
    # A log that was full of notes has something to note: "nothing" is a fault here.
    return attempt.answer.verdict == "ok" and attempt.tokens > 0
