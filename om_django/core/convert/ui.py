"""UI messages of the AI SDK, version 5 to 7, as ``useChat`` and assistant-ui send and show them.

One assistant message of the UI is a whole turn. Here each of its steps is a message, with the
results of its calls as the next one, and what the user threw in meanwhile (``steering-message``) is
a message of the user; ``metadata["ui"]`` says which UI message they belong to and which step they
are. A call and its result are one part in the UI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ..messages import (
    DataPart,
    FilePart,
    ImagePart,
    InvalidMessage,
    Message,
    OtherPart,
    Outcome,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    call_ids,
)
from ..text import JSON
from . import (
    as_list,
    as_mapping,
    as_text,
    checked,
    data_url,
    inner,
    note,
    noted,
    other_part,
    own_part,
    plain,
    split_data_url,
    without,
)
from .pairs import Pairs, Place, match_pairs

NAME = "ui"
_ROLES = ("system", "user", "assistant")
_RESULT_FIELDS = ("preliminary", "resultProviderMetadata")
_STATES: dict[Outcome, str] = {
    "ok": "output-available",
    "error": "output-error",
    "denied": "output-denied",
}
_OUTCOMES: dict[str, Outcome] = {state: outcome for outcome, state in _STATES.items()}
_ABSENT = "absent"
_FILE_ID = "file-id:"
# a note in metadata must not be able to fill the memory
_MAX_STARTS = 10_000

# role and parts of a message, what to note beside the id, and what makes the id its own
_Step: TypeAlias = tuple[Role, Sequence[Part], dict[str, Any], str]


def from_ui(ui_message: object) -> list[Message]:
    """Return the messages of one UI message: one, or one per step and one per step's results.

    They get ``client_id`` from the id of the UI message, so that sending it again adds nothing but
    the steps and results that are new. Raises :class:`InvalidMessage` when it is not a UI message.
    """
    data = as_mapping(plain(ui_message), "a UI message")
    ui_id = as_text(data.get("id"), "id of a UI message")
    role = data.get("role")
    if role not in _ROLES:
        raise InvalidMessage(f"role of a UI message must be one of {', '.join(_ROLES)}")
    found = as_list(data.get("parts"), "parts of a UI message")
    head: dict[str, Any] = {"metadata": data["metadata"]} if "metadata" in data else {}
    if rest := without(data, ("id", "role", "parts", "metadata")):
        head["rest"] = rest
    if role == "assistant":
        steps = _Steps()
        for i, item in enumerate(found):
            steps.add(as_mapping(item, f"parts[{i}]"), f"parts[{i}]")
        split = steps.finish()
    else:
        split = [(role, _parts(found, "parts"), {}, "")]
    return [
        Message(
            role=neutral,
            parts=tuple(parts),
            client_id=f"{ui_id}{suffix}" if ui_id else None,
            metadata={NAME: {"id": ui_id, **marks, **({} if n else head)}},
        )
        for n, (neutral, parts, marks, suffix) in enumerate(split)
    ]


def to_ui(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the UI messages: the steps of a turn are one, and a result is part of its call."""
    pairs = match_pairs(messages)
    pairs = replace(pairs, orphans=_lost(messages, pairs.orphans))
    out: list[dict[str, Any]] = []
    groups: list[list[int]] = []
    for i, message in enumerate(messages):
        if not groups or _begins(messages[i - 1], message):
            groups.append([])
        groups[-1].append(i)
    for group in groups:
        _fold(messages, group, pairs, out)
    return out


class _Steps:
    """Splits the parts of an assistant's UI message into steps."""

    def __init__(self) -> None:
        self._done: list[_Step] = []
        self._step = 0
        self._parts: list[Part] = []
        self._results: list[ToolResultPart] = []
        # how many step-start parts stand before the current step
        self._starts = 0

    def add(self, item: dict[str, Any], where: str) -> None:
        kind = item.get("type")
        if item == {"type": "step-start"}:
            self._flush()
            self._starts += 1
        elif kind == "steering-message":
            self._flush()
            said = _parts(as_list(item.get("parts"), f"parts of {where}"), f"{where}.parts")
            self._add("user", said, {"steering": without(item, ("type", "parts"))})
        elif isinstance(kind, str) and (kind.startswith("tool-") or kind == "dynamic-tool"):
            call, result = _tool(item, where)
            self._parts.append(call)
            if result is not None:
                self._results.append(result)
        else:
            part = _part(item, where)
            # the model went on after it had the results: a new step, marked or not
            if self._results and not isinstance(part, DataPart | OtherPart):
                self._flush()
            self._parts.append(part)

    def _flush(self) -> None:
        if not self._parts:
            return
        step = self._step
        self._add("assistant", self._parts, {})
        if self._results:
            # when more results have come, the message is another one
            suffix = f":{step}:{len(self._results)}"
            self._done.append(("tool", self._results, {"step": step}, suffix))
        self._parts, self._results = [], []

    def _add(self, role: Role, parts: Sequence[Part], marks: dict[str, Any]) -> None:
        step = self._step
        if self._starts != _usual_starts(role, step):
            marks["starts"] = self._starts
        if step:
            marks["step"] = step
        self._done.append((role, parts, marks, f":{step}" if step else ""))
        self._step, self._starts = step + 1, 0

    def finish(self) -> list[_Step]:
        """Return the steps; step-start parts at the end make a step without parts."""
        self._flush()
        if self._starts or not self._done:
            self._add("assistant", (), {})
        return self._done


def _usual_starts(role: str, step: int) -> int:
    """Return how many step-start parts stand before a step unless it is noted otherwise."""
    return 1 if step and role == "assistant" else 0


def _parts(items: Sequence[object], where: str) -> list[Part]:
    named = ((item, f"{where}[{i}]") for i, item in enumerate(items))
    return [_part(as_mapping(item, name), name) for item, name in named]


def _part(data: dict[str, Any], where: str) -> Part:
    kind = as_text(data.get("type"), f"type of {where}", empty=False)
    if kind in ("text", "reasoning"):
        cls = TextPart if kind == "text" else ReasoningPart
        rest = without(data, ("type", "text"))
        return cls(as_text(data.get("text"), f"text of {where}"), extra=note(NAME, rest))
    if kind == "file":
        return _file(data, where)
    if kind.startswith("data-"):
        given = data.get("id")
        part_id = given if isinstance(given, str) else None
        rest = without(data, ("type", "data") if part_id is None else ("type", "data", "id"))
        if "data" not in data:
            rest["data"] = _ABSENT
        return DataPart(kind, data.get("data"), part_id, extra=note(NAME, rest))
    return other_part(NAME, kind, data)


def _file(data: dict[str, Any], where: str) -> Part:
    media_type = as_text(data.get("mediaType"), f"mediaType of {where}")
    url = as_text(data.get("url"), f"url of {where}")
    named = data.get("filename")
    filename = named if isinstance(named, str) else None
    known = ("type", "mediaType", "url", *(() if filename is None else ("filename",)))
    media: dict[str, Any] = {"media_type": media_type, "filename": filename}
    split = split_data_url(url)
    if split is not None and split[0] == media_type:
        media["data"] = split[1]
    elif url.startswith(_FILE_ID):
        media["file_id"] = url.removeprefix(_FILE_ID)
    else:
        media["url"] = url
    # version 7 also takes the first half of a media type alone
    cls = ImagePart if media_type.split("/")[0] == "image" else FilePart
    return checked(cls(**media, extra=note(NAME, without(data, known))))


def _tool(data: dict[str, Any], where: str) -> tuple[ToolCallPart, ToolResultPart | None]:
    kind = data["type"]
    call_id = as_text(data.get("toolCallId"), f"toolCallId of {where}", empty=False)
    state = as_text(data.get("state"), f"state of {where}", empty=False)
    known = {"type", "toolCallId", "state", "input", *_RESULT_FIELDS}
    if kind == "dynamic-tool":
        known.add("toolName")
        name = as_text(data.get("toolName"), f"toolName of {where}")
    else:
        name = kind.removeprefix("tool-")
    marks: dict[str, Any] = {"type": kind} if kind == "dynamic-tool" else {}
    if data.get("input") is None:
        marks["input"] = None if "input" in data else _ABSENT
    result = _tool_result(data, state, call_id, name, where)
    if result is None:
        known -= set(_RESULT_FIELDS)
        if state != "input-available" or "input" in marks:
            marks["state"] = state
    elif state == "output-available":
        known.add("output")
    elif state == "output-error":
        known.add("errorText")
    extra = note(NAME, {**without(data, known), **marks})
    return ToolCallPart(call_id, name, data.get("input"), extra=extra), result


def _tool_result(
    data: dict[str, Any], state: str, call_id: str, name: str, where: str
) -> ToolResultPart | None:
    rest = {key: data[key] for key in _RESULT_FIELDS if key in data}
    outcome = _OUTCOMES.get(state)
    approval = data.get("approval")
    answer: dict[str, Any] = approval if isinstance(approval, dict) else {}
    if state == "approval-responded" and answer.get("approved") is False:
        # the user has decided: the tool will never run
        outcome, rest["state"] = "denied", state
    if outcome is None:
        return None
    result: JSON = data.get("output")
    if outcome == "ok" and "output" not in data:
        rest["output"] = _ABSENT
    elif outcome == "error":
        result = as_text(data.get("errorText"), f"errorText of {where}")
    elif outcome == "denied":
        result = answer.get("reason")
    return ToolResultPart(call_id, name, result, outcome, extra=note(NAME, rest))


def _lost(messages: Sequence[Message], orphans: Iterable[Place]) -> frozenset[Place]:
    """Return the results to show although their call is not here, one for each call."""
    first: dict[str, Place] = {}
    for i, j in sorted(orphans):
        part = messages[i].parts[j]
        if isinstance(part, ToolResultPart):
            first.setdefault(part.tool_call_id, (i, j))
    known = call_ids(messages)
    return frozenset(place for call_id, place in first.items() if call_id not in known)


def _answers(message: Message) -> bool:
    """Tell whether the message is shown as part of an answer."""
    steers = message.role == "user" and "steering" in noted(message.metadata, NAME)
    return message.role in ("assistant", "tool") or steers


def _begins(before: Message, message: Message) -> bool:
    """Tell whether the message begins a UI message of its own."""
    if not (_answers(before) and _answers(message)):
        return True
    mark = noted(message.metadata, NAME)
    if "id" not in mark:
        return False
    return "step" not in mark or mark["id"] != noted(before.metadata, NAME).get("id", mark["id"])


def _fold(
    messages: Sequence[Message], group: Sequence[int], pairs: Pairs, out: list[dict[str, Any]]
) -> None:
    """Add the UI message of a group of messages, unless there is nothing to show."""
    first = messages[group[0]]
    mark = noted(first.metadata, NAME)
    answer = _answers(first)
    parts: list[dict[str, Any]] = []
    step = 0
    for i in group:
        message = messages[i]
        found = [
            wire
            for j, part in enumerate(message.parts)
            if (wire := _wire_part(part, (i, j), messages, pairs)) is not None
        ]
        own = noted(message.metadata, NAME)
        if answer and message.role != "tool" and (found or "id" in own):
            usual = _usual_starts(message.role, step)
            starts = own.get("starts", usual)
            count = min(starts, _MAX_STARTS) if isinstance(starts, int) else usual
            parts += [{"type": "step-start"}] * count
            step += 1
        if answer and message.role == "user":
            found = [{"type": "steering-message", **inner(own, "steering"), "parts": found}]
        parts += found
    # the head of a UI message is shown even if it is empty; its late results are not
    if not parts and ("id" not in mark or "step" in mark):
        return
    name = mark.get("id", first.id or first.client_id or f"message-{len(out)}")
    ui = {"id": name, "role": "assistant" if answer else first.role}
    if "metadata" in mark:
        ui["metadata"] = mark["metadata"]
    out.append({**ui, "parts": parts, **inner(mark, "rest")})


def _wire_part(
    part: Part, place: Place, messages: Sequence[Message], pairs: Pairs
) -> dict[str, Any] | None:
    """Return a part of the UI, ``None`` when the UI has none for it or shows it with its call."""
    if isinstance(part, OtherPart):
        return own_part(part, NAME)
    rest = noted(part.extra, NAME)
    if isinstance(part, ToolCallPart):
        answer = pairs.result_of.get(place)
        result = None if answer is None else messages[answer[0]].parts[answer[1]]
        return _wire_tool(part, result if isinstance(result, ToolResultPart) else None)
    if isinstance(part, ToolResultPart):
        if place not in pairs.orphans:
            return None
        return _wire_tool(ToolCallPart(part.tool_call_id, part.tool_name), part)
    if isinstance(part, DataPart):
        body = {} if rest.pop("data", None) == _ABSENT else {"data": part.data}
        if part.id is not None:
            body["id"] = part.id
        return {"type": part.type, **body, **rest}
    if isinstance(part, TextPart | ReasoningPart):
        return {"type": part.type, "text": part.text, **rest}
    default = "image/*" if isinstance(part, ImagePart) else "application/octet-stream"
    media_type = part.media_type or default
    data = part.data
    held = f"{_FILE_ID}{part.file_id}" if data is None else data_url(media_type, data)
    named = {} if part.filename is None else {"filename": part.filename}
    return {"type": "file", "mediaType": media_type, "url": part.url or held, **named, **rest}


def _wire_tool(call: ToolCallPart, result: ToolResultPart | None) -> dict[str, Any]:
    rest = noted(call.extra, NAME)
    waited = rest.pop("state", None)
    body: dict[str, Any] = {"type": f"tool-{call.tool_name}", "toolCallId": call.tool_call_id}
    if rest.get("type") == "dynamic-tool":
        body["toolName"] = call.tool_name
    args = call.raw_args if call.args is None else call.args
    given = rest.pop("input", {} if args is None else args)
    if given == _ABSENT and waited and result is not None:
        # only a call that still waits may lack its input
        given = call.args or {}
    if given != _ABSENT or call.args == _ABSENT:
        body["input"] = given
    answer = {} if result is None else _answer(result, rest.get("approval"))
    return {**body, "state": waited or "input-available", **rest, **answer}


def _answer(result: ToolResultPart, approval: Any) -> dict[str, Any]:
    """Return what a result adds to the part of its call."""
    own = noted(result.extra, NAME)
    asked = isinstance(approval, Mapping)
    text = "" if result.result is None else result.result_text()
    added = {"state": _STATES[result.outcome], **without(own, ("output",))}
    if result.outcome == "denied":
        if not asked or approval.get("approved") is not False:
            reason = {"reason": text} if text else {}
            given = approval if asked else {"id": result.tool_call_id}
            added["approval"] = {**given, "approved": False, **reason}
        return added
    if asked and "approved" not in approval:
        # it ran, and the UI takes a result only for an approved call
        added["approval"] = {**approval, "approved": True}
    if result.outcome == "error":
        added["errorText"] = text
    elif own.get("output") != _ABSENT:
        added["output"] = result.result
    return added
