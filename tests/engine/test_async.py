"""The async forms keep the promises of the sync ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from om_django.llm.base import ModelRequest, ModelResponse
from om_django.models import Cursor, ObservationGroup, Operation
from om_django.observational import ObservationalMemory
from om_django.testing import ScriptedModel, observations

from ..conftest import words

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., ObservationalMemory]


@pytest.fixture(autouse=True)
async def _close_connections() -> AsyncIterator[None]:
    yield
    # They belong to the thread that does the database work of this event loop.
    await sync_to_async(connections.close_all)()


class Slow:
    """A model that takes its time, and can be cancelled."""

    name = "test/slow"

    def __init__(self) -> None:
        self.started = asyncio.Event()

    def generate(self, request: ModelRequest) -> ModelResponse:
        raise AssertionError("the async form must be used")

    async def agenerate(self, request: ModelRequest) -> ModelResponse:
        self.started.set()
        await asyncio.sleep(30)
        raise AssertionError("cancelled before")


async def test_an_async_turn(make_memory: Make) -> None:
    model = ScriptedModel([observations("all of it")])
    om = make_memory(model)
    async with om.turn("t", "r") as turn:
        await turn.auser(words(1500))
        step = await turn.astep(model="test/m")
        assert step.log_tokens > 0
        await turn.aadd(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "k", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            }
        )
        await turn.atool_result("k", "done", name="f")
        step = await turn.astep()
    assert model.calls == 1
    assert [m.role for m in step.messages] == ["user", "user", "assistant", "tool"]
    assert step.number == 1
    assert await om.aobserve("t", "r")
    assert await om.areflect("t", "r") is False or model.calls > 2
    assert (await om.acontext("t", "r")).log_tokens > 0


async def test_a_cancelled_step_changes_nothing_and_can_be_done_again(make_memory: Make) -> None:
    slow = Slow()
    om = make_memory(slow)
    async with om.turn("t") as turn:
        await turn.auser(words(1500))
        task = asyncio.ensure_future(turn.astep())
        await slow.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    operation = await Operation.objects.aget()
    assert operation.state == "cancelled"
    assert (await Cursor.objects.aget()).position == 0
    again = make_memory(ScriptedModel([observations("x")]))
    async with again.turn("t") as turn:
        await turn.astep()
    assert await ObservationGroup.objects.acount() == 1


async def test_a_model_that_hangs_is_left_behind(make_memory: Make) -> None:
    om = make_memory(Slow(), blocking_timeout=0.1)
    async with om.turn("t") as turn:
        await turn.auser(words(1500))
        step = await turn.astep()
    assert step.messages[-1].text == words(1500)
    assert (await Operation.objects.aget()).state == "failed"


async def test_many_turns_at_once_do_not_mix(make_memory: Make) -> None:
    om = make_memory(ScriptedModel(lambda r: observations(r.prompt.split("name-")[1][:3])))

    async def one(name: str) -> None:
        async with om.turn(name, name) as turn:
            await turn.auser(f"name-{name} {words(1500)}")
            step = await turn.astep()
            assert f"(12:00) {name}" in "\n".join(step.system)

    await asyncio.gather(*(one(f"{n:03}") for n in range(8)))
    assert await sync_to_async(ObservationGroup.objects.count)() == 8
