"""A conversation as the Observer reads it.

One line a part: ``User (14:30): text``. A ``Date:`` heading starts every day, the time stands where
it differs from the line before. Further lines of a body are indented, so that no text can pose as
a line of its own, and our tags inside it are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from urllib.parse import unquote, urlsplit

from .dates import format_day
from .log import escape_tags
from .messages import (
    FilePart,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    dump_json,
)

MAX_RESULT_TOKENS = 5_000
MAX_ARGS_TOKENS = 2_000
MAX_SECRET_CHARS = 256
_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|webp|gif|bmp|tiff?|hei[cf]|avif)$", re.IGNORECASE)
_REMINDER = re.compile(r"<system-reminder\b[^>]{0,200}>.*?</system-reminder>", re.DOTALL)


@dataclass(slots=True)
class Transcript:
    """The text, and the attachments in the order of their placeholders."""

    text: str = ""
    attachments: list[ImagePart | FilePart] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in tokens of what is quoted; ``None`` quotes all."""

    result: int | None = MAX_RESULT_TOKENS
    args: int | None = MAX_ARGS_TOKENS
    text: int | None = None


def build_transcript(
    messages: Sequence[Message],
    *,
    count: Callable[[str], int],
    zone: tzinfo = UTC,
    limits: Limits | None = None,
) -> Transcript:
    """Write ``messages`` as a transcript.

    ``count`` counts tokens, ``zone`` is the user's time zone. A tool call appears once, with its
    arguments, and its outcome once, even when both are repeated. Data parts, parts of unknown
    kinds, system messages and internal reminders are left out.
    """
    writer = _Writer(messages, count, zone, limits or Limits())
    for message in messages:
        if message.role != "system":
            writer.add(message)
    return Transcript("\n".join(writer.lines), writer.attachments)


class _Writer:
    def __init__(
        self,
        messages: Sequence[Message],
        count: Callable[[str], int],
        zone: tzinfo,
        limits: Limits,
    ) -> None:
        self.lines: list[str] = []
        self.attachments: list[ImagePart | FilePart] = []
        self._count = count
        self._zone = zone
        self._limits = limits
        self._day = ""
        self._time = ""
        self._images = 0
        self._files = 0
        self._calls_shown: set[str] = set()
        self._results_shown: set[str] = set()
        self._called = {p.tool_call_id for m in messages for p in m.tool_calls}

    def add(self, message: Message) -> None:
        for part in message.parts:
            for label, body in self._render(message, part):
                if body.strip():
                    self._line(label, body, message.created_at)

    def _line(self, label: str, body: str, when: datetime | None) -> None:
        stamp = ""
        if when is not None:
            local = when.astimezone(self._zone)
            day = format_day(local.date())
            if day != self._day:
                self._day, self._time = day, ""
                self.lines.append(f"Date: {day}")
            time = local.strftime("%H:%M")
            if time != self._time:
                self._time = time
                stamp = f" ({time})"
        text = escape_tags(body.strip()).replace("\r\n", "\n").replace("\n", "\n  ")
        self.lines.append(f"{label}{stamp}: {text}")

    def _render(self, message: Message, part: Part) -> Iterable[tuple[str, str]]:
        if isinstance(part, TextPart):
            text = without_reminders(part.text)
            yield message.role.capitalize(), cut_tokens(text, self._limits.text, self._count)
        elif isinstance(part, ReasoningPart):
            yield "Reasoning", cut_tokens(part.text, self._limits.text, self._count)
        elif isinstance(part, ToolCallPart):
            if part.tool_call_id not in self._calls_shown:
                self._calls_shown.add(part.tool_call_id)
                yield f"Tool Call {part.tool_name}", self._args(part)
        elif isinstance(part, ToolResultPart):
            if part.tool_call_id not in self._results_shown:
                self._results_shown.add(part.tool_call_id)
                yield self._result_label(part), self._result(part)
        elif isinstance(part, ImagePart | FilePart):
            yield self._attachment(part)

    def _args(self, part: ToolCallPart) -> str:
        if part.args is None and part.raw_args is None:
            return "[arguments unavailable]"
        if part.args in ({}, []):
            return "[no arguments]"
        return cut_tokens(part.args_text(), self._limits.args, self._count)

    @staticmethod
    def _result_label(part: ToolResultPart) -> str:
        kind = {"ok": "Result", "error": "Error", "denied": "Denied"}[part.outcome]
        return f"Tool {kind} {part.tool_name}".rstrip()

    def _result(self, part: ToolResultPart) -> str:
        value = hide_opaque(part.result)
        text = value if isinstance(value, str) else ("" if value is None else dump_json(value))
        if not text.strip():
            return "not approved by the user" if part.outcome == "denied" else "[empty result]"
        return cut_tokens(text, self._limits.result, self._count)

    def _attachment(self, part: ImagePart | FilePart) -> tuple[str, str]:
        self.attachments.append(part)
        name = attachment_name(part)
        if is_image(part):
            self._images += 1
            return "Image", f"[Image #{self._images}{': ' + name if name else ''}]"
        self._files += 1
        return "File", f"[File #{self._files}{': ' + name if name else ''}]"


def without_reminders(text: str) -> str:
    """Return text without the reminders that an application puts in for the actor."""
    # Nothing is searched behind the last closing tag: openings there would each scan to the end.
    end = text.rfind("</system-reminder>")
    if end < 0:
        return text
    end += len("</system-reminder>")
    return _REMINDER.sub("", text[:end]) + text[end:]


def cut_tokens(text: str, limit: int | None, count: Callable[[str], int]) -> str:
    """Cut ``text`` to ``limit`` tokens, with a note of how many are gone."""
    # A token is at least one byte: a text of fewer bytes than the limit cannot pass it.
    if limit is None or len(text) * 4 <= limit:
        return text
    total = count(text)
    if total <= limit:
        return text
    room = max(1, limit - 10)
    low, high = 0, len(text)
    guess = len(text) * room // total
    while low < high:
        if count(text[:guess]) <= room:
            low = guess
        else:
            high = guess - 1
        # Stop when close: exactness to the character is worth no further counting.
        if high - low <= max(16, len(text) // 512):
            break
        guess = (low + high + 1) // 2
    return f"{text[:low]}\n... [truncated ~{total - room} tokens]"


def hide_opaque(value: object) -> object:
    """Return a tool result with encrypted blobs and inline media replaced by short notes."""
    if isinstance(value, Mapping):
        return {key: _hide_entry(str(key), entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [hide_opaque(entry) for entry in value]
    if isinstance(value, str) and value.startswith("data:") and len(value) > MAX_SECRET_CHARS:
        return f"[{value[5:60].split(';')[0].split(',')[0] or 'data'}: {len(value)} characters]"
    return value


def _hide_entry(key: str, value: object) -> object:
    if isinstance(value, str) and len(value) > MAX_SECRET_CHARS:
        if key == "encryptedContent":
            return f"[stripped encryptedContent: {len(value)} characters]"
        if key in ("data", "base64") and " " not in value[:1000]:
            return f"[data: {len(value)} characters]"
    return hide_opaque(value)


def is_image(part: ImagePart | FilePart) -> bool:
    """Tell whether a part is a picture, by kind, media type or name."""
    if isinstance(part, ImagePart):
        return True
    media_type = (part.media_type or "").lower()
    if media_type:
        return media_type.startswith("image/")
    url = part.url or ""
    if url.lower().startswith("data:image/"):
        return True
    return any(
        _IMAGE_NAME.search(name) is not None for name in (part.filename or "", urlsplit_path(url))
    )


def urlsplit_path(url: str) -> str:
    """Return the decoded path of a URL, "" for data URLs and what cannot be parsed."""
    if not url or url.lower().startswith("data:"):
        return ""
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""


def attachment_name(part: ImagePart | FilePart) -> str:
    """Return an attachment's label: its file name, else the end of its URL, else its type."""
    name = (part.filename or "").strip()
    name = name or urlsplit_path(part.url or "").rstrip("/").split("/")[-1]
    name = name or (part.media_type or "").strip()
    return " ".join(name.split())[:200].replace("]", ")")
