"""Tool exchanges as one line each: what was called, with what, and what came of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..log import MEDIUM
from ..messages import Message, ToolCallPart, ToolResultPart
from . import sentences
from . import words as w
from .score import Judged

MAX_ARGS_CHARS = 90
MAX_RESULT_CHARS = 120
MAX_FIELDS = 6
MAX_PARSED_CHARS = 20_000


class Exchanges:
    """The calls and results of a batch, paired by id."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._calls: dict[str, ToolCallPart] = {}
        self._answered: set[str] = set()
        self._shown: set[str] = set()
        for message in messages:
            for call in message.tool_calls:
                self._calls.setdefault(call.tool_call_id, call)
            self._answered.update(part.tool_call_id for part in message.tool_results)
        self._left = Counter(
            part.tool_name for message in messages for part in message.tool_results
        )

    def of(self, message: Message) -> Iterator[tuple[str, Judged]]:
        """Yield the lines a message brings: results with their call, and calls left open."""
        for call in message.tool_calls:
            if call.tool_call_id not in self._answered and call.tool_call_id not in self._shown:
                self._shown.add(call.tool_call_id)
                yield _line(f"{_called(call.tool_name, call)}: no result yet", 6.0)
        for result in message.tool_results:
            if result.tool_call_id not in self._shown:
                self._shown.add(result.tool_call_id)
                found = self._calls.get(result.tool_call_id)
                name = result.tool_name or (found.tool_name if found else "")
                said = {"ok": "", "error": "error: ", "denied": "denied: "}[result.outcome]
                # Of many calls of one tool the last ones tell how things stand.
                self._left[result.tool_name] -= 1
                score = 9.0 if result.outcome == "ok" else 9.6
                score *= 0.87 ** self._left[result.tool_name]
                yield _line(f"{_called(name, found)}: {said}{_outcome(result, found)}", score)


def _line(text: str, score: float) -> tuple[str, Judged]:
    text = sentences.hide_secrets(" ".join(text.split()))
    tokens = w.words(text)
    facts = frozenset(token for token in tokens if token[:1].isdigit())
    return text, Judged(score, MEDIUM, tuple(w.content(tokens)) or (text,), facts=facts)


def _called(name: str, call: ToolCallPart | None) -> str:
    name = sentences.clip(" ".join(name.split()) or "unnamed", 60)
    if call is None:
        return f"Tool {name}"
    return f"Tool {name}({sentences.clip(_brief(_args(call)), MAX_ARGS_CHARS)})"


def _args(call: ToolCallPart) -> object:
    return _parsed(call.raw_args) if call.args is None and call.raw_args else call.args


def _outcome(part: ToolResultPart, call: ToolCallPart | None) -> str:
    value: object = part.result
    if isinstance(value, str):
        value = _parsed(value)
    given = _args(call) if call is not None else None
    if isinstance(value, Mapping) and isinstance(given, Mapping):
        # Many tools repeat what they were given.
        value = {k: v for k, v in value.items() if k not in given or given[k] != v} or value
    text = _brief(value)
    if isinstance(value, str):
        found = sentences.split(value[:MAX_PARSED_CHARS])
        text = next((s for s in found if len(w.content(w.words(s))) > 1), found[0] if found else "")
    if not text.strip():
        return "not approved by the user" if part.outcome == "denied" else "empty result"
    return sentences.clip(text.strip(), MAX_RESULT_CHARS)


def _parsed(text: str) -> object:
    if text.lstrip()[:1] in ("{", "[") and len(text) <= MAX_PARSED_CHARS:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _brief(value: object, depth: int = 0) -> str:
    """Return the leaves of a value as ``name=value``, few and short."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        if len(value) == 1 and isinstance(inner := next(iter(value.values())), Mapping | list):
            return _brief(inner, depth + 1)
        parts: list[str] = []
        for key, entry in value.items():
            if len(parts) == MAX_FIELDS:
                parts.append("…")
                break
            text = _brief(entry, depth + 1)
            if text:
                parts.append(f"{key}={text}")
        return ", ".join(parts)
    if isinstance(value, list | tuple):
        if depth > 1 or not value:
            return f"{len(value)} items"
        if all(isinstance(entry, list) for entry in value):
            return f"{len(value)} rows"
        shown = " / ".join(filter(None, (_brief(entry, depth + 1) for entry in value[:3])))
        return shown if len(value) <= 3 else f"{len(value)} items: {shown} / …"
    if isinstance(value, bool):
        return str(value).lower()
    return sentences.clip(" ".join(str(value)[:2_000].split()), 60)
