"""The Observer's call: what it is asked, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from . import prompts
from .answers import Answer, parse_answer
from .images import is_image, media_type_of
from .log import escape_tags, truncate
from .messages import FilePart, ImagePart, Message
from .transcript import Limits, build_transcript

#: The built-in inline sections by slug.
BUILT_IN_SECTIONS: Mapping[str, str] = dict(
    (prompts.CURRENT_TASK, prompts.SUGGESTED_RESPONSE, prompts.THREAD_TITLE)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverInput:
    """All that one Observer call depends on.

    ``previous`` is the log so far, cut to ``previous_tokens`` (``None``: whole, 0: none).
    ``sections`` are the inline sections asked for, instructions by slug; ``prior`` their present
    values. ``level`` rises with every attempt and ``reason`` says why the last one failed.
    ``text_limit`` cuts each text to so many tokens, for a message larger than the model's window.
    ``attachments`` says which are sent beside their placeholders, see :func:`forwarded`.
    """

    messages: tuple[Message, ...]
    previous: str = ""
    previous_tokens: int | None = None
    sections: Mapping[str, str] = field(default_factory=dict)
    prior: Mapping[str, str] = field(default_factory=dict)
    instruction: str = ""
    language: str = ""
    zone: tzinfo = UTC
    level: int = 0
    reason: str = ""
    text_limit: int | None = None
    attachments: bool | tuple[str, ...] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """System text (control only), prompt text (data only), and attachments."""

    system: str
    prompt: str
    attachments: tuple[ImagePart | FilePart, ...] = ()


def build_observer_prompt(task: ObserverInput, count: Callable[[str], int]) -> Prompt:
    """Build the call. ``count`` counts tokens."""
    system = [
        prompts.OBSERVER_ROLE,
        prompts.RULES,
        prompts.FORMAT,
        _language(task.language),
        sections_text(task.sections),
        prompts.OBSERVER_CLOSE,
    ]
    if task.instruction.strip():
        system.append(f"Instructions of this application\n\n{task.instruction.strip()}\n")
    guidance = prompts.OBSERVER_GUIDANCE[min(task.level, len(prompts.OBSERVER_GUIDANCE) - 1)]
    if guidance:
        system.append(guidance.format(reason=task.reason or "no usable text") + "\n")
    previous, cut = truncate(task.previous, task.previous_tokens, count)
    transcript = build_transcript(
        task.messages, count=count, zone=task.zone, limits=Limits(text=task.text_limit)
    )
    blocks: list[str] = []
    if previous.strip():
        note = "[older observations are kept but not shown here]\n" if cut else ""
        blocks.append(block("previous-observations", note + escape_tags(previous)))
    if task.prior:
        blocks.append(block("prior-values", values_text(task.prior)))
    blocks.append(block("conversation", transcript.text))
    return Prompt(
        system="\n".join(part for part in system if part),
        prompt="\n\n".join(blocks),
        attachments=tuple(
            part for part in transcript.attachments if forwarded(part, task.attachments)
        ),
    )


def forwarded(part: ImagePart | FilePart, allowed: bool | tuple[str, ...]) -> bool:
    """Tell whether an attachment is sent along: all, none, or those of some media types.

    A media type may be exact, ``image/*`` or ``*``; case does not matter. A picture of unknown type
    matches ``image/*``. Source: reference.
    """
    if isinstance(allowed, bool):
        return allowed
    unknown = "image/*" if is_image(part) else "application/octet-stream"
    media_type = media_type_of(part) or unknown
    family = media_type.partition("/")[0] + "/*"
    wanted = {item.strip().lower() for item in allowed}
    return not wanted.isdisjoint({media_type, family, "*", "*/*"})


def parse_observer_answer(raw: str, task: ObserverInput, *, cut: bool = False) -> Answer:
    """Read the answer to the call built from ``task``; ``cut``: the output limit ended it."""
    return parse_answer(raw, slugs=task.sections, cut=cut)


def block(tag: str, body: str) -> str:
    return f"<{tag}>\n{body.strip()}\n</{tag}>"


def sections_text(sections: Mapping[str, str]) -> str:
    """Describe the inline sections an answer may carry."""
    if not sections:
        return ""
    described = "\n".join(
        f"<{slug}>\n{instructions}\n</{slug}>" for slug, instructions in sections.items()
    )
    return f"{prompts.SECTIONS_HEAD}\n{described}\n"


def values_text(values: Mapping[str, str]) -> str:
    return "\n".join(f"- {slug}: {escape_tags(value)}" for slug, value in values.items() if value)


def _language(language: str) -> str:
    if not language:
        return prompts.LANGUAGE_OF_CHAT + "\n"
    return prompts.LANGUAGE_FIXED.format(language=language) + "\n"
