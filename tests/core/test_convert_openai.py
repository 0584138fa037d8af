from __future__ import annotations

import base64
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage, ParsedChatCompletionMessage

from om_django.core.convert import parse_json
from om_django.core.convert.gemini import from_gemini, messages_from_gemini
from om_django.core.convert.openai import from_openai, messages_from_openai, to_openai
from om_django.core.convert.ui import from_ui
from om_django.core.messages import (
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
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
_HINTS = st.sampled_from(["type", "role", "content", "audio", "file", "function", "x", "name"])


def with_extras(base: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Add keys the format does not know, named as unluckily as possible."""
    keys = st.text(max_size=6).map(lambda key: f"x{key}") | st.just("field") | st.just("cache")
    return st.builds(
        lambda extra, data: {**extra, **data}, st.dictionaries(keys, json_values, max_size=2), base
    )


def record(required: dict[str, Any], optional: dict[str, Any] | None = None) -> Any:
    return with_extras(st.fixed_dictionaries(required, optional=optional or {}))


words = st.text(max_size=12)
ids = st.text(min_size=1, max_size=8)
base64s = st.binary(max_size=9).map(lambda raw: base64.b64encode(raw).decode())
media_types = st.sampled_from(
    ["image/png", "image/jpeg", "audio/wav", "audio/mpeg", "application/pdf", "text/html"]
)
data_urls = st.builds(lambda m, d: f"data:{m};base64,{d}", media_types, base64s)
urls = data_urls | st.sampled_from(
    [
        "https://a.example/x.png",
        "data:text/plain,hi",
        "data:;base64,AA==",
        "HTTP://A/",
        "DATA:x/y,z",
    ]
)
text_parts = record({"type": st.just("text"), "text": words})
refusal_parts = record({"type": st.just("refusal"), "refusal": words})
unknown_parts = record({"type": st.sampled_from(["video_url", "image", "tool-call", "data-x"])})
image_parts = record(
    {
        "type": st.just("image_url"),
        "image_url": record({"url": urls}, {"detail": st.sampled_from(["low", "auto", None])}),
    }
)
audio_parts = record(
    {
        "type": st.just("input_audio"),
        "input_audio": record(
            {"data": base64s, "format": st.sampled_from(["wav", "mp3", "mpeg", "flac"])}
        ),
    }
)
names = {"filename": st.none() | words}
file_parts = record(
    {
        "type": st.just("file"),
        "file": record({"file_id": ids}, names)
        | record({"file_data": data_urls | base64s}, {**names, "file_id": st.none()}),
    }
)
user_content = words | st.lists(
    text_parts | image_parts | audio_parts | file_parts | unknown_parts, max_size=4
)
function_calls = record(
    {
        "id": ids,
        "type": st.just("function"),
        "function": record({"name": words, "arguments": words | json_values.map(json.dumps)}),
    }
)
custom_calls = record(
    {"id": ids, "type": st.just("custom"), "custom": record({"name": words, "input": words})}
)
legacy_call = record({"name": words, "arguments": words})
assistant = record(
    {"role": st.just("assistant")},
    {
        "content": st.none()
        | words
        | st.lists(text_parts | refusal_parts | unknown_parts | image_parts, max_size=3),
        "refusal": st.none() | words,
        "reasoning_content": st.none() | words,
        "reasoning": st.none() | words,
        "audio": st.none() | record({"id": ids}, {"transcript": words, "data": base64s}),
        "tool_calls": st.none() | st.lists(function_calls | custom_calls, max_size=3),
        "function_call": st.none() | legacy_call,
        "name": words,
        "annotations": json_values,
    },
)
user = record({"role": st.just("user"), "content": user_content}, {"name": words})
system = record(
    {
        "role": st.sampled_from(["system", "developer"]),
        "content": words | st.lists(text_parts, max_size=3),
    },
    {"name": words},
)
tool = record(
    {
        "role": st.just("tool"),
        "tool_call_id": ids,
        "content": words | st.lists(text_parts, max_size=3),
    }
)
legacy_result = record({"role": st.just("function"), "name": words, "content": st.none() | words})
wire_messages = st.lists(user | system | assistant | tool, max_size=5)


@given(wire_messages)
def test_what_comes_from_the_wire_goes_back_unchanged(wire: list[dict[str, Any]]) -> None:
    messages = messages_from_openai(wire)
    assert len(messages) == len(wire)
    assert to_openai(messages) == wire
    assert messages_from_openai(to_openai(messages)) == messages


@given(legacy_result)
def test_a_legacy_result_goes_back_unchanged(wire: dict[str, Any]) -> None:
    assert to_openai([from_openai(wire)]) == [wire]


@settings(max_examples=50)
@given(wire_messages)
def test_it_survives_the_store(wire: list[dict[str, Any]]) -> None:
    cleaned: Any = clean_json(wire)
    wire = cleaned
    messages = messages_from_openai(wire)
    loaded = [
        m.with_parts(part_from_json(json.loads(json.dumps(part_to_json(p)))) for p in m.parts)
        for m in messages
    ]
    assert to_openai(loaded) == wire


@given(json_values | st.dictionaries(_HINTS, json_values) | st.lists(json_values))
def test_bad_input_is_named(value: Any) -> None:
    for read in (from_openai, messages_from_openai):
        try:
            read(value)
        except InvalidMessage as error:
            assert str(error)  # noqa: PT017 - success is fine too


@settings(max_examples=50)
@given(st.data())
def test_a_damaged_message_is_named(data: st.DataObject) -> None:
    wire = data.draw(user | system | assistant | tool | legacy_result)
    key = data.draw(st.sampled_from(sorted(wire)))
    wire[key] = data.draw(json_values | st.lists(st.dictionaries(_HINTS, json_values)))
    try:
        to_openai([from_openai(wire)])
    except InvalidMessage as error:
        assert str(error)  # noqa: PT017 - success is fine too


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ("hi", "must be an object"),
        ({"content": "hi"}, "role"),
        ({"role": "user", "content": 1}, "content"),
        ({"role": "user", "content": [{"text": "a"}]}, "type of content[0]"),
        ({"role": "tool", "content": "x"}, "tool_call_id"),
        ({"role": "tool", "tool_call_id": "k", "content": 3}, "content of a tool message"),
        ({"role": "user", "content": [{"type": "file", "file": {}}]}, "file_id or file_data"),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "/media/x.svg"}}],
            },
            "absolute",
        ),
        ({"role": "assistant", "tool_calls": [{"id": "k", "type": "mcp"}]}, "tool_calls[0]"),
        (
            {"role": "assistant", "tool_calls": [{"id": "k", "function": {"name": "f"}}]},
            "arguments of tool_calls[0]",
        ),
    ],
)
def test_errors_say_what_to_change(wire: object, words: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        from_openai(wire)
    assert words in str(caught.value)


def test_a_list_is_needed() -> None:
    with pytest.raises(InvalidMessage, match="messages must be a list"):
        messages_from_openai({"role": "user", "content": "hi"})


def test_neutral_parts() -> None:
    wire = [
        {"role": "developer", "content": "Be kind."},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "look"},
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"},
                },
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
                {
                    "type": "file",
                    "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "k1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{ "a":1}'},
                },
                {"id": "k2", "type": "function", "function": {"name": "g", "arguments": "{bad"}},
                {"id": "k3", "type": "custom", "custom": {"name": "sql", "input": "select 1"}},
            ],
        },
        {"role": "tool", "tool_call_id": "k1", "content": "[error] as the tool itself says"},
    ]
    system, user, answer, result = messages_from_openai(wire)
    assert system.role == "system"
    assert user.parts == (
        TextPart("look"),
        ImagePart(data="AA==", media_type="image/png", detail="low"),
        FilePart(data="AA==", media_type="audio/mpeg"),
        FilePart(data="AA==", media_type="application/pdf", filename="a.pdf"),
    )
    assert answer.parts[0] == ReasoningPart("hm", extra={"openai": {"type": "reasoning_content"}})
    assert answer.parts[1:3] == (
        ToolCallPart("k1", "f", {"a": 1}, '{ "a":1}'),
        ToolCallPart("k2", "g", None, "{bad"),
    )
    assert parse_json("[NaN]") is None
    assert answer.tool_calls[2].args == {"input": "select 1"}
    assert answer.metadata == {}
    assert result.parts == (ToolResultPart("k1", "f", "[error] as the tool itself says"),)
    assert to_openai([system, user, answer, result]) == wire


def test_the_tool_is_named_by_earlier_messages() -> None:
    call = Message(role="assistant", parts=(ToolCallPart("k", "weather", {}),))
    wire = {"role": "tool", "tool_call_id": "k", "content": "sun"}
    assert from_openai(wire, earlier=[call]).tool_results[0].tool_name == "weather"
    assert from_openai(wire).tool_results[0].tool_name == ""


def test_refusals_and_spoken_words_are_text() -> None:
    message = from_openai({"role": "assistant", "content": None, "refusal": "no"})
    assert message.text == "no"
    spoken = from_openai({"role": "assistant", "audio": {"id": "a1", "transcript": "hello"}})
    assert spoken.text == "hello"


def test_legacy_function_calls_are_paired() -> None:
    wire = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "2"},
    ]
    messages = messages_from_openai(wire)
    ids = [m.parts[0].tool_call_id for m in messages]  # type: ignore[union-attr]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert to_openai(messages) == wire
    own = Message(role="tool", parts=(ToolResultPart(ids[0], "f", "1"),))
    assert to_openai([messages[0], own]) == wire[:2]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (ToolResultPart("k", "f", "boom", "error"), "[error] boom"),
        (ToolResultPart("k", "f", {"why": 1}, "error"), '[error] {"why":1}'),
        (ToolResultPart("k", "f", None, "denied"), "[denied]"),
        (ToolResultPart("k", "f", {"a": "ü"}), '{"a":"ü"}'),
        (ToolResultPart("k", "f", ["x"]), '["x"]'),
        (ToolResultPart("k", "f"), "null"),
    ],
)
def test_results_of_our_own(part: ToolResultPart, text: str) -> None:
    wire = to_openai([Message(role="tool", parts=(part,))])
    assert wire == [{"role": "tool", "tool_call_id": "k", "content": text}]


def test_several_results_become_several_messages() -> None:
    parts = (ToolResultPart("a", "f", "1"), ToolResultPart("b", "f", "2"))
    wire = to_openai([Message(role="tool", parts=parts)])
    assert [m["tool_call_id"] for m in wire] == ["a", "b"]


def test_what_is_not_sent() -> None:
    messages = [
        Message(role="user", parts=(DataPart("data-x", 1), OtherPart("source", {"a": 1}))),
        Message(role="assistant", parts=(ReasoningPart("secret"),)),
        Message(role="assistant", parts=(ReasoningPart("secret"), TextPart("hi"))),
    ]
    assert to_openai(messages) == [{"role": "assistant", "content": "hi"}]


@pytest.mark.parametrize(
    ("role", "part", "wire"),
    [
        ("user", ImagePart(url="gs://b/x.png"), {"type": "text", "text": "[Image: gs://b/x.png]"}),
        (
            "user",
            FilePart(url="https://a/x.pdf"),
            {"type": "text", "text": "[File: https://a/x.pdf]"},
        ),
        (
            "assistant",
            ImagePart(data="AA==", media_type="image/png"),
            {"type": "text", "text": "[Image: image/png]"},
        ),
        (
            "user",
            FilePart(data="AA==", media_type="image/gif"),
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,AA=="}},
        ),
        ("user", ImagePart(file_id="f1"), {"type": "file", "file": {"file_id": "f1"}}),
    ],
)
def test_attachments_from_elsewhere(role: Any, part: Any, wire: dict[str, Any]) -> None:
    assert to_openai([Message(role=role, parts=(part,))]) == [
        {"role": role, "content": wire["text"] if wire["type"] == "text" else [wire]}
    ]


def test_foreign_notes_are_ignored() -> None:
    messages = [
        *from_ui(
            {"id": "u", "role": "user", "parts": [{"type": "text", "text": "a", "state": "done"}]}
        ),
        *from_gemini({"role": "model", "parts": [{"text": "b", "thoughtSignature": "AA=="}]}),
    ]
    assert to_openai(messages) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
    ]


def test_a_gemini_call_has_an_id_for_openai() -> None:
    contents = [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": 2}}}]},
    ]
    call, result = to_openai(messages_from_gemini(contents))
    assert call["tool_calls"][0] == {
        "id": "gemini-0-f",
        "type": "function",
        "function": {"name": "f", "arguments": '{"a":1}'},
    }
    assert result == {"role": "tool", "tool_call_id": "gemini-0-f", "content": "2"}


def test_objects_of_the_sdk() -> None:
    wire = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "k", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
        "reasoning_content": "hm",
    }
    assert from_openai(ChatCompletionMessage.model_validate(wire)) == from_openai(wire)
    parsed = ParsedChatCompletionMessage[dict].model_validate(  # type: ignore[type-arg]
        {"role": "assistant", "content": '{"a":1}', "parsed": {"a": 1}}
    )
    assert to_openai([from_openai(parsed)]) == [{"role": "assistant", "content": '{"a":1}'}]
    assert from_openai({"role": "user", "content": "a", "parsed": 1}).metadata


def test_dataclasses_and_unusual_objects() -> None:
    @dataclass
    class Said:
        role: str
        content: str

    class Dumps:
        def model_dump(self) -> dict[str, str]:
            return {"role": "user", "content": "hi"}

    expected = Message(role="user", parts=(TextPart("hi"),))
    assert from_openai(Said("user", "hi")) == expected
    assert from_openai(Dumps()) == expected
    with pytest.raises(InvalidMessage):
        from_openai(ChatCompletionMessage)


def test_strange_text_and_depth_pass() -> None:
    assert from_openai({"role": "user", "content": "a\0\ud800"}).text == "a\0\ud800"
    deep = "[" * 100_000
    call = {"id": "k", "type": "function", "function": {"name": "f", "arguments": deep}}
    wire = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert to_openai([from_openai(wire)]) == [wire]
    nested: Any = "x"
    for _ in range(5000):
        nested = [nested]
    message = from_openai({"role": "user", "content": "a", "deep": nested})
    assert "[nested too deep]" in json.dumps(message.metadata)


def test_core_needs_no_sdk() -> None:
    code = (
        "import sys; import om_django.core.convert.openai, om_django.core.convert.gemini, "
        "om_django.core.convert.ui; "
        "print([m for m in ('django', 'openai', 'google', 'pydantic') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
