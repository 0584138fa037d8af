from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from om_django.core.convert.gemini import messages_from_gemini, to_gemini
from om_django.core.convert.openai import messages_from_openai, to_openai
from om_django.core.convert.pairs import normalise_pairs
from om_django.core.convert.ui import from_ui, to_ui
from om_django.core.messages import (
    ROLES,
    DataPart,
    FilePart,
    ImagePart,
    InvalidMessage,
    Message,
    OtherPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    part_from_json,
    part_to_json,
)
from om_django.core.text import clean_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("absent"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_KEYS = st.sampled_from(["id", "role", "parts", "type", "text", "state", "toolCallId", "x"])


def record(required: dict[str, Any], optional: dict[str, Any] | None = None) -> Any:
    """Build wire objects with keys that the AI SDK does not know."""
    keys = st.text(max_size=6).map(lambda key: f"x{key}") | st.sampled_from(["step", "starts"])
    extras = st.dictionaries(keys, json_values, max_size=1)
    base = st.fixed_dictionaries(required, optional=optional or {})
    return st.builds(lambda extra, data: {**extra, **data}, extras, base)


words = st.text(max_size=12)
base64s = st.binary(max_size=9).map(lambda raw: base64.b64encode(raw).decode())
meta = st.dictionaries(words, st.dictionaries(words, json_values, max_size=1), max_size=1)
written = {"state": st.sampled_from(["streaming", "done"]), "providerMetadata": meta}
text_part = record({"type": st.just("text"), "text": words}, written)
reasoning_part = record({"type": st.just("reasoning"), "text": words}, {**written, "id": words})
media_types = st.sampled_from(["image/png", "image", "application/pdf", "image/*", "text/plain"])
file_part = record(
    {
        "type": st.just("file"),
        "mediaType": media_types,
        "url": st.builds(lambda m, d: f"data:{m};base64,{d}", media_types, base64s)
        | st.sampled_from(["https://a.example/x.png", "data:,hi", "file-id:f1", "HTTPS://A"]),
    },
    {"filename": words, "providerMetadata": meta, "providerReference": meta},
)
source_parts = record(
    {"type": st.just("source-url"), "sourceId": words, "url": words}, {"title": words}
) | record(
    {"type": st.just("source-document"), "sourceId": words, "mediaType": words, "title": words}
)
data_part = record(
    {"type": words.map(lambda name: f"data-{name}"), "data": json_values}, {"id": words}
)
unknown_part = record({"type": st.sampled_from(["custom", "reasoning-file", "image"])})
steering_part = record(
    {
        "type": st.just("steering-message"),
        "id": words,
        "parts": st.lists(text_part | file_part, max_size=2),
    }
)
flagged_step = st.just({"type": "step-start", "xflag": 1})
approval_ids = {"id": words}
granted = record({**approval_ids, "approved": st.just(True)}, {"reason": words})
denied = record({**approval_ids, "approved": st.just(False)}, {"reason": words})
_COMMON = {"title": words, "providerExecuted": st.booleans(), "callProviderMetadata": meta}
_DONE = {"resultProviderMetadata": meta, "approval": granted}
_STATES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("input-streaming", {}, {"input": json_values, "rawInput": words}),
    ("input-available", {"input": json_values}, {}),
    ("approval-requested", {"input": json_values, "approval": record(approval_ids)}, {}),
    ("approval-responded", {"input": json_values, "approval": granted | denied}, {}),
    (
        "output-available",
        {"input": json_values, "output": json_values},
        {**_DONE, "preliminary": st.booleans()},
    ),
    (
        "output-error",
        {"errorText": words},
        {**_DONE, "input": json_values, "rawInput": json_values},
    ),
    ("output-denied", {"input": json_values, "approval": denied}, {}),
    # what JSON makes of an undefined value, and a state of a later version
    ("output-available", {}, {}),
    ("input-paused", {"input": json_values}, {"output": json_values, "errorText": words}),
]
_KINDS: list[dict[str, Any]] = [
    {"type": words.map(lambda name: f"tool-{name}")},
    {"type": st.just("dynamic-tool"), "toolName": words},
]
tool_part = st.one_of(
    [
        record(
            {**kind, "toolCallId": st.just("k"), "state": st.just(state), **required},
            {**_COMMON, **optional},
        )
        for state, required, optional in _STATES
        for kind in _KINDS
    ]
)
assistant_part = st.one_of(
    st.just({"type": "step-start"}),
    tool_part,
    text_part,
    reasoning_part,
    file_part,
    source_parts | data_part | unknown_part | flagged_step,
    steering_part,
)


def numbered(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**part, "toolCallId": f"k{i}"} if "toolCallId" in part else part
        for i, part in enumerate(parts)
    ]


top = {"metadata": json_values}
assistant = record(
    {
        "id": words,
        "role": st.just("assistant"),
        "parts": st.lists(assistant_part, max_size=8).map(numbered),
    },
    top,
)
other = record(
    {
        "id": words,
        "role": st.sampled_from(["user", "system"]),
        "parts": st.lists(text_part | file_part | data_part | tool_part, max_size=3),
    },
    top,
)
histories = st.lists(assistant | other, max_size=3).map(
    lambda messages: [
        {
            **m,
            "parts": [
                {**p, "toolCallId": f"{i}{p['toolCallId']}"} if "toolCallId" in p else p
                for p in m["parts"]
            ],
        }
        for i, m in enumerate(messages)
    ]
)


@given(assistant | other)
def test_one_message_goes_back_unchanged(wire: dict[str, Any]) -> None:
    messages = from_ui(wire)
    assert to_ui(messages) == [wire]
    assert {m.metadata["ui"]["id"] for m in messages} == {wire["id"]}  # type: ignore[index,call-overload]
    assert [m for ui in to_ui(messages) for m in from_ui(ui)] == messages


@settings(max_examples=50)
@given(histories)
def test_a_history_goes_back_unchanged(wire: list[dict[str, Any]]) -> None:
    assert to_ui([message for ui in wire for message in from_ui(ui)]) == wire


@settings(max_examples=50)
@given(assistant | other)
def test_it_survives_the_store(wire: dict[str, Any]) -> None:
    cleaned: Any = clean_json(wire)
    loaded = [
        m.with_parts(part_from_json(json.loads(json.dumps(part_to_json(p)))) for p in m.parts)
        for m in from_ui(cleaned)
    ]
    assert to_ui(loaded) == [cleaned]


@given(assistant)
def test_every_call_with_a_result_is_a_pair_of_messages(wire: dict[str, Any]) -> None:
    messages = from_ui(wire)
    for i, message in enumerate(messages):
        if message.tool_results:
            assert message.role == "tool"
            called = [part.tool_call_id for part in messages[i - 1].tool_calls]
            assert {part.tool_call_id for part in message.tool_results} <= set(called)
    keys = [message.client_id for message in messages if message.client_id is not None]
    assert len(set(keys)) == len(keys)


@given(json_values | st.dictionaries(_KEYS, json_values))
def test_bad_input_is_named(value: Any) -> None:
    try:
        from_ui(value)
    except InvalidMessage as error:
        assert str(error)  # noqa: PT017 - success is fine too


@given(st.data())
def test_a_damaged_part_is_named(data: st.DataObject) -> None:
    part = data.draw(assistant_part)
    part[data.draw(st.sampled_from(sorted(part)))] = data.draw(json_values)
    try:
        to_ui(from_ui({"id": "u", "role": "assistant", "parts": [part]}))
    except InvalidMessage as error:
        assert str(error)  # noqa: PT017 - success is fine too


def ui(*parts: dict[str, Any], role: str = "assistant") -> dict[str, Any]:
    return {"id": "u1", "role": role, "parts": list(parts)}


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ("hi", "must be an object"),
        ({"role": "user", "parts": []}, "id of a UI message"),
        ({"id": "u", "role": "tool", "parts": []}, "role of a UI message"),
        ({"id": "u", "role": "user", "content": "hi"}, "parts of a UI message"),
        (ui({"text": "a"}), "type of parts[0]"),
        (ui({"type": "text"}), "text of parts[0]"),
        (ui({"type": "steering-message"}), "parts of parts[0]"),
        (ui({"type": "steering-message", "parts": [1]}), "parts[0].parts[0] must be"),
        (ui({"type": "file", "url": "https://a"}), "mediaType of parts[0]"),
        (ui({"type": "file", "url": "/media/x.svg", "mediaType": "image/svg+xml"}), "absolute"),
        (ui({"type": "tool-x", "state": "input-available"}), "toolCallId of parts[0]"),
        (ui({"type": "tool-x", "toolCallId": "k"}), "state of parts[0]"),
        (
            ui({"type": "tool-x", "toolCallId": "k", "state": "output-error"}),
            "errorText of parts[0]",
        ),
        (ui({"type": "dynamic-tool", "toolCallId": "k", "state": "x"}), "toolName of parts[0]"),
    ],
)
def test_errors_say_what_to_change(wire: object, words: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        from_ui(wire)
    assert words in str(caught.value)


def tool(call_id: str, output: Any) -> dict[str, Any]:
    return {
        "type": "tool-f",
        "toolCallId": call_id,
        "state": "output-available",
        "input": {"q": call_id},
        "output": output,
    }


def test_a_turn_is_split_into_steps() -> None:
    turn = {
        "id": "u1",
        "role": "assistant",
        "metadata": {"model": "x"},
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm", "state": "done"},
            {"type": "text", "text": "let me see"},
            tool("a", 1),
            tool("b", {"x": 2}),
            {"type": "data-om-status", "id": "d1", "data": {"phase": "done"}},
            {"type": "step-start"},
            {"type": "source-url", "sourceId": "s", "url": "https://a"},
            tool("c", None),
            {"type": "text", "text": "done"},
        ],
    }
    messages = from_ui(turn)
    assert [m.role for m in messages] == ["assistant", "tool", "assistant", "tool", "assistant"]
    assert [m.client_id for m in messages] == ["u1", "u1:0:2", "u1:1", "u1:1:1", "u1:2"]
    first, results, second, _, last = messages
    assert [p.type for p in first.parts] == [
        "reasoning",
        "text",
        "tool-call",
        "tool-call",
        "data-om-status",
    ]
    assert first.parts[4] == DataPart("data-om-status", {"phase": "done"}, "d1")
    assert results.parts == (ToolResultPart("a", "f", 1), ToolResultPart("b", "f", {"x": 2}))
    assert second.parts[0] == OtherPart("ui-source-url", {"ui": turn["parts"][7]})  # type: ignore[index]
    assert last.parts == (TextPart("done"),)
    assert first.metadata["ui"] == {"id": "u1", "metadata": {"model": "x"}, "starts": 1}
    assert to_ui(messages) == [turn]
    # a window may begin in the middle of a turn
    assert to_ui(messages[2:])[0]["id"] == "u1"
    assert to_ui(messages[1:])[0]["parts"][0] == {**tool("a", 1), "input": {}}
    assert len(to_openai(messages)) == 6


def test_a_turn_that_grew_adds_only_what_is_new() -> None:
    waiting = {"type": "tool-f", "toolCallId": "b", "state": "input-available", "input": {"q": "b"}}
    start = {"type": "step-start"}
    before = from_ui(ui(start, tool("a", 1), waiting))
    grown = ui(start, tool("a", 1), tool("b", 2), start, {"type": "text", "text": "done"})
    stored = {message.client_id: message for message in before}
    said = Message(role="user", id="u2", parts=(TextPart("and?"),))
    late = [message for message in from_ui(grown) if message.client_id not in stored]
    assert [message.role for message in late] == ["tool", "assistant"]
    thread = [*before, said, *late]
    outputs = [part.result for m in normalise_pairs(thread) for part in m.tool_results]
    assert outputs == [1, 2]
    shown = to_ui(thread)
    assert [message["role"] for message in shown] == ["assistant", "user", "assistant"]
    assert shown[0]["parts"] == grown["parts"][:3]
    assert to_ui(thread[:-1]) == shown[:-1]


def test_what_the_user_throws_in_is_said_by_the_user() -> None:
    said = {"type": "steering-message", "id": "s1", "parts": [{"type": "text", "text": "faster"}]}
    start = {"type": "step-start"}
    wire = ui(start, tool("a", 1), said, start, {"type": "text", "text": "done"})
    messages = from_ui(wire)
    assert [m.role for m in messages] == ["assistant", "tool", "user", "assistant"]
    assert (messages[2].text, messages[2].client_id) == ("faster", "u1:1")
    assert to_openai(messages)[2] == {"role": "user", "content": "faster"}
    assert to_ui(messages) == [wire]
    (cut,) = to_ui(messages[2:])
    assert (cut["id"], cut["role"], cut["parts"][0]) == ("u1", "assistant", said)


@pytest.mark.parametrize("starts", [10**15, -1, "x", None, [1]])
def test_notes_in_metadata_are_not_trusted(starts: Any) -> None:
    note = {"ui": {"id": "u1", "step": [], "starts": starts, "steering": 1, "rest": 2}}
    for role in ROLES:
        message = Message(role=role, parts=(TextPart("a"),), metadata=note)
        (shown,) = to_ui([message])
        assert 1 <= len(shown["parts"]) <= 10_001


def test_files() -> None:
    (message,) = from_ui(
        ui(
            {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA=="},
            {"type": "file", "mediaType": "text/html", "url": "https://a/n", "filename": "n.html"},
            {"type": "file", "mediaType": "image", "url": "https://a/x"},
            role="user",
        )
    )
    assert message.parts == (
        ImagePart(data="AA==", media_type="image/png"),
        FilePart(url="https://a/n", media_type="text/html", filename="n.html"),
        ImagePart(url="https://a/x", media_type="image"),
    )


def test_a_denied_call_is_denied_for_the_model() -> None:
    asked = {"type": "tool-f", "toolCallId": "k", "input": {}}
    for state in ("approval-responded", "output-denied"):
        approval = {"id": "a", "approved": False, "reason": "too dear"}
        wire = ui({**asked, "state": state, "approval": approval})
        messages = from_ui(wire)
        assert messages[1].tool_results[0].outcome == "denied"
        assert to_openai(messages)[1]["content"] == "[denied] too dear"
        assert to_ui(messages) == [wire]
    waiting = from_ui(ui({**asked, "state": "approval-requested", "approval": {"id": "a"}}))
    assert [m.role for m in waiting] == ["assistant"]


def answered(*parts: Any) -> list[dict[str, Any]]:
    """Return the parts of the UI after the server answered a call that waited for approval."""
    asked = ui(
        {
            "type": "tool-f",
            "toolCallId": "k",
            "input": {},
            "state": "approval-requested",
            "approval": {"id": "a"},
        }
    )
    messages = [*from_ui(asked), Message(role="tool", parts=parts)]
    (message,) = to_ui(messages)
    found: list[dict[str, Any]] = message["parts"]
    return found


def test_results_of_our_own_complete_a_call_of_the_ui() -> None:
    (done,) = answered(ToolResultPart("k", "f", 5))
    assert (done["state"], done["output"]) == ("output-available", 5)
    assert done["approval"] == {"id": "a", "approved": True}
    (failed,) = answered(ToolResultPart("k", "f", {"why": 1}, "error"))
    assert (failed["state"], failed["errorText"]) == ("output-error", '{"why":1}')
    (no,) = answered(ToolResultPart("k", "f", "no", "denied"))
    assert no["state"] == "output-denied"
    assert no["approval"] == {"id": "a", "approved": False, "reason": "no"}


@pytest.mark.parametrize("state", ["input-streaming", "input-available"])
def test_an_answered_call_has_an_input(state: str) -> None:
    asked = ui({"type": "tool-f", "toolCallId": "k", "state": state})
    assert to_ui(from_ui(asked)) == [asked]
    answer = Message(role="tool", parts=(ToolResultPart("k", "f", 5),))
    (message,) = to_ui([*from_ui(asked), answer])
    assert message["parts"] == [
        {**asked["parts"][0], "state": "output-available", "input": {}, "output": 5}
    ]


def test_messages_of_our_own_are_folded_by_turn() -> None:
    messages = [
        Message(role="user", id="1", parts=(TextPart("hi"),)),
        Message(
            role="assistant",
            id="2",
            parts=(ReasoningPart("hm"), ToolCallPart("a", "f", {"q": 1}), ToolCallPart("b", "g")),
        ),
        Message(role="tool", id="3", parts=(ToolResultPart("a", "f", None),)),
        Message(role="tool", id="4", parts=(ToolResultPart("b", "g", None, "denied"),)),
        Message(role="assistant", id="5", parts=(TextPart("done"),)),
        Message(role="user", client_id="c", parts=(ImagePart(url="https://a/x.png"),)),
        Message(role="assistant", parts=(ToolCallPart("z", "f", None, "{bad"),)),
    ]
    first, turn, second, last = to_ui(messages)
    assert first == {"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    assert turn == {
        "id": "2",
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "text": "hm"},
            {
                "type": "tool-f",
                "toolCallId": "a",
                "state": "output-available",
                "input": {"q": 1},
                "output": None,
            },
            {
                "type": "tool-g",
                "toolCallId": "b",
                "state": "output-denied",
                "input": {},
                "approval": {"id": "b", "approved": False},
            },
            {"type": "step-start"},
            {"type": "text", "text": "done"},
        ],
    }
    assert second["id"] == "c"
    assert second["parts"] == [{"type": "file", "mediaType": "image/*", "url": "https://a/x.png"}]
    assert last["id"] == "message-3"
    assert last["parts"][0]["input"] == "{bad"
    again = [message for ui_message in to_ui(messages) for message in from_ui(ui_message)]
    assert to_ui(again) == to_ui(messages)


def test_late_and_lost_results() -> None:
    messages = [
        Message(role="assistant", id="1", parts=(ToolCallPart("a", "f", {}),)),
        Message(role="user", id="2", parts=(TextPart("hi"),)),
        Message(role="tool", id="3", parts=(ToolResultPart("a", "f", 1),)),
        Message(role="user", id="4", parts=(TextPart("hi"),)),
        Message(role="tool", id="5", parts=(ToolResultPart("lost", "f", 2),)),
    ]
    call, _, _, lost = to_ui(messages)
    assert call["parts"][0]["output"] == 1
    assert (lost["role"], lost["id"]) == ("assistant", "5")
    assert lost["parts"][0]["output"] == 2
    # a UI must not get two parts for one call
    assert to_ui([*messages, messages[2], messages[4]]) == to_ui(messages)


def test_what_is_not_shown() -> None:
    messages = [Message(role="user", parts=(OtherPart("gemini-executableCode", {"gemini": {}}),))]
    assert to_ui(messages) == []


def test_other_formats_get_there_and_back() -> None:
    wire = ui(
        {"type": "text", "text": "a", "providerMetadata": {"google": {"thoughtSignature": "x"}}},
        tool("k", {"x": 1}),
        {"type": "step-start"},
        {"type": "text", "text": "b"},
    )
    messages = from_ui(wire)
    shown = to_ui(messages_from_openai(to_openai(messages)))
    assert [part["type"] for part in shown[0]["parts"]] == ["text", "tool-f", "step-start", "text"]
    shown = to_ui(messages_from_gemini(to_gemini(messages)[1]))
    assert shown[0]["parts"][1] == tool("k", {"x": 1})


def test_strange_text_and_depth_pass() -> None:
    (message,) = from_ui(ui({"type": "text", "text": "a\0\ud800"}))
    assert message.text == "a\0\ud800"
    nested: Any = "x"
    for _ in range(5000):
        nested = [nested]
    assert to_ui(from_ui(ui(tool("k", nested))))
