"""Turn and Step: what goes in is stored, what comes out can be sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from om_django.core.messages import FilePart, ImagePart, Message, TextPart, ToolCallPart
from om_django.exceptions import InvalidMessage, ThreadNotFound, TurnClosed
from om_django.models import Cursor, Event, MemoryRecord, ObservationGroup, Operation, Thread
from om_django.models import Message as MessageRow
from om_django.observational import ObservationalMemory, memories, memory
from om_django.testing import ScriptedModel, observations

from ..conftest import words

pytestmark = pytest.mark.django_db
Make = Callable[..., ObservationalMemory]


def test_a_turn_stores_what_is_said_and_gives_it_back(make_memory: Make) -> None:
    om = make_memory()
    with om.turn("conv-1", "user-7") as turn:
        turn.user("What did we decide?")
        step = turn.step()
        assert step.to_openai(system="Be kind.") == [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "What did we decide?"},
        ]
        turn.add({"role": "assistant", "content": "To wait."})
    with om.turn("conv-1", "user-7") as turn:
        turn.user("Thanks")
        assert [m["content"] for m in turn.step().to_openai()] == [
            "What did we decide?",
            "To wait.",
            "Thanks",
        ]
    assert list(MessageRow.objects.values_list("position", "role")) == [
        (1, "user"),
        (2, "assistant"),
        (3, "user"),
    ]


def test_without_observations_nothing_is_added_to_the_conversation(make_memory: Make) -> None:
    with make_memory().turn("t") as turn:
        turn.user("hi")
        step = turn.step()
    assert step.system == ()
    assert [m.role for m in step.messages] == ["user"]


def test_the_same_client_id_is_stored_once(make_memory: Make) -> None:
    om = make_memory()
    with om.turn("t") as turn:
        first = turn.user("hi", client_id="c1")
        again = turn.user("hi", client_id="c1")
        both = turn.add(
            [
                Message(role="user", parts=(TextPart("hi"),), client_id="c1"),
                Message(role="user", parts=(TextPart("you"),), client_id="c2"),
                Message(role="user", parts=(TextPart("you"),), client_id="c2"),
            ]
        )
    assert first.id == again.id == both[0].id
    assert both[1].id == both[2].id
    assert [m.position for m in both] == [1, 2, 2]
    assert Thread.objects.get().last_position == MessageRow.objects.count() == 2


def test_client_ids_belong_to_their_thread(make_memory: Make) -> None:
    om = make_memory()
    for key in ("a", "b"):
        with om.turn(key) as turn:
            turn.user("hi", client_id="c1")
    assert MessageRow.objects.count() == 2


def test_a_foreign_thread_does_not_exist(make_memory: Make) -> None:
    om = make_memory()
    with om.turn("t", "anna") as turn:
        turn.user("secret")
    with pytest.raises(ThreadNotFound) as foreign, om.turn("t", "ben"):
        pass
    with pytest.raises(ThreadNotFound) as unknown, om.turn("u", "ben", read_only=True):
        pass
    assert str(foreign.value).replace("'t'", "'u'") == str(unknown.value)


@pytest.mark.parametrize("key", ["", "x" * 256, "a\0b", "a\ud800", None, 7])
def test_a_thread_key_that_cannot_be_stored_is_refused(make_memory: Make, key: Any) -> None:
    with pytest.raises(InvalidMessage, match="thread must be a text of 1 to 255"):
        make_memory().turn(key).__enter__()


def test_a_closed_turn_takes_nothing(make_memory: Make) -> None:
    turn = make_memory().turn("t")
    with pytest.raises(TurnClosed):
        turn.user("hi")
    with turn:
        turn.user("hi")
    with pytest.raises(TurnClosed):
        turn.step()


def test_a_bad_message_stores_nothing(make_memory: Make) -> None:
    with make_memory().turn("t") as turn:
        with pytest.raises(InvalidMessage, match="absolute"):
            turn.user([TextPart("see"), ImagePart(url="/media/logo.svg")])
        with pytest.raises(InvalidMessage, match="time zone"):
            turn.user("hi", created_at=datetime(2026, 1, 1))  # noqa: DTZ001
        with pytest.raises(InvalidMessage, match="role"):
            turn.add(Message(role="robot", parts=()))  # type: ignore[arg-type]
        assert MessageRow.objects.count() == 0
        assert turn.user("hi").position == 1


def test_order_is_that_of_storing_whatever_the_clocks_say(make_memory: Make) -> None:
    with make_memory().turn("t") as turn:
        turn.user("second day", created_at=datetime(2026, 1, 2, tzinfo=UTC))
        turn.user("first day", created_at=datetime(2026, 1, 1, tzinfo=UTC))
        texts = [m.text for m in turn.step().messages]
    assert texts == ["second day", "first day"]
    assert Thread.objects.get().last_message_at == datetime(2026, 1, 2, tzinfo=UTC)


def test_every_kind_of_part_comes_back(make_memory: Make) -> None:
    parts = (
        TextPart("see"),
        ImagePart(url="https://example.com/a.png", width=10, height=10, detail="low"),
        FilePart(data="aGk=", media_type="text/plain", filename="hi.txt"),
    )
    with make_memory().turn("t") as turn:
        turn.user(parts)
        turn.add(
            Message(
                role="assistant",
                parts=(
                    ToolCallPart("k1", "look", {"b": 1, "a": [1.0, 2]}, '{"b": 1,"a":[1.0,2]}'),
                ),
            )
        )
        turn.tool_result("k1", {"z": 1, "a": "é"}, name="look")
        step = turn.step()
    assert step.messages[0].parts == parts
    assert step.messages[1].tool_calls[0].raw_args == '{"b": 1,"a":[1.0,2]}'
    assert list(step.messages[1].tool_calls[0].args) == ["b", "a"]  # type: ignore[arg-type]
    assert list(step.messages[2].tool_results[0].result) == ["z", "a"]  # type: ignore[arg-type]
    assert step.to_gemini()["contents"][0]["role"] == "user"
    assert step.to_ui()[0]["role"] == "user"


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("a\0b", "a␀b"),
        ("a\ud83d", "a\ufffd"),
        ("\udc00a", "\ufffda"),
        ("\ud83d\ude00", "😀"),
        ("日本\0", "日本␀"),
    ],
)
def test_what_a_database_refuses_is_replaced_visibly(
    make_memory: Make, said: str, stored: str
) -> None:
    with make_memory().turn("t") as turn:
        turn.user(said, metadata={said: [said, float("nan")]})
        turn.add(Message(role="assistant", parts=(ToolCallPart("k", "f", {said: said}),)))
        turn.tool_result("k", [said])
        user, call, result = turn.step().messages
    assert user.text == stored
    assert user.metadata == {stored: [stored, "nan"]}
    assert call.tool_calls[0].args == {stored: stored}
    assert result.tool_results[0].result == [stored]


def test_a_read_only_turn_writes_nothing(make_memory: Make) -> None:
    model = ScriptedModel([observations("something")])
    om = make_memory(model)
    with om.turn("t") as turn:
        for _ in range(3):
            turn.user(words(400))
        turn.step()
    tables = (Thread, MessageRow, MemoryRecord, Cursor, ObservationGroup, Operation, Event)
    before = [table.objects.count() for table in tables]
    with om.turn("t", read_only=True) as turn:
        turn.user(words(2000))
        step = turn.step()
    assert [table.objects.count() for table in tables] == before
    assert model.calls == 1
    assert step.log_tokens > 0
    assert step.messages[-1].text == words(2000)


def test_a_disabled_memory_never_calls_a_model(make_memory: Make) -> None:
    model = ScriptedModel([observations("x")])
    with make_memory(model, enabled=False).turn("t") as turn:
        turn.user(words(5000))
        step = turn.step()
    assert model.calls == 0
    assert len(step.messages) == 1


def test_status_once_a_step_with_the_fields_of_the_wire(make_memory: Make) -> None:
    with make_memory().turn("conv") as turn:
        turn.user("hi")
        turn.step()
        turn.add("hello")
        turn.step()
    found = list(Event.objects.order_by("id"))
    assert [event.type for event in found] == ["data-om-status"] * 2
    assert [event.data["stepNumber"] for event in found] == [0, 1]
    data = found[0].data
    assert data["threadId"] == "conv"
    assert data["generationCount"] == 0
    assert data["windows"]["active"]["messages"] == {"tokens": 30, "threshold": 1000}
    assert data["windows"]["active"]["observations"] == {"tokens": 0, "threshold": 2000}


def test_memories_of_the_settings(settings: Any) -> None:
    settings.OM_DJANGO = {
        "MEMORIES": {
            "default": {"model": "offline/extractive"},
            "small": {"model": "offline/extractive", "observation": {"message_tokens": 500}},
            "own": "tests.engine.test_turn.OWN",
        }
    }
    assert list(memories) == ["default", "small", "own"]
    assert memories["small"].config.observation.message_tokens == 500
    assert memories["own"] is OWN
    assert memory.name == "default"
    with memories["small"].turn("t") as turn:
        turn.user("hi")
    with memory.turn("t") as turn:
        turn.user("ho")
        assert len(turn.step().messages) == 2
    assert sorted(MemoryRecord.objects.values_list("memory", flat=True)) == ["default", "small"]


OWN = ObservationalMemory("own", {"model": "offline/extractive"})
