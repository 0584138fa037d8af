"""Finding out which format a message has."""

from __future__ import annotations

from typing import Any

from ..messages import InvalidMessage, Message
from . import plain
from .gemini import from_gemini
from .openai import from_openai
from .ui import from_ui


def messages_from(value: Any) -> list[Message]:
    """Return the messages in a value that a model's SDK or a frontend gave.

    Takes a :class:`Message`, an OpenAI chat message, a Gemini content or an AI SDK UI message, as
    object or dict, or a list of them. Raises :class:`InvalidMessage`.
    """
    items = list(value) if isinstance(value, list | tuple) else [value]
    messages: list[Message] = []
    for item in items:
        messages.extend([item] if isinstance(item, Message) else _from_one(item, messages))
    return messages


def _from_one(item: Any, earlier: list[Message]) -> list[Message]:
    data = plain(item)
    if not isinstance(data, dict):
        raise InvalidMessage(f"a message must be an object, not {type(item).__name__}")
    parts = data.get("parts")
    if isinstance(parts, list):
        if any(isinstance(part, dict) and "type" in part for part in parts):
            return from_ui(item)
        return from_gemini(item, earlier=earlier)
    if "role" not in data:
        raise InvalidMessage("a message needs a role and content (OpenAI) or parts (Gemini, UI)")
    return [from_openai(item, earlier=earlier)]
