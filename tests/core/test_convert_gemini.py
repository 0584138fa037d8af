from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from om_django.core.convert.gemini import from_gemini, messages_from_gemini, to_gemini
from om_django.core.convert.openai import messages_from_openai
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
objects = st.dictionaries(st.text(max_size=8), json_values, max_size=3)
_KEYS = st.sampled_from(["role", "parts", "text", "functionCall", "name", "response", "id", "x"])


def record(required: dict[str, Any], optional: dict[str, Any] | None = None) -> Any:
    """Build wire objects with keys that Gemini does not know."""
    extras = st.dictionaries(
        st.text(max_size=6).map(lambda key: f"x{key}") | st.just("type"),
        st.text(max_size=4) | st.integers() | st.lists(st.integers(), max_size=2),
        max_size=1,
    )
    base = st.fixed_dictionaries(required, optional=optional or {})
    return st.builds(lambda extra, data: {**extra, **data}, extras, base)


words = st.text(max_size=12)
ids = st.text(min_size=1, max_size=8)
base64s = st.binary(max_size=9).map(lambda raw: base64.b64encode(raw).decode())
signed = {"thoughtSignature": base64s}
text_part = record({"text": words}, {**signed, "thought": st.booleans()})
media = {"mimeType": st.sampled_from(["image/png", "video/mp4", "application/pdf"])}
data_part = record(
    {"inlineData": record({"data": base64s}, {**media, "displayName": words})},
    {**signed, "thought": st.just(True), "mediaResolution": record({"level": words})},
)
uri_part = record(
    {
        "fileData": record(
            {"fileUri": st.sampled_from(["gs://b/o.mp4", "https://a.example/x.png"])}, media
        )
    },
    {"videoMetadata": record({"startOffset": words}, {"fps": st.integers()})},
)
call_part = record(
    {
        "functionCall": record(
            {"name": words}, {"id": ids, "args": objects, "willContinue": st.just(True)}
        )
    },
    signed,
)
code_part = record(
    {"executableCode": record({"language": st.just("PYTHON"), "code": words})}, signed
)
output_part = record(
    {"codeExecutionResult": record({"outcome": st.just("OUTCOME_OK"), "output": words})}
)
server_part = record({"toolCall": record({"id": ids, "toolType": words, "args": objects})}, signed)
single = st.sampled_from(["result", "error", "denied", "output"])
responses = objects | st.recursive(
    st.dictionaries(single, json_values, min_size=1, max_size=1),
    lambda inner: st.dictionaries(single, inner, min_size=1, max_size=2),
    max_leaves=4,
)
result_part = record(
    {
        "functionResponse": record(
            {"name": words, "response": responses}, {"id": ids, "scheduling": words}
        )
    }
)
user_part = text_part | data_part | uri_part
model_part = text_part | data_part | call_part | code_part | output_part | server_part
model = record({"role": st.just("model"), "parts": st.lists(model_part, min_size=1, max_size=4)})
user = record(
    {"parts": st.lists(user_part | result_part, min_size=1, max_size=4)}, {"role": st.just("user")}
)
results = record(
    {
        "role": st.sampled_from(["user", "function"]),
        "parts": st.lists(result_part, min_size=1, max_size=3),
    }
)
contents = (
    st.lists(st.tuples(model, user) | st.tuples(results, model) | st.tuples(model), max_size=3)
    .map(lambda pairs: [content for pair in pairs for content in pair])
    .filter(
        # results that follow results are joined, as Gemini asks
        lambda found: (
            not any(
                "functionResponse" in a["parts"][-1] and "functionResponse" in b["parts"][0]
                for a, b in pairwise(found)
            )
        )
    )
)


@given(contents)
def test_what_comes_from_the_wire_goes_back_unchanged(wire: list[dict[str, Any]]) -> None:
    messages = messages_from_gemini(wire)
    assert to_gemini(messages) == (None, wire)
    assert messages_from_gemini(to_gemini(messages)[1]) == messages


@given(model | user | results)
def test_one_content_goes_back_unchanged(wire: dict[str, Any]) -> None:
    assert to_gemini(from_gemini(wire)) == (None, [wire])


@settings(max_examples=50)
@given(contents)
def test_it_survives_the_store(wire: list[dict[str, Any]]) -> None:
    cleaned: Any = clean_json(wire)
    messages = messages_from_gemini(cleaned)
    loaded = [
        m.with_parts(part_from_json(json.loads(json.dumps(part_to_json(p)))) for p in m.parts)
        for m in messages
    ]
    assert to_gemini(loaded) == (None, cleaned)


own_results = st.builds(
    ToolResultPart,
    st.just("k"),
    st.just("f"),
    json_values | responses,
    st.sampled_from(["ok", "error", "denied"]),
)


@given(own_results)
def test_every_result_and_outcome_comes_back(part: ToolResultPart) -> None:
    message = Message(role="tool", parts=(part,))
    assert messages_from_gemini(to_gemini([message])[1]) == [message]


@given(json_values | st.dictionaries(_KEYS, json_values))
def test_bad_input_is_named(value: Any) -> None:
    for read in (from_gemini, messages_from_gemini):
        try:
            read(value)
        except InvalidMessage as error:
            assert str(error)  # noqa: PT017 - success is fine too


parts_like = st.dictionaries(
    st.sampled_from(["text", "functionCall", "function_response", "inlineData", "fileData"]),
    json_values | st.dictionaries(_KEYS | st.sampled_from(["data", "fileUri"]), json_values),
    max_size=2,
)


@given(st.fixed_dictionaries({"parts": st.lists(parts_like | json_values)}))
def test_damaged_parts_are_named(value: Any) -> None:
    try:
        to_gemini(from_gemini(value))
    except InvalidMessage as error:
        assert str(error)  # noqa: PT017 - success is fine too


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        (3, "content must be an object"),
        ({"role": "system", "parts": []}, "role of content"),
        ({"role": {}, "parts": []}, "role of content"),
        ({"parts": {"text": "a"}}, "parts of content"),
        ({"parts": ["a"]}, "parts[0] of content"),
        ({"parts": [{"text": 1}]}, "text of parts[0]"),
        ({"parts": [{"functionCall": {}}]}, "functionCall.name of parts[0]"),
        ({"parts": [{"functionCall": {"name": "f", "args": []}}]}, "args of parts[0]"),
        ({"parts": [{"fileData": {"fileUri": "/media/x.svg"}}]}, "absolute"),
        ({"parts": [{"functionResponse": {"name": "f", "response": 1}}]}, "response of parts[0]"),
    ],
)
def test_errors_say_what_to_change(wire: object, words: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        from_gemini(wire)
    assert words in str(caught.value)


CONVERSATION = [
    {
        "role": "user",
        "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AP/7"}}],
    },
    {
        "role": "model",
        "parts": [
            {"text": "hm", "thought": True},
            {"functionCall": {"name": "f", "args": {"b": 1, "a": 2}}, "thoughtSignature": "AAEC"},
            {"functionCall": {"name": "f", "args": {}}},
            {"functionCall": {"name": "g", "id": "k9"}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "f", "response": {"result": "one"}}},
            {"functionResponse": {"name": "f", "response": {"error": "two"}}},
            {"functionResponse": {"name": "g", "id": "k9", "response": {"a": 1}}},
            {"text": "go on"},
        ],
    },
    {
        "role": "model",
        "parts": [
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": "done", "thoughtSignature": "AAEC"},
        ],
    },
]


def test_neutral_parts() -> None:
    user, answer, results, more, done = messages_from_gemini(CONVERSATION)
    assert [m.role for m in (user, answer, results, more, done)] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    assert user.parts == (TextPart("hi"), ImagePart(data="AP/7", media_type="image/png"))
    assert isinstance(answer.parts[0], ReasoningPart)
    calls = answer.tool_calls
    assert [c.tool_call_id for c in calls] == ["gemini-1-f", "gemini-1-f-1", "k9"]
    assert [c.args for c in calls] == [{"b": 1, "a": 2}, {}, None]
    assert [(r.tool_call_id, r.result, r.outcome) for r in results.tool_results] == [
        ("gemini-1-f", "one", "ok"),
        ("gemini-1-f-1", "two", "error"),
        ("k9", {"a": 1}, "ok"),
    ]
    assert more.text == "go on"
    assert [p.type for p in done.parts] == [
        "gemini-executableCode",
        "gemini-codeExecutionResult",
        "text",
    ]


def test_google_genai_takes_and_gives_it() -> None:
    objects = [types.Content.model_validate(content) for content in CONVERSATION]
    messages = messages_from_gemini(objects)
    assert messages == messages_from_gemini(CONVERSATION)
    _, wire = to_gemini(messages)
    assert [types.Content.model_validate(content) for content in wire] == objects
    snake = [content.model_dump(exclude_none=True) for content in objects]
    assert to_gemini(messages_from_gemini(snake)) == (None, CONVERSATION)
    image = types.Part.from_bytes(data=b"\xff\xfb", mime_type="image/png")
    (message,) = from_gemini(types.Content(role="user", parts=[image]))
    assert message.parts == (ImagePart(data="//s=", media_type="image/png"),)


def test_ids_differ_from_earlier_ones() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}
    history: list[Message] = []
    for content in (call, answer, call, answer):
        history += from_gemini(content, earlier=history)
    ids = [p.tool_call_id for m in history for p in m.tool_calls or m.tool_results]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    # as many messages as before the last call, but that call is among them
    (again,) = from_gemini(call, earlier=history[1:3])
    assert again.tool_calls[0].tool_call_id != ids[2]


def test_a_response_id_the_call_did_not_have() -> None:
    wire = [
        {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "id": "z", "response": {}}}]},
    ]
    call, result = messages_from_gemini(wire)
    assert call.tool_calls[0].tool_call_id == result.tool_results[0].tool_call_id
    assert to_gemini([call, result]) == (None, wire)


def test_system_messages_become_the_instruction() -> None:
    messages = [
        Message(role="system", parts=(TextPart("a"),)),
        Message(role="user", parts=(TextPart("hi"),)),
        Message(role="system", parts=(TextPart("b"), TextPart("c"))),
    ]
    system, wire = to_gemini(messages)
    assert system == {"parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}
    assert wire == [{"role": "user", "parts": [{"text": "hi"}]}]
    assert to_gemini(messages_from_gemini(wire, system_instruction=system)) == (system, wire)
    assert messages_from_gemini([], system_instruction="a")[0].text == "a"


def test_parallel_results_go_into_one_content() -> None:
    messages = [
        Message(role="assistant", parts=(ToolCallPart("a", "f", {}), ToolCallPart("b", "g", {}))),
        Message(role="tool", parts=(ToolResultPart("a", "f", "1"),)),
        Message(role="tool", parts=(ToolResultPart("b", "g", None, "denied"),)),
        Message(role="user", parts=(TextPart("and?"),)),
    ]
    _, (call, results, user) = to_gemini(messages)
    assert len(call["parts"]) == 2
    assert [p["functionResponse"]["response"] for p in results["parts"]] == [
        {"result": "1"},
        {"denied": None},
    ]
    assert user == {"role": "user", "parts": [{"text": "and?"}]}


def test_a_continued_message_stands_alone_when_its_content_is_gone() -> None:
    _, answer, results, more, _ = messages_from_gemini(CONVERSATION)
    assert to_gemini([answer, more])[1][1]["role"] == "user"
    assert to_gemini([more])[1] == [{"role": "user", "parts": [{"text": "go on"}]}]
    assert len(to_gemini([answer, results, more])[1]) == 2


def test_what_is_not_sent() -> None:
    messages = [
        Message(
            role="user", parts=(DataPart("data-x", 1), OtherPart("source", {"a": 1}), TextPart(""))
        ),
        Message(role="assistant", parts=(ReasoningPart("secret"),)),
        *from_gemini({"role": "model"}),
        *from_gemini({"role": "model", "parts": []}),
    ]
    assert to_gemini(messages) == (None, [])


@pytest.mark.parametrize(
    ("part", "wire"),
    [
        (
            ImagePart(url="https://a/x.jpg?y=/z"),
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://a/x.jpg?y=/z"}},
        ),
        (ImagePart(url="https://[a/x"), {"fileData": {"fileUri": "https://[a/x"}}),
        (FilePart(url="data:a/b;base64,AA=="), {"inlineData": {"mimeType": "a/b", "data": "AA=="}}),
        (FilePart(url="data:,a"), {"text": "[File]"}),
        (FilePart(file_id="f1", filename="a.pdf"), {"text": "[File: a.pdf]"}),
        (ImagePart(data="AA=="), {"inlineData": {"mimeType": "image/png", "data": "AA=="}}),
    ],
)
def test_attachments_from_elsewhere(part: Any, wire: dict[str, Any]) -> None:
    assert to_gemini([Message(role="user", parts=(part,))])[1][0]["parts"] == [wire]


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ('{"b":1,"a":2}', {"b": 1, "a": 2}),
        ("{bad", {"input": "{bad"}),
        ("[1]", {"input": [1]}),
        ("", None),
    ],
)
def test_calls_from_openai(arguments: str, args: Any) -> None:
    call = {"id": "k", "type": "function", "function": {"name": "f", "arguments": arguments}}
    wire = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    _, (content,) = to_gemini(messages_from_openai(wire))
    expected = {"id": "k", "name": "f", "args": args}
    assert content["parts"] == [
        {"functionCall": {k: v for k, v in expected.items() if v is not None}}
    ]


def test_strange_text_and_depth_pass() -> None:
    (message,) = from_gemini({"parts": [{"text": "a\0\ud800"}]})
    assert message.text == "a\0\ud800"
    nested: Any = "x"
    for _ in range(5000):
        nested = {"result": nested}
    part = {"functionResponse": {"name": "f", "response": nested}}
    assert to_gemini(from_gemini({"parts": [part]}))[1]
