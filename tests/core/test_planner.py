from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from om_django.core.config import MemoryConfig, parse_config
from om_django.core.messages import Message, TextPart, ToolCallPart, ToolResultPart
from om_django.core.planner import Decision, Observe, Reflect, State, observable, plan

NOW = datetime(2026, 1, 5, tzinfo=UTC)
CONFIG = parse_config(
    {"observation": {"message_tokens": 1000}, "reflection": {"observation_tokens": 2000}}
)


def said(tokens: int) -> Message:
    return Message(role="user", parts=(TextPart("x"),), tokens=tokens)


def called(*ids: str, tokens: int = 10) -> Message:
    return Message(role="assistant", parts=tuple(ToolCallPart(i, "f") for i in ids), tokens=tokens)


def answered(call_id: str, tokens: int = 10) -> Message:
    return Message(role="tool", parts=(ToolResultPart(call_id, "f"),), tokens=tokens)


def decide(*messages: Message, config: MemoryConfig = CONFIG, **state: object) -> Decision | None:
    values: dict[str, object] = {"log_tokens": 0, **state}
    return plan(State(messages=messages, **values), config, NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (decide(), None),
        (decide(said(971)), None),
        (decide(said(972)), Observe(1)),  # 972 + 4 + 24
        (decide(said(500), said(500)), Observe(2)),
        (decide(said(2000), log_tokens=1999), Observe(1)),
        (decide(said(2000), log_tokens=2000), Reflect()),
        (decide(log_tokens=2500, reflect_above=2500), None),
        (decide(log_tokens=2501, reflect_above=2500), Reflect()),
        (decide(log_tokens=2500, reflect_not_before=NOW + timedelta(seconds=1)), None),
        (decide(log_tokens=2500, reflect_not_before=NOW), Reflect()),
        (decide(said(2000), observe_not_before=NOW + timedelta(seconds=1)), None),
        (decide(said(2000), observe_not_before=NOW + timedelta(hours=1)), Observe(1)),
        (decide(said(2000), config=parse_config({"enabled": False}), log_tokens=99_999), None),
        (decide(said(2000), called("k")), Observe(1)),
        (decide(called("k", tokens=2000)), None),
        (decide(said(900), called("k"), answered("k", 500), said(5)), Observe(4)),
        (decide(said(900), called("k", "l"), answered("k", 500)), Observe(1)),
        # Nobody will answer a call that the conversation has left behind.
        (decide(said(900), called("k", tokens=500), said(5)), Observe(3)),
    ],
)
def test_decisions(decision: Decision | None, expected: Decision | None) -> None:
    assert decision == expected


@pytest.mark.parametrize(
    ("messages", "limit", "count"),
    [
        ([said(100)] * 5, 250, 2),
        ([said(100)] * 5, 500, 5),
        ([said(900), said(1)], 500, 1),
        ([said(100), called("k", tokens=100), answered("k", 400), said(1)], 300, 1),
        ([called("k", tokens=100), answered("k", 400), said(1)], 300, 2),
        ([called("k", tokens=900)], 300, 0),
        ([], 300, 0),
    ],
)
def test_one_call_observes_at_most(messages: list[Message], limit: int, count: int) -> None:
    assert observable(messages, limit) == count
