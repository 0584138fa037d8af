from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from om_django.core.convert.pairs import NO_RESULT, normalise_pairs, safe_cut
from om_django.core.messages import (
    DataPart,
    Message,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def says(role: Any, *parts: Part | str, **fields: Any) -> Message:
    made = tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    return Message(role=role, parts=made, **fields)


def call(call_id: str) -> ToolCallPart:
    return ToolCallPart(call_id, f"tool-{call_id}", {})


def result(call_id: str, value: str = "ok") -> ToolResultPart:
    return ToolResultPart(call_id, f"tool-{call_id}", value)


def none(call_id: str) -> ToolResultPart:
    return ToolResultPart(call_id, f"tool-{call_id}", NO_RESULT, "error")


USER = says("user", "hi")
DONE = says("assistant", "done")
ASK_A = says("assistant", call("a"))
ASK_AB = says("assistant", "let me see", call("a"), call("b"))
TOOL_A = says("tool", result("a"), id="m1", tokens=3)
TOOL_B = says("tool", result("b"), id="m2")
TOOL_AB = says("tool", result("a"), result("b"))

TABLE = [
    ("nothing", [], []),
    ("no tools", [USER, DONE], [USER, DONE]),
    ("right already", [USER, ASK_AB, TOOL_AB, DONE], [USER, ASK_AB, TOOL_AB, DONE]),
    ("one message each", [ASK_AB, TOOL_A, TOOL_B, DONE], [ASK_AB, TOOL_A, TOOL_B, DONE]),
    ("late", [ASK_A, USER, TOOL_A, DONE], [ASK_A, TOOL_A, USER, DONE]),
    ("one late", [ASK_AB, TOOL_A, USER, TOOL_B], [ASK_AB, TOOL_AB, USER]),
    ("wrong order", [ASK_AB, TOOL_B, TOOL_A], [ASK_AB, TOOL_AB]),
    ("missing", [ASK_A, USER], [ASK_A, says("tool", none("a")), USER]),
    ("one missing", [ASK_AB, TOOL_B], [ASK_AB, says("tool", none("a"), result("b"))]),
    ("missing at the end", [USER, ASK_A], [USER, ASK_A, says("tool", none("a"))]),
    ("orphan", [TOOL_A, USER], [USER]),
    ("twice", [ASK_A, TOOL_A, says("tool", result("a", "second"))], [ASK_A, TOOL_A]),
    ("before its call", [TOOL_A, ASK_A], [ASK_A, TOOL_A]),
    (
        "other parts stay",
        [ASK_A, USER, says("tool", DataPart("data-x"), result("a"))],
        [ASK_A, says("tool", result("a")), USER, says("tool", DataPart("data-x"))],
    ),
    (
        "data beside a result in place stays",
        [ASK_A, says("tool", result("a"), DataPart("data-x")), DONE],
        [ASK_A, says("tool", result("a"), DataPart("data-x")), DONE],
    ),
    (
        "a result beside its call",
        [says("assistant", call("a"), result("a"), "done")],
        [says("assistant", call("a"), "done"), says("tool", result("a"))],
    ),
    (
        "two turns with the same ids",
        [ASK_A, says("tool", result("a", "1")), USER, ASK_A, says("tool", result("a", "2"))],
        [ASK_A, says("tool", result("a", "1")), USER, ASK_A, says("tool", result("a", "2"))],
    ),
    (
        "the same id after a call that was given up",
        [ASK_A, USER, ASK_A, says("tool", result("a", "2"))],
        [ASK_A, says("tool", none("a")), USER, ASK_A, says("tool", result("a", "2"))],
    ),
    (
        "two calls with one id in one message",
        [says("assistant", call("a"), call("a")), says("tool", result("a", "1"), result("a", "2"))],
        [says("assistant", call("a"), call("a")), says("tool", result("a", "1"), result("a", "2"))],
    ),
    (
        "nothing may stand between",
        [ASK_A, says("system", "note"), TOOL_A],
        [ASK_A, TOOL_A, says("system", "note")],
    ),
]


def shape(messages: Sequence[Message]) -> list[tuple[str, tuple[Part, ...]]]:
    return [(message.role, message.parts) for message in messages]


@pytest.mark.parametrize(("before", "after"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE])
def test_normalise(before: list[Message], after: list[Message]) -> None:
    assert shape(normalise_pairs(before)) == shape(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([USER, ASK_A], [USER, ASK_A]),
        ([USER, ASK_AB, TOOL_B], [USER, ASK_AB, TOOL_B]),
        ([ASK_A, USER, ASK_AB], [ASK_A, says("tool", none("a")), USER, ASK_AB]),
        ([ASK_A, DONE], [ASK_A, says("tool", none("a")), DONE]),
    ],
)
def test_open_calls_can_be_kept(before: list[Message], after: list[Message]) -> None:
    assert shape(normalise_pairs(before, keep_open=True)) == shape(after)


def test_right_messages_are_the_same_objects() -> None:
    messages = [USER, ASK_AB, TOOL_A, TOOL_B, DONE]
    assert all(a is b for a, b in zip(normalise_pairs(messages), messages, strict=True))


def test_a_moved_message_keeps_its_id_and_count() -> None:
    assert normalise_pairs([ASK_A, USER, TOOL_A])[1] is TOOL_A
    (_, merged, _) = normalise_pairs([ASK_AB, TOOL_A, USER, TOOL_B])
    assert (merged.id, merged.tokens) == ("m1", None)


def test_a_made_up_result_belongs_to_the_thread() -> None:
    asked = says("assistant", call("a"), thread="t1")
    assert normalise_pairs([asked])[1].thread == "t1"


ids = st.sampled_from("abcd")
parts = st.one_of(
    ids.map(call),
    ids.map(result),
    st.builds(result, ids, st.just("other")),
    st.builds(TextPart, st.just("x")),
    st.builds(DataPart, st.just("data-x")),
)
anything = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "tool", "system"]),
        parts=st.lists(parts, max_size=3).map(tuple),
    ),
    max_size=9,
)
usual = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(lambda found: says("assistant", *map(call, found)), st.lists(ids, max_size=3)),
        st.builds(lambda found: says("tool", *map(result, found)), st.lists(ids, max_size=3)),
    ),
    max_size=9,
)


def content(messages: Sequence[Message]) -> list[Part]:
    return [p for m in messages for p in m.parts if not isinstance(p, ToolResultPart)]


@given(anything | usual, st.booleans())
def test_normalised_sequences_are_legal(messages: list[Message], keep_open: bool) -> None:
    out = normalise_pairs(messages, keep_open=keep_open)
    assert content(out) == content(messages)
    assert normalise_pairs(out, keep_open=keep_open) == out
    given_results = [id(part) for m in messages for part in m.tool_results]
    for part in (part for m in out for part in m.tool_results):
        assert id(part) in given_results or part.result == NO_RESULT
    assert {p.tool_call_id for m in out for p in m.tool_results} <= {
        p.tool_call_id for m in messages for p in m.tool_calls
    }
    last = max((i for i, m in enumerate(out) if m.role != "tool"), default=-1)
    i = 0
    while i < len(out):
        wanted = [part.tool_call_id for part in out[i].tool_calls]
        i, start = i + 1, i
        found: list[str] = []
        while i < len(out) and out[i].role == "tool" and not out[i].tool_calls:
            found += [part.tool_call_id for part in out[i].tool_results]
            i += 1
        if keep_open and start == last:
            assert len(found) <= len(wanted)
        else:
            assert found == wanted


def brute_pairs(messages: Sequence[Message]) -> tuple[list[tuple[int, int]], list[int]]:
    """Pair results and calls by the rule as written, in quadratic time."""
    flat = [(i, part) for i, m in enumerate(messages) for part in m.parts]
    calls = [(at, p.tool_call_id) for at, (_, p) in enumerate(flat) if isinstance(p, ToolCallPart)]
    found = [
        (at, p.tool_call_id) for at, (_, p) in enumerate(flat) if isinstance(p, ToolResultPart)
    ]
    answered: dict[int, int] = {}
    early: dict[str, int] = {}
    for at, call_id in found:
        before = [k for k, called in calls if called == call_id and k < at]
        free = [k for k in before if k not in answered]
        if free:
            nearest = flat[free[-1]][0]
            answered[next(k for k in free if flat[k][0] == nearest)] = at
        elif not before:
            early.setdefault(call_id, at)
    for call_id, at in early.items():
        free = [k for k, called in calls if called == call_id and k not in answered]
        answered.update(dict.fromkeys(free[:1], at))
    pairs = [(flat[k][0], flat[at][0]) for k, at in answered.items()]
    return pairs, [flat[k][0] for k, _ in calls if k not in answered]


@given(anything | usual, st.integers(-2, 12))
def test_safe_cut_is_what_brute_force_finds(messages: list[Message], limit: int) -> None:
    pairs, unanswered = brute_pairs(messages)

    def safe(n: int) -> bool:
        together = all((a < n) == (b < n) for a, b in pairs)
        waiting = any(
            i < n and not any(m.role == "user" for m in messages[i + 1 :]) for i in unanswered
        )
        return together and not waiting

    expected = max(n for n in range(len(messages) + 1) if n <= max(limit, 0) and safe(n))
    assert safe_cut(messages, limit) == expected


@pytest.mark.parametrize(
    ("messages", "limit", "cut"),
    [
        ([], 3, 0),
        ([USER, DONE], 2, 2),
        ([USER, ASK_A, TOOL_A, DONE], 2, 1),
        ([USER, ASK_A, TOOL_A, DONE], 3, 3),
        # B41: the cut lands between the two results of one message
        ([USER, ASK_AB, TOOL_A, TOOL_B, DONE], 3, 1),
        ([USER, ASK_AB, TOOL_A], 3, 1),
        ([USER, ASK_A], 2, 1),
        # the user went on: the call was given up
        ([USER, ASK_A, USER], 2, 2),
        ([USER, ASK_A, DONE], 3, 1),
        # the result comes late
        ([ASK_A, USER, DONE, TOOL_A, DONE], 3, 0),
        ([USER, DONE], -1, 0),
        ([TOOL_A, USER], 1, 1),
    ],
)
def test_safe_cut(messages: list[Message], limit: int, cut: int) -> None:
    assert safe_cut(messages, limit) == cut


def test_both_take_linear_time() -> None:
    calls = [says("assistant", call(str(i))) for i in range(20_000)]
    results = [says("tool", result(str(i))) for i in range(20_000)]
    same = [says("assistant", *[call("x")] * 20_000), *[says("tool", result("x"))] * 20_000]
    for messages in (calls + results, results + calls, [*calls, USER], same):
        start = time.monotonic()
        normalise_pairs(messages)
        safe_cut(messages, len(messages))
        assert time.monotonic() - start < 5
