"""Reading conversations: the shipped one, LoCoMo files, and JSON lines of messages."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from om_django.core.convert.openai import from_openai
from om_django.core.messages import (
    ROLES,
    InvalidMessage,
    Message,
    TextPart,
    dump_json,
    part_from_json,
    part_to_json,
    validate_part,
)
from om_django.core.text import clean_json, clean_text

DEMO_FILE = Path(__file__).parent.parent / "data" / "demo.jsonl"
#: Between two messages of a LoCoMo session; its files only say when a session began.
LOCOMO_PACE = timedelta(seconds=30)
LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)")


class BadInput(ValueError):
    """A file that cannot be played; the text names the file, the line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation to play: every message has a ``client_id``, not every one a time."""

    name: str
    format: str
    messages: tuple[Message, ...]


def read_conversation(path: Path | None = None) -> Conversation:
    """Return the conversation of a file, by default the shipped one.

    Takes a LoCoMo JSON, JSON lines of messages (this package's own or OpenAI chat messages), or a
    JSON list of them. Raises :class:`BadInput`.
    """
    file = path or DEMO_FILE
    text = _read(file)
    name = "demo" if path is None else re.sub(r"[^\w-]+", "-", file.stem).strip("-")[:80] or "file"
    whole = _whole_json(text, file)
    if isinstance(whole, dict) and "role" not in whole:
        return Conversation(name, "LoCoMo", _checked(_locomo(whole, file), file))
    if isinstance(whole, list):
        numbered: Iterable[tuple[str, Any]] = (
            (f"{file}, entry {n}", item) for n, item in enumerate(whole, 1)
        )
        return Conversation(name, "messages", _checked(_messages(numbered), file))
    return Conversation(name, "messages", _checked(_messages(_lines(text, file)), file))


def _read(file: Path) -> str:
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"{file}: there is no such file") from None
    except OSError as error:
        raise BadInput(f"{file}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: is not UTF-8 text (byte {error.start})") from None
    if not text.strip():
        raise BadInput(f"{file}: is empty")
    return text


def _whole_json(text: str, file: Path) -> Any:
    """Return the file as one JSON value, or ``None`` when it is one per line."""
    first = text.lstrip().partition("\n")[0]
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if first.strip() in ("{", "["):
            raise BadInput(f"{file}{_where(error)}: not JSON: {_reason(error)}") from None
        return None


def _where(error: Exception) -> str:
    return f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (column {error.colno})"
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


# Messages, one per line


def _lines(text: str, file: Path) -> Iterable[tuple[str, Any]]:
    # Not splitlines(): a JSON string may hold U+2028 and its like as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            yield place, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{place}: not JSON: {_reason(error)}") from None


def _messages(items: Iterable[tuple[str, Any]]) -> list[tuple[str, Message]]:
    found: list[tuple[str, Message]] = []
    earlier: list[Message] = []
    for number, (place, item) in enumerate(items, 1):
        try:
            message = _message(item, earlier)
        except InvalidMessage as error:
            raise BadInput(f"{place}: {error}") from None
        if message.client_id is None:
            message = replace(message, client_id=_content_id(number, message))
        earlier.append(message)
        found.append((place, message))
    return found


def _message(item: Any, earlier: list[Message]) -> Message:
    if not isinstance(item, dict):
        raise InvalidMessage(f"a message must be a JSON object, not {type(item).__name__}")
    role = item.get("role")
    known = (*ROLES, "developer") if "parts" not in item else ROLES
    if role not in known:
        raise InvalidMessage(f"unknown role {role!r:.60}: use one of {', '.join(ROLES)}")
    if "parts" in item:
        message = Message(role=role, parts=_parts(item["parts"]), metadata=_metadata(item))
    elif "content" in item or "tool_calls" in item:
        wire = {key: value for key, value in item.items() if key not in _OWN_KEYS}
        message = from_openai(wire, earlier=earlier)
        message = replace(message, metadata={**message.metadata, **_metadata(item)})
    else:
        raise InvalidMessage("a message needs 'parts', or 'content' as in OpenAI chat messages")
    for part in message.parts:
        validate_part(part)
    return replace(message, client_id=_id(item), created_at=_time(item.get("created_at")))


_OWN_KEYS = ("id", "created_at", "session", "metadata")


def _parts(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
        raise InvalidMessage("'parts' must be a list of objects")
    return tuple(map(part_from_json, value))


def _metadata(item: Mapping[str, Any]) -> dict[str, Any]:
    given = item.get("metadata") or {}
    if not isinstance(given, dict):
        raise InvalidMessage("'metadata' must be an object")
    session = {"session": item["session"]} if "session" in item else {}
    return {str(key): clean_json(value) for key, value in {**given, **session}.items()}


def _id(item: Mapping[str, Any]) -> str | None:
    value = item.get("id")
    if value is None:
        return None
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not 1 <= len(text) <= 255 or clean_text(text) != text:
        raise InvalidMessage("'id' must be a text of 1 to 255 characters")
    return text


def _time(value: Any) -> datetime | None:
    """Return an ISO 8601 time or seconds since 1970; without a zone it is taken as UTC."""
    if value is None:
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise InvalidMessage(
            f"'created_at' must be an ISO 8601 time such as 2026-01-31T09:30:00Z, not {value!r:.60}"
        ) from None


def _content_id(number: int, message: Message) -> str:
    """Return an id that stays the same when more messages are added to the file."""
    content = dump_json([message.role, [part_to_json(part) for part in message.parts]])
    digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
    return f"{number}-{digest[:16]}"


def _checked(found: list[tuple[str, Message]], file: Path) -> tuple[Message, ...]:
    seen: dict[str | None, str] = {}
    for place, message in found:
        if message.client_id in seen:
            raise BadInput(
                f"{place}: the id {message.client_id!r} is used twice, before in "
                f"{seen[message.client_id]}"
            )
        seen[message.client_id] = place
    if not found:
        raise BadInput(f"{file}: has no messages")
    return tuple(message for _place, message in found)


# LoCoMo


def _locomo(data: dict[str, Any], file: Path) -> list[tuple[str, Message]]:
    inner = data.get("conversation")
    data = inner if isinstance(inner, dict) else data
    speakers = {data.get("speaker_a"): "user", data.get("speaker_b"): "assistant"}
    if len(speakers) != 2 or not all(isinstance(name, str) and name for name in speakers):
        raise BadInput(
            f"{file}: neither messages nor a LoCoMo conversation: it needs two names in "
            "'speaker_a' and 'speaker_b', or a 'role' in each message"
        )
    numbers = sorted(int(m[1]) for m in map(_SESSION.fullmatch, data) if m)
    found: list[tuple[str, Message]] = []
    for number in numbers:
        place = f"{file}, session_{number}"
        turns = data[f"session_{number}"]
        if not isinstance(turns, list):
            raise BadInput(f"{place}: must be a list of messages")
        if not turns:
            continue
        begun = _locomo_time(data.get(f"session_{number}_date_time"), place)
        for index, turn in enumerate(turns, 1):
            spot = f"{place}, message {index}"
            message = _locomo_message(turn, speakers, spot)
            message = replace(
                message,
                client_id=message.client_id or f"D{number}:{index}",
                created_at=begun + LOCOMO_PACE * (index - 1),
                metadata={**message.metadata, "session": number},
            )
            found.append((spot, message))
    if not found:
        raise BadInput(f"{file}: has no sessions with messages ('session_1', 'session_2', ...)")
    return found


def _locomo_time(value: Any, place: str) -> datetime:
    try:
        return datetime.strptime(str(value).strip(), LOCOMO_TIME).replace(tzinfo=UTC)
    except ValueError:
        raise BadInput(
            f"{place}_date_time must be like '1:56 pm on 8 May, 2023', not {value!r:.60}"
        ) from None


def _locomo_message(turn: Any, speakers: Mapping[Any, str], place: str) -> Message:
    if not isinstance(turn, dict):
        raise BadInput(f"{place}: must be an object, not {type(turn).__name__}")
    speaker = turn.get("speaker")
    role = speakers.get(speaker) if isinstance(speaker, str) else None
    if role is None:
        names = " or ".join(map(repr, speakers))
        raise BadInput(f"{place}: unknown speaker {speaker!r:.60}: must be {names}")
    text, caption = turn.get("text"), turn.get("blip_caption")
    if not isinstance(text, str):
        raise BadInput(f"{place}: 'text' must be a string")
    if caption:
        text = f"{text}\n[image: {caption}]".strip()
    try:
        key = _id({"id": turn.get("dia_id")})
    except InvalidMessage as error:
        raise BadInput(f"{place}: dia_{str(error).replace(chr(39), '')}") from None
    return Message(
        role=role,  # type: ignore[arg-type] # one of the two values above
        parts=(TextPart(text),),
        client_id=key,
        metadata={"speaker": str(speaker)},
    )
