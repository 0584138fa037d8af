"""Conversion of messages from and to the formats of providers and user interfaces.

One module per format: :mod:`.openai`, :mod:`.gemini`, :mod:`.ui`; and :mod:`.pairs`, which keeps
tool calls and their results together. This module holds what they share.

What a format says and a neutral part cannot hold is kept under the format's name in ``extra`` of
the part or ``metadata`` of the message. There, a key the format itself does not know is kept as it
came; a key the format knows overrules what would be written without it. Notes of other formats are
ignored, so a message converts to every format wherever it came from.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from ..messages import (
    FilePart,
    ImagePart,
    InvalidMessage,
    Message,
    OtherPart,
    Part,
    ToolCallPart,
    ToolResultPart,
    validate_part,
)
from ..text import JSON, MAX_JSON_DEPTH

# a wire message wraps its JSON values (arguments, results) a few levels deep
_MAX_DEPTH = MAX_JSON_DEPTH + 16
_TOO_DEEP = "[nested too deep]"
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+*-]+);base64,(.*)", re.DOTALL | re.ASCII)

PartT = TypeVar("PartT", bound=Part)


def plain(value: object, *, drop: Collection[str] = ()) -> Any:
    """Return an SDK object, dataclass or mapping as plain dicts, lists and scalars.

    Fields that were never set are left out of SDK objects, and those named in ``drop`` as well;
    bytes become base64, and nesting deeper than 80 levels is cut with a visible mark.
    """
    return _plain(value, () if isinstance(value, Mapping) else drop, 0)


def _plain(value: object, drop: Collection[str], depth: int) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value, drop, depth)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if depth >= _MAX_DEPTH:
        return _TOO_DEEP
    if isinstance(value, Mapping):
        return {str(k): _plain(v, drop, depth + 1) for k, v in value.items() if k not in drop}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v, drop, depth + 1) for v in value]
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        try:
            dumped = dump(by_alias=True, exclude_unset=True, warnings=False)
        except TypeError:  # not pydantic's own method
            dumped = dump()
        return _plain(dumped, drop, depth + 1)
    if is_dataclass(value) and not isinstance(value, type):
        named = {f.name: getattr(value, f.name) for f in fields(value)}
        return _plain(named, drop, depth)
    return str(value)


def as_mapping(value: object, where: str) -> dict[str, Any]:
    """Return plain ``value`` if it is a dict, or raise :class:`InvalidMessage` naming ``where``."""
    if not isinstance(value, dict):
        raise InvalidMessage(f"{where} must be an object, not {_kind(value)}")
    return value


def as_list(value: object, where: str) -> list[Any]:
    """Return ``value`` as a list, or raise :class:`InvalidMessage` naming ``where``."""
    single = isinstance(value, str | bytes | Mapping) or hasattr(value, "model_dump")
    if single or not isinstance(value, Iterable):
        raise InvalidMessage(f"{where} must be a list, not {_kind(value)}")
    return list(value)


def as_text(value: object, where: str, *, empty: bool = True) -> str:
    """Return ``value`` if it is a string, or raise :class:`InvalidMessage` naming ``where``."""
    if not isinstance(value, str):
        raise InvalidMessage(f"{where} must be a string, not {_kind(value)}")
    if not value and not empty:
        raise InvalidMessage(f"{where} must not be empty")
    return value


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__


def without(data: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the keys of ``data`` that are not ``known``."""
    return {k: v for k, v in data.items() if k not in known}


def note(name: str, rest: Mapping[str, Any]) -> dict[str, JSON]:
    """Return ``rest`` as ``extra`` or ``metadata`` of format ``name``; empty if there is none."""
    return {name: dict(rest)} if rest else {}


def noted(extra: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a copy of what format ``name`` left in ``extra`` or ``metadata``."""
    found = extra.get(name)
    return dict(found) if isinstance(found, Mapping) else {}


def inner(rest: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a copy of the mapping noted at ``key``, empty if there is none."""
    return noted(rest, key)


def other_part(name: str, kind: str, data: Mapping[str, Any]) -> OtherPart:
    """Return a part of format ``name`` that only this format can read, kept whole.

    The prefix keeps a foreign ``type`` from being taken for one of ours when it is loaded again.
    """
    return OtherPart(f"{name}-{kind}", {name: dict(data)})


def own_part(part: OtherPart, name: str) -> dict[str, Any] | None:
    """Return the wire form that :func:`other_part` kept, ``None`` for parts of other formats."""
    found = part.payload.get(name)
    return dict(found) if isinstance(found, Mapping) else None


def checked(part: PartT) -> PartT:
    """Return the part if it is valid, else raise :class:`InvalidMessage`."""
    validate_part(part)
    return part


def parse_json(text: str) -> JSON:
    """Return JSON text as data, ``None`` when it is not valid."""
    try:
        found: JSON = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return found


def _no_constant(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return media type and base64 data of a plain data URL, ``None`` for anything else.

    Only URLs that :func:`data_url` writes back exactly are split.
    """
    match = _DATA_URL.fullmatch(url)
    return (match[1], match[2]) if match else None


def data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def media_label(part: ImagePart | FilePart) -> str:
    """Return a line that stands for an attachment where the format cannot carry it."""
    kind = "Image" if isinstance(part, ImagePart) else "File"
    url = None if part.url is None or part.url.lower().startswith("data:") else part.url
    name = part.filename or url or part.file_id or part.media_type
    return f"[{kind}: {name}]" if name else f"[{kind}]"


class Calls:
    """The tool calls seen so far in a conversation: their names, and which still wait."""

    def __init__(self, earlier: Iterable[Message] = ()) -> None:
        self._names: dict[str, str] = {}
        self._waiting: dict[str, dict[str, None]] = {}
        self.messages = 0
        for message in earlier:
            self.see(message)

    def see(self, message: Message) -> None:
        """Take note of the calls and results of the next message."""
        self.messages += 1
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                self.called(part.tool_call_id, part.tool_name)
            elif isinstance(part, ToolResultPart):
                self.answered(part.tool_call_id)

    def called(self, call_id: str, name: str) -> None:
        self._names[call_id] = name
        self._waiting.setdefault(name, {})[call_id] = None

    def answered(self, call_id: str) -> None:
        self._waiting.get(self._names.get(call_id, ""), {}).pop(call_id, None)

    def name(self, call_id: str) -> str | None:
        return self._names.get(call_id)

    def waiting(self, name: str) -> str | None:
        """Return the oldest call of tool ``name`` that has no result yet."""
        return next(iter(self._waiting.get(name, ())), None)

    def new_id(self, prefix: str, name: str) -> str:
        """Return an id for a call that came without one: the same for the same conversation."""
        base = made = f"{prefix}-{self.messages}-{name}"
        number = len(self._names)
        while made in self._names:
            made, number = f"{base}-{number}", number + 1
        return made
