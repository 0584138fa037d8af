"""Messages of the OpenAI Chat Completions API and of everything compatible with it.

Keys that need no reading are carried along. ``data-*`` parts, reasoning of other providers and
parts of other formats are not sent. An attachment that cannot be sent becomes one line of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..messages import (
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
    data_url,
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

NAME = "openai"
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_RESULT_ROLES = ("tool", "function")
_REASONING_FIELDS = ("reasoning_content", "reasoning")
# marks of text that came from a field beside content
_REFUSAL, _AUDIO = "message.refusal", "message.audio"
_CALL_FIELDS = {"function": "arguments", "custom": "input"}
_AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
# what the SDK adds to answers for its caller; it never goes over the wire
_SDK_ONLY = ("parsed", "parsed_arguments")


def from_openai(message: object, *, earlier: Iterable[Message] = ()) -> Message:
    """Return the message of a wire message: a dict, an object of the SDK or a dataclass.

    ``earlier`` are the messages before it; they give a result the name of its tool.
    Raises :class:`InvalidMessage` when the message is not one.
    """
    return _message(message, Calls(earlier))


def messages_from_openai(messages: object) -> list[Message]:
    """Return the messages of a list of wire messages, one for one.

    Raises :class:`InvalidMessage` when one of them is not a message.
    """
    calls = Calls()
    out = []
    for item in as_list(messages, "messages"):
        out.append(_message(item, calls))
        calls.see(out[-1])
    return out


def to_openai(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the wire messages; several results in one message become one wire message each.

    A result that failed says so in its text: ``[error] ...`` or ``[denied] ...``.
    """
    out: list[dict[str, Any]] = []
    legacy: set[str] = set()
    for message in messages:
        if message.role != "tool":
            wire = _wire(message, legacy)
            if wire is not None:
                out.append(wire)
        out.extend(_wire_result(part, legacy) for part in message.tool_results)
    return out


def _message(message: object, calls: Calls) -> Message:
    data = as_mapping(plain(message, drop=_SDK_ONLY), "an OpenAI message")
    role = data.get("role")
    if role in _RESULT_ROLES:
        return Message(role="tool", parts=(_result(data, calls),))
    if not isinstance(role, str) or role not in _ROLES:
        names = ", ".join((*_ROLES, *_RESULT_ROLES))
        raise InvalidMessage(f"role of an OpenAI message must be one of {names}")
    rest = without(data, ("role", "content"))
    before: list[Part] = []
    after: list[Part] = []
    if role == "assistant":
        before, after = _assistant_parts(rest, calls)
    content = _content(data.get("content"), role)
    parts = (*before, *content, *after)
    if role == "developer":
        rest["role"] = role
    form = _form(data)
    if form != _default_form(data.get("content")) or not parts:
        rest["content"] = form
    neutral: Any = _ROLES[role]
    return Message(role=neutral, parts=parts, metadata=note(NAME, rest))


def _form(data: Mapping[str, Any]) -> str:
    if "content" not in data:
        return "absent"
    content = data["content"]
    return "null" if content is None else "string" if isinstance(content, str) else "list"


def _default_form(content: object) -> str:
    """Return the form that content takes unless the message is noted to have another."""
    if not isinstance(content, list):
        return "null" if content is None else "string"
    if len(content) == 1 and content[0] == {"type": "text", "text": content[0].get("text")}:
        return "string"
    return "list" if content else "null"


def _assistant_parts(rest: dict[str, Any], calls: Calls) -> tuple[list[Part], list[Part]]:
    """Take the parts out of the fields beside ``content``: those before it and those after it."""
    before: list[Part] = []
    after: list[Part] = []
    for field in _REASONING_FIELDS:
        if isinstance(rest.get(field), str) and not before:
            before.append(ReasoningPart(rest.pop(field), extra={NAME: {"type": field}}))
    if rest.get("refusal") is not None:
        text = as_text(rest.pop("refusal"), "refusal")
        after.append(TextPart(text, extra={NAME: {"type": _REFUSAL}}))
    audio = rest.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("transcript"), str):
        del rest["audio"]
        kept: JSON = without(audio, ("transcript",))
        after.append(TextPart(audio["transcript"], extra={NAME: {"type": _AUDIO, "audio": kept}}))
    if rest.get("function_call") is not None:
        call = {"type": "function_call", "function": rest.pop("function_call")}
        after.append(_call(call, calls, "function_call"))
    if rest.get("tool_calls"):
        found = as_list(rest.pop("tool_calls"), "tool_calls")
        after.extend(_call(item, calls, f"tool_calls[{i}]") for i, item in enumerate(found))
    return before, after


def _call(item: object, calls: Calls, where: str) -> ToolCallPart:
    data = as_mapping(item, where)
    kind = data.get("type", "function")
    body_key = "function" if kind == "function_call" else kind
    if not isinstance(body_key, str) or body_key not in _CALL_FIELDS:
        raise InvalidMessage(f"type of {where} must be function or custom")
    field = _CALL_FIELDS[body_key]
    body = as_mapping(data.get(body_key), f"{body_key} of {where}")
    name = as_text(body.get("name"), f"name of {where}")
    raw = as_text(body.get(field), f"{field} of {where}")
    if kind == "function_call":
        call_id = calls.new_id(NAME, name)
    else:
        call_id = as_text(data.get("id"), f"id of {where}", empty=False)
    rest = without(data, ("id", "type", body_key)) | note(body_key, without(body, ("name", field)))
    if kind != "function":
        rest["type"] = kind
    args: JSON = {"input": raw} if kind == "custom" else parse_json(raw)
    return ToolCallPart(call_id, name, args, raw, extra=note(NAME, rest))


def _result(data: dict[str, Any], calls: Calls) -> ToolResultPart:
    rest = without(data, ("role", "tool_call_id", "content"))
    if data["role"] == "function":
        name = as_text(data.get("name"), "name of a function message")
        call_id = calls.waiting(name) or calls.new_id(NAME, name)
        rest = {**without(data, ("role", "name", "content")), "role": "function"}
    else:
        call_id = as_text(data.get("tool_call_id"), "tool_call_id of a tool message", empty=False)
        name = calls.name(call_id) or str(data.get("name") or "")
    content = data.get("content")
    if not isinstance(content, str):
        rest["content"] = form = _form(data)
        if form == "list" and not isinstance(content, list):
            raise InvalidMessage("content of a tool message must be a string or a list of parts")
    return ToolResultPart(call_id, name, content, extra=note(NAME, rest))


def _content(content: object, role: str) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if not isinstance(content, list):
        raise InvalidMessage("content of an OpenAI message must be a string or a list of parts")
    return [_content_part(item, role, f"content[{i}]") for i, item in enumerate(content)]


def _content_part(item: object, role: str, where: str) -> Part:
    data = as_mapping(item, where)
    kind = as_text(data.get("type"), f"type of {where}", empty=False)
    rest = without(data, ("type", kind))
    if kind == "text":
        return TextPart(as_text(data.get("text"), f"text of {where}"), extra=note(NAME, rest))
    if kind == "refusal":
        rest["type"] = kind
        return TextPart(as_text(data.get(kind), f"refusal of {where}"), extra=note(NAME, rest))
    # only users can attach; what else a compatible server puts in an answer is kept as it is
    if role == "user" and kind in _MEDIA:
        body = as_mapping(data.get(kind), f"{kind} of {where}")
        return _MEDIA[kind](body, rest, f"{kind} of {where}")
    return other_part(NAME, kind, data)


def _image(body: dict[str, Any], rest: dict[str, Any], where: str) -> Part:
    url = as_text(body.get("url"), f"url in {where}")
    given = body.get("detail")
    detail = given if isinstance(given, str) else None
    left = without(body, ("url",) if detail is None else ("url", "detail"))
    extra = note(NAME, rest | note("image_url", left))
    if split := split_data_url(url):
        return ImagePart(media_type=split[0], data=split[1], detail=detail, extra=extra)
    return checked(ImagePart(url=url, detail=detail, extra=extra))


def _audio(body: dict[str, Any], rest: dict[str, Any], where: str) -> Part:
    data = as_text(body.get("data"), f"data in {where}")
    form = as_text(body.get("format"), f"format in {where}")
    media_type = {"mp3": "audio/mpeg"}.get(form, f"audio/{form}")
    left = without(body, ("data", "format"))
    if _AUDIO_FORMATS.get(media_type) != form:
        left["format"] = form
        rest["type"] = "input_audio"
    extra = note(NAME, rest | note("input_audio", left))
    return FilePart(data=data, media_type=media_type, extra=extra)


def _file(body: dict[str, Any], rest: dict[str, Any], where: str) -> Part:
    filename, file_id, data = (body.get(key) for key in ("filename", "file_id", "file_data"))
    known = {"filename"} if isinstance(filename, str) else set()
    media: dict[str, Any] = {"filename": filename} if known else {}
    if file_id is not None:
        known.add("file_id")
        media["file_id"] = as_text(file_id, f"file_id in {where}")
    elif data is not None:
        known.add("file_data")
        if split := split_data_url(as_text(data, f"file_data in {where}")):
            media["media_type"], media["data"] = split
        else:
            media["url" if data.lower().startswith("data:") else "data"] = data
    else:
        raise InvalidMessage(f"{where} needs file_id or file_data")
    if left := without(body, known):
        rest["file"] = left
    if _media_kind(FilePart(**media)) != "file":
        rest["type"] = "file"
    return FilePart(**media, extra=note(NAME, rest))


_MEDIA = {"image_url": _image, "input_audio": _audio, "file": _file}


def _wire(message: Message, legacy: set[str]) -> dict[str, Any] | None:
    rest = noted(message.metadata, NAME)
    form = rest.pop("content", None)
    out: dict[str, Any] = {"role": rest.pop("role", message.role)}
    content: list[dict[str, Any]] = []
    fields: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            _put_call(part, fields, calls, legacy)
        elif not _put_field(part, fields) and (item := _wire_part(part, message.role)):
            content.append(item)
    if calls:
        fields["tool_calls"] = calls
    if not content and not fields and form is None:
        return None
    if form is None or (content and form != "list"):
        form = _default_form(content)
    if form != "absent":
        shapes = {"list": content, "string": content[0].get("text") if content else None}
        out["content"] = shapes.get(form)
    return {**out, **rest, **fields}


def _put_field(part: Part, fields: dict[str, Any]) -> bool:
    """Put a part that came from a field beside ``content`` back there; tell whether it did."""
    mark = {} if isinstance(part, OtherPart) else noted(part.extra, NAME)
    kind = mark.get("type")
    if isinstance(part, ReasoningPart) and kind in _REASONING_FIELDS:
        fields[kind] = fields.get(kind, "") + part.text
    elif isinstance(part, TextPart) and kind == _REFUSAL:
        fields["refusal"] = part.text
    elif isinstance(part, TextPart) and kind == _AUDIO:
        fields["audio"] = {**inner(mark, "audio"), "transcript": part.text}
    else:
        return False
    return True


def _put_call(
    part: ToolCallPart, fields: dict[str, Any], calls: list[dict[str, Any]], legacy: set[str]
) -> None:
    rest = noted(part.extra, NAME)
    kind = rest.pop("type", "function")
    body_key = "custom" if kind == "custom" else "function"
    body = {
        "name": part.tool_name,
        _CALL_FIELDS[body_key]: part.args_text(),
        **inner(rest, body_key),
    }
    rest.pop(body_key, None)
    if kind == "function_call":
        legacy.add(part.tool_call_id)
        fields["function_call"] = body
    else:
        calls.append({"id": part.tool_call_id, "type": kind, body_key: body, **rest})


def _wire_result(part: ToolResultPart, legacy: set[str]) -> dict[str, Any]:
    rest = noted(part.extra, NAME)
    form = rest.pop("content", None)
    out: dict[str, Any]
    if rest.pop("role", None) == "function" or part.tool_call_id in legacy:
        out = {"role": "function", "name": part.tool_name}
    else:
        out = {"role": "tool", "tool_call_id": part.tool_call_id}
    if part.outcome != "ok":
        text = "" if part.result is None else part.result_text()
        out["content"] = f"[{part.outcome}] {text}".rstrip()
    elif form in ("list", "null"):
        out["content"] = part.result
    elif form != "absent":
        out["content"] = part.result_text()
    return {**out, **rest}


def _wire_part(part: Part, role: str) -> dict[str, Any] | None:
    """Return a part of the content list, ``None`` when Chat Completions has no such part."""
    if isinstance(part, OtherPart):
        return own_part(part, NAME)
    if not isinstance(part, TextPart | ImagePart | FilePart):
        return None
    rest = noted(part.extra, NAME)
    kind = rest.pop("type", None)
    if isinstance(part, TextPart):
        kind = kind or "text"
        return {"type": kind, kind: part.text, **rest}
    kind = kind or _media_kind(part)
    body = _media_body(part, kind) if role == "user" else None
    if body is None:
        return {"type": "text", "text": media_label(part)}
    body.update(inner(rest, kind))
    return {"type": kind, kind: body, **without(rest, (kind,))}


def _media_kind(part: ImagePart | FilePart) -> str:
    media_type = part.media_type or ""
    if part.file_id is not None:
        return "file"
    if isinstance(part, ImagePart) or media_type.startswith("image/"):
        return "image_url"
    if part.data is not None and media_type in _AUDIO_FORMATS:
        return "input_audio"
    return "file"


def _media_body(part: ImagePart | FilePart, kind: str) -> dict[str, Any] | None:
    """Return what a part of ``kind`` holds, ``None`` when it cannot hold this attachment."""
    url = part.url
    if part.data is not None and (kind == "image_url" or part.media_type):
        url = data_url(part.media_type or "image/png", part.data)
    body: dict[str, Any]
    if kind == "image_url":
        if url is None or not url.lower().startswith(("http://", "https://", "data:")):
            return None
        body = {"url": url}
        if isinstance(part, ImagePart) and part.detail is not None:
            body["detail"] = part.detail
        return body
    if kind == "input_audio":
        return {"data": part.data, "format": _AUDIO_FORMATS.get(part.media_type or "")}
    if part.file_id is not None:
        body = {"file_id": part.file_id}
    elif url is not None and not url.lower().startswith("data:"):
        return None
    else:
        body = {"file_data": part.data if url is None else url}
    if part.filename is not None:
        body["filename"] = part.filename
    return body
