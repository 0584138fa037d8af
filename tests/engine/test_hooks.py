"""Hooks: told of everything, able to change what goes in and comes out, unable to break a turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from om_django import signals
from om_django.engine.hooks import HookEvent
from om_django.exceptions import ObservationFailed, ReflectionFailed
from om_django.llm.base import ModelResponse, PermanentModelError, Usage
from om_django.models import Cursor, ObservationGroup, Operation
from om_django.observational import ObservationalMemory
from om_django.testing import ScriptedModel, observations

from ..conftest import words

pytestmark = pytest.mark.django_db
Make = Callable[..., ObservationalMemory]
ANSWER = ModelResponse(
    text=observations("a note"), usage=Usage(input_tokens=10, output_tokens=2), model="m"
)


def say(om: ObservationalMemory, *texts: str) -> None:
    with om.turn("t", "r") as turn:
        for text in texts:
            turn.user(text)


def boom(event: HookEvent) -> None:
    raise RuntimeError("boom")


def test_lifecycle_hooks_and_signals_tell_of_each_cycle(make_memory: Make) -> None:
    heard: list[HookEvent] = []
    sent: list[HookEvent] = []

    def receive(event: HookEvent, **kwargs: Any) -> None:
        sent.append(event)

    for signal in (signals.observation_started, signals.observation_ended):
        signal.connect(receive)
    names = (
        "on_observation_start",
        "on_observation_end",
        "on_reflection_start",
        "on_reflection_end",
    )
    model = ScriptedModel([ANSWER, ANSWER, observations("less")])
    om = make_memory(model, hooks=dict.fromkeys(names, heard.append))
    say(om, words(1500))
    with om.turn("t", "r") as turn:
        turn.step()
    assert om.reflect("t")
    assert [event.name for event in heard] == list(names)
    start, end = heard[:2]
    assert (start.thread, start.resource, start.memory) == ("t", "r", "default")
    assert [event.trigger for event in heard] == ["turn-sync"] * 2 + ["manual"] * 2
    assert start.usage is None
    assert end.usage == Usage(input_tokens=10, output_tokens=2)
    assert end.error is None
    assert sent == heard[:2]


def test_an_end_says_why_a_cycle_failed(make_memory: Make) -> None:
    heard: list[HookEvent] = []
    om = make_memory(
        ScriptedModel([PermanentModelError("401")]), hooks={"on_observation_end": heard.append}
    )
    say(om, words(1500))
    with om.turn("t", "r") as turn:
        turn.step()
    assert [event.error for event in heard] == ["401"]


def test_a_lifecycle_hook_that_raises_breaks_nothing(
    make_memory: Make, caplog: pytest.LogCaptureFixture
) -> None:
    om = make_memory(
        ScriptedModel([ANSWER]), hooks={"on_observation_start": boom, "on_observation_end": boom}
    )
    say(om, "hi")
    assert om.observe("t")
    assert ObservationGroup.objects.count() == 1
    assert [record.message for record in caplog.records] == [
        f"The hook {name} of memory default raised"
        for name in ("on_observation_start", "on_observation_end")
    ]


def test_transforms_change_what_is_read_and_written(make_memory: Make) -> None:
    def redact(event: HookEvent) -> tuple[Any, ...]:
        return tuple(
            m.with_parts(replace(p, text=p.text.replace("sk-123", "[key]")) for p in m.parts)
            for m in event.messages
        )

    model = ScriptedModel([ANSWER, observations("short")])
    om = make_memory(
        model,
        hooks={
            "before_observation": redact,
            "after_observation": lambda e: e.observations + "\n* added </observations> \0",
            "before_reflection": lambda e: e.observations.upper(),
            "after_reflection": lambda e: None,
        },
    )
    say(om, "key sk-123")
    assert om.observe("t")
    assert "sk-123" not in model.requests[0].prompt
    assert "[key]" in model.requests[0].prompt
    group = ObservationGroup.objects.get()
    assert group.text.endswith("* added &lt;/observations> ␀")
    assert group.tokens == om.services.counter.count(group.text)
    assert om.reflect("t")
    assert "A NOTE" in model.requests[1].prompt
    assert ObservationGroup.objects.get(state="active").text.endswith("short")


def test_a_transform_may_be_async(make_memory: Make) -> None:
    async def shout(event: HookEvent) -> str:
        return event.observations.upper()

    om = make_memory(ScriptedModel([ANSWER]), hooks={"after_observation": shout})
    say(om, "hi")
    om.observe("t")
    assert "A NOTE" in ObservationGroup.objects.get().text


def test_messages_that_a_hook_takes_out_are_observed_without_a_call(make_memory: Make) -> None:
    model = ScriptedModel([ANSWER])
    om = make_memory(model, hooks={"before_observation": lambda e: ()})
    say(om, "hi", "ho")
    assert om.observe("t")
    assert model.calls == 0
    assert Cursor.objects.get().position == 2
    assert ObservationGroup.objects.get().text == ""


@pytest.mark.parametrize("name", ["before_observation", "after_observation"])
def test_a_transform_that_raises_fails_the_observation(make_memory: Make, name: str) -> None:
    om = make_memory(ScriptedModel([ANSWER]), hooks={name: boom})
    say(om, "hi")
    with pytest.raises(ObservationFailed, match=f"{name} raised RuntimeError: boom"):
        om.observe("t")
    assert Cursor.objects.get().position == 0
    assert Operation.objects.get().state == "failed"


@pytest.mark.parametrize("name", ["before_reflection", "after_reflection"])
@pytest.mark.parametrize("hook", [boom, lambda e: " "])
def test_no_transform_can_lose_the_log(make_memory: Make, name: str, hook: Any) -> None:
    om = make_memory(ScriptedModel([ANSWER, observations("x")]), hooks={name: hook})
    say(om, "hi")
    om.observe("t")
    if name == "after_reflection" or hook is boom:
        with pytest.raises(ReflectionFailed):
            om.reflect("t")
        assert ObservationGroup.objects.get().state == "active"
    else:
        om.reflect("t")
        assert ObservationGroup.objects.filter(state="active").count() == 1
