"""Contents of the Gemini API, in the camelCase form of its REST interface.

Reading accepts the objects of google-genai and snake_case as well. Gemini gives calls no id as a
rule; they get one here, which is not sent back. A content that mixes results and other parts
becomes several messages and is put together again. ``data-*`` parts, reasoning of other providers
and parts of other formats are not sent, nor are messages that have nothing else.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from ..messages import (
    OUTCOMES,
    FilePart,
    ImagePart,
    InvalidMessage,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from ..text import JSON
from . import (
    Calls,
    as_list,
    as_mapping,
    as_text,
    checked,
    inner,
    media_label,
    note,
    noted,
    other_part,
    own_part,
    parse_json,
    plain,
    split_data_url,
    without,
)

NAME = "gemini"
_ROLES = {"user": "user", "model": "assistant", "function": "user"}
_KINDS = ("text", "inlineData", "fileData", "functionCall", "functionResponse")
# free-form JSON: its keys are the application's
_FREE = ("args", "response", "partMetadata")
_NAMES = (
    *("thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse"),
    *("executableCode", "codeExecutionResult", "toolCall", "toolResponse", "videoMetadata"),
    *("mediaResolution", "partMetadata", "mimeType", "fileUri", "displayName", "partialArgs"),
    *("willContinue", "startOffset", "endOffset"),
)
_CAMEL = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): name for name in _NAMES}
_CONTINUED = "continued"


def from_gemini(content: object, *, earlier: Iterable[Message] = ()) -> list[Message]:
    """Return the messages of one content: results and other parts are messages of their own.

    ``earlier`` are the messages before it: results find their calls there, and ids made up here
    differ from theirs. Raises :class:`InvalidMessage` when the content is not one.
    """
    return _messages(content, Calls(earlier), "content")


def messages_from_gemini(contents: object, *, system_instruction: object = None) -> list[Message]:
    """Return the messages of a list of contents, led by the system instruction if there is one.

    Raises :class:`InvalidMessage` when one of them is not a content.
    """
    calls = Calls()
    out = [] if system_instruction is None else [_system(system_instruction, calls)]
    for i, content in enumerate(as_list(contents, "contents")):
        out.extend(_messages(content, calls, f"contents[{i}]"))
    return out


def to_gemini(messages: Sequence[Message]) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the system instruction, ``None`` if there is none, and the contents.

    Results that follow each other go into one content, as Gemini asks for parallel calls.
    """
    system: list[dict[str, Any]] = []
    extra: dict[str, Any] = {}
    contents: list[dict[str, Any]] = []
    results_last = False
    for message in messages:
        parts = [wire for part in message.parts if (wire := _wire_part(part)) is not None]
        if not parts:
            continue
        rest = noted(message.metadata, NAME)
        if message.role == "system":
            system += parts
            extra |= rest
            continue
        role = "model" if message.role == "assistant" else "user"
        joins = rest.pop("parts", None) == _CONTINUED or (results_last and message.role == "tool")
        # what it continued may be gone from these messages
        if joins and contents and (contents[-1].get("role") == "model") == (role == "model"):
            contents[-1]["parts"] += parts
        else:
            head = {"role": role, "parts": parts, **rest}
            contents.append({k: v for k, v in head.items() if v is not None})
        results_last = message.role == "tool"
    instruction = {k: v for k, v in {"parts": system, **extra}.items() if v is not None}
    return (instruction if system else None), contents


def _system(instruction: object, calls: Calls) -> Message:
    if isinstance(instruction, str):
        instruction = {"parts": [{"text": instruction}]}
    data = _content(instruction, "systemInstruction")
    calls.messages += 1
    parts = [_part(item, calls, f"parts[{i}]") for i, item in enumerate(data["parts"])]
    return Message(
        role="system", parts=tuple(parts), metadata=note(NAME, without(data, ("parts",)))
    )


def _messages(content: object, calls: Calls, where: str) -> list[Message]:
    data = _content(content, where)
    role = data.get("role")
    neutral: Any = _ROLES.get("user" if role is None else role if isinstance(role, str) else "")
    if neutral is None:
        raise InvalidMessage(f"role of {where} must be user, model or function")
    rest = without(data, ("role", "parts"))
    if role in (None, "function"):
        rest["role"] = role
    out: list[Message] = []
    numbered = enumerate(data["parts"])
    for results, run in groupby(numbered, key=lambda item: "functionResponse" in item[1]):
        parts = [_part(part, calls, f"parts[{i}] of {where}") for i, part in run]
        meta = {"parts": _CONTINUED} if out else rest
        kind: Any = "tool" if results else neutral
        out.append(Message(role=kind, parts=tuple(parts), metadata=note(NAME, meta)))
        calls.messages += 1
    return out or [Message(role=neutral, metadata=note(NAME, rest))]


def _content(content: object, where: str) -> dict[str, Any]:
    """Return a content as a dict in camelCase without nulls; ``parts`` is a list of dicts."""
    data = as_mapping(plain(content), where)
    found = as_list(data.get("parts") or [], f"parts of {where}")
    parts = [_camel(as_mapping(p, f"parts[{i}] of {where}")) for i, p in enumerate(found)]
    return {**{k: v for k, v in data.items() if v is not None}, "parts": parts}


def _camel(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        _CAMEL.get(key, key): value if _CAMEL.get(key, key) in _FREE else _camel_value(value)
        for key, value in data.items()
        if value is not None
    }


def _camel_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel_value(item) for item in value]
    return _camel(value) if isinstance(value, dict) else value


def _part(data: dict[str, Any], calls: Calls, where: str) -> Part:
    kinds = [kind for kind in _KINDS if kind in data]
    if len(kinds) != 1:
        named = [key for key, value in data.items() if isinstance(value, dict)]
        return other_part(NAME, named[0] if named else "part", data)
    kind = kinds[0]
    value, rest = data[kind], without(data, kinds)
    if kind == "text":
        return _text(as_text(value, f"text of {where}"), rest)
    body = as_mapping(value, f"{kind} of {where}")
    if kind == "functionCall":
        return _call(body, rest, calls, where)
    if kind == "functionResponse":
        return _result(body, rest, calls, where)
    return _media(kind, body, rest, where)


def _text(text: str, rest: dict[str, Any]) -> Part:
    if rest.get("thought") is True:
        return ReasoningPart(text, extra=note(NAME, rest))
    # an empty note: Gemini's own empty text goes back, that of others is left out
    return TextPart(text, extra=note(NAME, rest) if text else {NAME: rest})


def _call(body: dict[str, Any], rest: dict[str, Any], calls: Calls, where: str) -> ToolCallPart:
    name = as_text(body.get("name"), f"functionCall.name of {where}")
    left = without(body, ("id", "name", "args"))
    args = None if body.get("args") is None else as_mapping(body["args"], f"args of {where}")
    call_id = body.get("id")
    if not isinstance(call_id, str) or not call_id:
        call_id, left["id"] = calls.new_id(NAME, name), body.get("id")
    calls.called(call_id, name)
    if left:
        rest["functionCall"] = left
    return ToolCallPart(call_id, name, args, extra=note(NAME, rest))


def _result(body: dict[str, Any], rest: dict[str, Any], calls: Calls, where: str) -> ToolResultPart:
    name = as_text(body.get("name"), f"functionResponse.name of {where}")
    left = without(body, ("id", "name", "response"))
    given = body.get("id")
    call_id = given if isinstance(given, str) and given else ""
    if calls.name(call_id) is None:
        waiting = calls.waiting(name)
        # a known id is not given up for a call that has an id of its own
        if waiting and (not call_id or waiting.startswith(f"{NAME}-")):
            call_id = waiting
        call_id = call_id or calls.new_id(NAME, name)
    if call_id != given:
        left["id"] = given
    calls.answered(call_id)
    outcome: Any = "ok"
    result: JSON = None
    if body.get("response") is None:
        left["response"] = None
    else:
        response = as_mapping(body["response"], f"functionResponse.response of {where}")
        outcome, result = _unwrap(response)
    if left:
        rest["functionResponse"] = left
    return ToolResultPart(call_id, name, result, outcome, extra=note(NAME, rest))


def _media(kind: str, body: dict[str, Any], rest: dict[str, Any], where: str) -> Part:
    source = "data" if kind == "inlineData" else "fileUri"
    media: dict[str, Any] = {
        "data" if kind == "inlineData" else "url": as_text(body.get(source), f"{source} of {where}")
    }
    known = {source}
    for key, name in (("mimeType", "media_type"), ("displayName", "filename")):
        if isinstance(body.get(key), str):
            known.add(key)
            media[name] = body[key]
    left = without(body, known)
    if "media_type" not in media:
        left["mimeType"] = body.get("mimeType")
    if left:
        rest[kind] = left
    cls = ImagePart if media.get("media_type", "").startswith("image/") else FilePart
    return checked(cls(**media, extra=note(NAME, rest)))


def _wire_part(part: Part) -> dict[str, Any] | None:
    """Return a part as Gemini takes it, ``None`` when it has no such part."""
    if isinstance(part, OtherPart):
        return own_part(part, NAME)
    rest = noted(part.extra, NAME)
    if isinstance(part, TextPart):
        return {"text": part.text, **rest} if part.text or NAME in part.extra else None
    if isinstance(part, ReasoningPart):
        return {"text": part.text, **rest} if rest.get("thought") is True else None
    if isinstance(part, ToolCallPart):
        kind = "functionCall"
        body = {"id": part.tool_call_id, "name": part.tool_name, "args": _args(part)}
    elif isinstance(part, ToolResultPart):
        kind = "functionResponse"
        response = _wrap(part.outcome, part.result)
        body = {"id": part.tool_call_id, "name": part.tool_name, "response": response}
    elif isinstance(part, ImagePart | FilePart):
        kind, body = _wire_media(part)
        if kind == "text":
            return body
    else:
        return None
    body |= inner(rest, kind)
    return {**without(rest, (kind,)), kind: {k: v for k, v in body.items() if v is not None}}


def _args(part: ToolCallPart) -> dict[str, Any] | None:
    """Return the arguments as the object that Gemini asks for, in the order they came in."""
    sent = None if part.raw_args is None else parse_json(part.raw_args)
    if isinstance(sent, dict):
        return sent
    if isinstance(part.args, dict):
        return part.args
    if part.args is None:
        return {"input": part.raw_args} if part.raw_args else None
    return {"input": part.args}


def _wire_media(part: ImagePart | FilePart) -> tuple[str, dict[str, Any]]:
    default = "image/png" if isinstance(part, ImagePart) else "application/octet-stream"
    media_type, data, url = part.media_type, part.data, part.url
    if data is None and url is not None and (split := split_data_url(url)):
        media_type, data = split
    named = {"displayName": part.filename}
    if data is not None:
        return "inlineData", {"mimeType": media_type or default, "data": data, **named}
    if url is None or url.lower().startswith("data:"):
        return "text", {"text": media_label(part)}
    if media_type is None:
        media_type = mimetypes.guess_type(url.split("?")[0].rsplit("/", 1)[-1])[0]
    return "fileData", {"mimeType": media_type, "fileUri": url, **named}


def _wrap(outcome: str, result: JSON) -> dict[str, Any]:
    """Return a result as the object that Gemini asks for; :func:`_unwrap` undoes it exactly."""
    if outcome != "ok":
        return {outcome: result}
    if isinstance(result, dict) and not _wrapped(result) and not _failed(result):
        return result
    return {"result": result}


def _unwrap(response: dict[str, Any]) -> tuple[str, JSON]:
    if _failed(response):
        return next(iter(response.items()))
    return "ok", response["result"] if _wrapped(response) else response


def _failed(value: object) -> bool:
    """Tell whether this is ``{"error": ...}`` or ``{"denied": ...}`` and nothing else."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in OUTCOMES[1:]


def _wrapped(value: object) -> bool:
    """Tell whether this object is there only to hold a result."""
    while isinstance(value, dict) and value.keys() == {"result"}:
        value = value["result"]
        if not isinstance(value, dict) or _failed(value):
            return True
    return False
