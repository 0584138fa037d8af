"""Many threads, each with a connection of its own, meet at one thread of the conversation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from django.db import connections

from om_django.models import Cursor, MemoryRecord, ObservationGroup, Operation, Thread
from om_django.models import Message as MessageRow
from om_django.observational import ObservationalMemory
from om_django.testing import ScriptedModel, observations

from ..conftest import words

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., ObservationalMemory]
T = TypeVar("T")


def at_once(count: int, work: Callable[[int], T]) -> list[T]:
    """Run ``work`` in threads that start together."""
    barrier = threading.Barrier(count)

    def run(number: int) -> T:
        try:
            barrier.wait()
            return work(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_first_messages_at_once_make_one_thread(make_memory: Make) -> None:
    om = make_memory()

    def say(number: int) -> Any:
        with om.turn("new", "user") as turn:
            return turn.user(f"hello {number}").position

    assert sorted(at_once(24, say)) == list(range(1, 25))
    assert Thread.objects.count() == 1
    assert MemoryRecord.objects.count() == 1
    assert Cursor.objects.count() == 1
    assert MessageRow.objects.count() == 24


def test_the_same_message_sent_at_once_is_stored_once(make_memory: Make) -> None:
    om = make_memory()

    def say(number: int) -> str:
        with om.turn("t") as turn:
            return turn.user("hello", client_id="c1").id

    assert len(set(at_once(12, say))) == 1
    assert MessageRow.objects.count() == 1
    assert Thread.objects.get().last_position == 1


def test_steps_at_once_observe_once(make_memory: Make) -> None:
    def slowly(request: Any) -> str:
        threading.Event().wait(0.2)
        return observations("seen")

    model = ScriptedModel(slowly)
    om = make_memory(model)
    with om.turn("t") as turn:
        turn.user(words(1500))

    def step(number: int) -> int:
        with om.turn("t") as turn:
            return turn.step().log_tokens

    assert all(at_once(8, step))
    assert model.calls == 1
    assert ObservationGroup.objects.count() == 1
    assert Operation.objects.count() == 1


def test_turns_of_many_threads_at_once(make_memory: Make) -> None:
    om = make_memory(ScriptedModel(lambda r: observations("x")))

    def talk(number: int) -> int:
        for _ in range(6):
            with om.turn(f"t{number}") as turn:
                turn.user(words(300))
                step = turn.step()
                turn.add("ok")
        return step.tokens

    assert all(tokens < 1000 + 2000 for tokens in at_once(8, talk))
    assert MessageRow.objects.count() == 8 * 12


def test_turns_of_one_thread_at_once_keep_everything(make_memory: Make) -> None:
    om = make_memory(ScriptedModel(lambda r: observations(f"up to {r.task.messages[-1].position}")))

    def talk(number: int) -> None:
        for _ in range(5):
            with om.turn("t") as turn:
                turn.user(words(150))
                turn.step()
                turn.add("ok")

    at_once(6, talk)
    assert MessageRow.objects.count() == 60
    assert list(MessageRow.objects.order_by("position").values_list("position", flat=True)) == list(
        range(1, 61)
    )
    position = 0
    for group in ObservationGroup.objects.filter(kind="observation").order_by("first_position"):
        assert group.first_position == position + 1
        position = group.last_position
    assert position == Cursor.objects.get().position
    assert not Operation.objects.filter(state__in=("pending", "running")).exists()
