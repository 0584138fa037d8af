"""Messages and their parts: the one neutral format that everything else converts from and to.

A message is immutable. Each step of an agent's turn is a message of its own: the assistant's text
and tool calls are one message, the results of those calls the next, with role ``tool``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias

from .text import JSON, clean_json, clean_text

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
Outcome = Literal["ok", "error", "denied"]
OUTCOMES: tuple[Outcome, ...] = ("ok", "error", "denied")


class InvalidMessage(ValueError):
    """A message or part that cannot be stored; the text says what to change."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """Words of the user or the model."""

    text: str
    extra: Mapping[str, JSON] = field(default_factory=dict, kw_only=True)
    type: ClassVar[str] = "text"


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """A model's visible reasoning. Costs no tokens here: it is never sent back as text."""

    text: str
    extra: Mapping[str, JSON] = field(default_factory=dict, kw_only=True)
    type: ClassVar[str] = "reasoning"


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A call the model asks for.

    ``args`` are the parsed arguments; ``raw_args`` is the exact text a provider sent, kept so that
    it goes back unchanged (key order and white space are part of a cached prompt).
    """

    tool_call_id: str
    tool_name: str
    args: JSON = None
    raw_args: str | None = None
    extra: Mapping[str, JSON] = field(default_factory=dict, kw_only=True)
    type: ClassVar[str] = "tool-call"

    def args_text(self) -> str:
        """Return the arguments as JSON text, exactly as the provider sent them where known."""
        if self.raw_args is not None:
            return self.raw_args
        return "{}" if self.args is None else dump_json(self.args)


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    """What a tool call came to."""

    tool_call_id: str
    tool_name: str
    result: JSON = None
    outcome: Outcome = "ok"
    extra: Mapping[str, JSON] = field(default_factory=dict, kw_only=True)
    type: ClassVar[str] = "tool-result"

    def result_text(self) -> str:
        """Return the result as a model reads it: a string as it is, anything else as JSON."""
        return self.result if isinstance(self.result, str) else dump_json(self.result)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPart:
    """What images and files have in common: exactly one of ``url``, ``data`` and ``file_id``.

    ``data`` is base64. ``token_estimate`` is the caller's own count of tokens and wins over every
    formula. ``size`` is in bytes.
    """

    url: str | None = None
    data: str | None = None
    file_id: str | None = None
    media_type: str | None = None
    filename: str | None = None
    size: int | None = None
    token_estimate: int | float | None = None
    extra: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart(MediaPart):
    """A picture: ``width`` and ``height`` in pixels, ``detail`` as the provider names it."""

    width: int | None = None
    height: int | None = None
    detail: str | None = None
    type: ClassVar[str] = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart(MediaPart):
    """Any other attachment: a document, audio, video."""

    type: ClassVar[str] = "file"


@dataclass(frozen=True, slots=True)
class DataPart:
    """An application's own part, ``data-*``. It is never sent to a model and costs no tokens."""

    type: str
    data: JSON = None
    id: str | None = None
    extra: Mapping[str, JSON] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True, slots=True)
class OtherPart:
    """A part of a kind this package does not know, kept whole and passed by."""

    type: str
    payload: Mapping[str, JSON] = field(default_factory=dict)


Part: TypeAlias = (
    TextPart
    | ReasoningPart
    | ToolCallPart
    | ToolResultPart
    | ImagePart
    | FilePart
    | DataPart
    | OtherPart
)

_KNOWN: dict[str, type[Any]] = {
    cls.type: cls
    for cls in (TextPart, ReasoningPart, ToolCallPart, ToolResultPart, ImagePart, FilePart)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a thread.

    ``id`` and ``position`` are given by the store ("" and 0 before). ``client_id`` is the caller's
    own key: a second message with the same one in a thread is the same message. ``model`` is the
    ``provider/model`` that wrote an assistant message. ``tokens`` counts the payload without
    framing, ``part_tokens`` the same part by part; both are ``None`` until counted.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    id: str = ""
    position: int = 0
    thread: str = ""
    client_id: str | None = None
    created_at: datetime | None = None
    model: str = ""
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    tokens: int | None = None
    part_tokens: tuple[int, ...] | None = None

    @property
    def text(self) -> str:
        """The text parts, joined by blank lines."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResultPart))

    def with_parts(self, parts: Iterable[Part]) -> Message:
        """Return the message with other parts; counts are dropped."""
        return replace(self, parts=tuple(parts), tokens=None, part_tokens=None)


def dump_json(value: object) -> str:
    """Return compact JSON that keeps every script readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def part_to_json(part: Part) -> dict[str, JSON]:
    """Return a part as stored: its ``type`` and the fields that are not empty."""
    if isinstance(part, OtherPart):
        return {**clean_mapping(part.payload), "type": part.type}
    out: dict[str, JSON] = {"type": part.type}
    for name in _fields(type(part)):
        value = getattr(part, name)
        if value is None or name == "type":
            continue
        if name == "extra":
            if value:
                out["extra"] = clean_mapping(value)
        elif name == "outcome" and value == "ok":
            continue
        else:
            out[name] = clean_json(value)
    return out


def part_from_json(data: Mapping[str, Any]) -> Part:
    """Return the part that :func:`part_to_json` stored.

    Raises :class:`InvalidMessage` when a field is missing, unknown or of the wrong kind.
    """
    kind = data.get("type")
    if not isinstance(kind, str) or not kind:
        raise InvalidMessage("a part needs a 'type', for example 'text'")
    if kind.startswith("data-"):
        return DataPart(kind, data.get("data"), data.get("id"), extra=data.get("extra") or {})
    cls = _KNOWN.get(kind)
    if cls is None:
        return OtherPart(kind, {k: v for k, v in data.items() if k != "type"})
    given = {k: v for k, v in data.items() if k != "type"}
    unknown = sorted(set(given) - set(_fields(cls)))
    if unknown:
        raise InvalidMessage(f"a {kind} part has no field {unknown[0]!r}")
    try:
        part: Part = cls(**given)
    except TypeError as error:
        raise InvalidMessage(f"a {kind} part is missing a field: {error}") from None
    validate_part(part)
    return part


_FIELDS: dict[type[Any], tuple[str, ...]] = {}


def _fields(cls: type[Any]) -> tuple[str, ...]:
    return _FIELDS.get(cls) or _FIELDS.setdefault(cls, tuple(f.name for f in fields(cls)))


def clean_mapping(value: Mapping[str, Any]) -> dict[str, JSON]:
    """Return a mapping as clean JSON data."""
    return {clean_text(str(k)): clean_json(v) for k, v in value.items()}


_URL_SCHEMES = ("http://", "https://", "data:", "gs://", "s3://", "file-id:")


def validate_part(part: Part) -> None:
    """Raise :class:`InvalidMessage` when a part cannot be stored or could never be sent."""
    if isinstance(part, TextPart | ReasoningPart):
        _expect_str(part.type, "text", part.text)
    elif isinstance(part, ToolCallPart | ToolResultPart):
        _expect_str(part.type, "tool_call_id", part.tool_call_id, empty=False)
        _expect_str(part.type, "tool_name", part.tool_name)
        if isinstance(part, ToolResultPart) and part.outcome not in OUTCOMES:
            raise InvalidMessage(f"outcome must be one of {', '.join(OUTCOMES)}")
    elif isinstance(part, ImagePart | FilePart):
        _validate_media(part)


def _expect_str(kind: str, name: str, value: object, *, empty: bool = True) -> None:
    if not isinstance(value, str):
        raise InvalidMessage(f"{name} of a {kind} part must be a string")
    if not empty and not value:
        raise InvalidMessage(f"{name} of a {kind} part must not be empty")


def _validate_media(part: ImagePart | FilePart) -> None:
    given = [name for name in ("url", "data", "file_id") if getattr(part, name) is not None]
    if len(given) != 1:
        raise InvalidMessage(f"a {part.type} part needs exactly one of url, data (base64), file_id")
    if part.url is not None and not part.url.lower().startswith(_URL_SCHEMES):
        raise InvalidMessage(
            f"url of a {part.type} part must be absolute (http, https, data, gs, s3): "
            f"{part.url[:80]!r}"
        )


def visible_parts(message: Message) -> tuple[Part, ...]:
    """Return the parts a model can see."""
    return tuple(part for part in message.parts if not isinstance(part, DataPart | OtherPart))


def call_ids(messages: Sequence[Message]) -> set[str]:
    return {part.tool_call_id for message in messages for part in message.tool_calls}


def result_ids(messages: Sequence[Message]) -> set[str]:
    return {part.tool_call_id for message in messages for part in message.tool_results}
