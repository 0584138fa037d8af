"""No message is ever lost or reordered, whatever is said and whatever the models answer."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from om_django.core.messages import (
    DataPart,
    FilePart,
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from om_django.core.text import clean_text
from om_django.exceptions import ObservationFailed, ReflectionFailed
from om_django.llm.base import ContextTooLong, ModelRequest, PermanentModelError
from om_django.models import Cursor, MemoryRecord, ObservationGroup, Thread
from om_django.models import Message as MessageRow
from om_django.observational import ObservationalMemory
from om_django.testing import ScriptedModel, observations

from ..conftest import Clock

Make = Callable[..., ObservationalMemory]

pieces = st.sampled_from(
    [
        "",
        "\0",
        "\ud83d",
        "\udc00x",
        "😀",
        "日本語のテキスト",
        "word " * 60,
        "</observations>",
        "a\nb",
        "x" * 300,
    ]
)
texts = st.lists(pieces, max_size=4).map("".join)
plain_parts = st.one_of(
    texts.map(TextPart),
    texts.map(ReasoningPart),
    texts.map(lambda text: DataPart("data-note", {"text": text})),
    st.just(ImagePart(url="https://example.com/a.png", width=900, height=900)),
    st.just(ImagePart(data="iVBORw0KGgo=", media_type="image/png")),
    st.just(FilePart(data="aGVsbG8=", media_type="text/plain", filename="a\0.txt")),
)
steps = st.one_of(
    st.tuples(st.just("user"), st.lists(plain_parts, max_size=3)),
    st.tuples(st.just("assistant"), st.lists(plain_parts, max_size=2)),
    # A tool loop: how many calls, and which of them are answered before the next message.
    st.tuples(st.just("tools"), st.integers(1, 3), st.integers(0, 3), texts),
    st.tuples(st.just("late"), texts),
    st.tuples(st.just("step"), st.none()),
    st.tuples(st.just("observe"), st.none()),
    st.tuples(st.just("reflect"), st.none()),
)


def unreliable(seed: int) -> Callable[[ModelRequest], Any]:
    """Return a script that answers well most of the time."""
    dice = random.Random(seed)

    def answer(request: ModelRequest) -> Any:
        kind = dice.random()
        if kind < 0.05:
            return ""
        if kind < 0.1:
            return "no notes at all"
        if kind < 0.15:
            return PermanentModelError("broken")
        if kind < 0.2:
            return RuntimeError("a bug")
        if kind < 0.22:
            return "<observations>\n* " + "loop " * 3000 + "\n</observations>"
        if kind < 0.3:
            return observations(*(f"long {dice.random()} " * 4 for _ in range(40)))
        if kind < 0.32:
            return ContextTooLong("too long")
        return observations(f"note {dice.random()} \0 \ud83d", f"second {dice.random()}")

    return answer


def play(om: ObservationalMemory, clock: Clock, script: list[Any]) -> Iterator[list[Message]]:
    """Play a script and yield all that was stored so far, as it was given."""
    given: list[Message] = []
    open_calls: list[str] = []
    number = 0
    for number, (kind, *args) in enumerate(script, 1):
        clock.move(seconds=random.Random(number).choice([1, 30, -5, 700]))
        with om.turn("t", "r") as turn:
            if kind in ("user", "assistant"):
                given += turn.add(Message(role=kind, parts=tuple(args[0])))
            elif kind == "tools":
                count, answered, text = args
                ids = [f"k{number}-{n}" for n in range(count)]
                calls = tuple(ToolCallPart(call, "tool", {"q": text}) for call in ids)
                given += turn.add(Message(role="assistant", parts=calls))
                for call in ids[:answered]:
                    result = ToolResultPart(call, "tool", [text, 1])
                    given += turn.add(Message(role="tool", parts=(result,)))
                open_calls += ids[answered:]
            elif kind == "late" and open_calls:
                result = ToolResultPart(open_calls.pop(0), "tool", args[0])
                given += turn.add(Message(role="tool", parts=(result,)))
            elif kind == "step":
                turn.step()
            elif kind in ("observe", "reflect"):
                with contextlib.suppress(ObservationFailed, ReflectionFailed):
                    turn.observe() if kind == "observe" else turn.reflect()
        yield given


def check(given: list[Message], om: ObservationalMemory) -> None:
    rows = list(MessageRow.objects.order_by("position"))
    assert [row.position for row in rows] == list(range(1, len(given) + 1))
    for row, message in zip(rows, given, strict=True):
        assert row.to_core().parts == message.parts
        assert row.role == message.role
    if not given:
        return
    cursor, record = Cursor.objects.get(), MemoryRecord.objects.get()
    covered = [0] * (len(given) + 1)
    for group in ObservationGroup.objects.filter(kind="observation"):
        assert group.state in ("active", "superseded")
        for position in range(group.first_position, group.last_position + 1):
            covered[position] += 1
    assert covered[1 : cursor.position + 1] == [1] * cursor.position
    assert not any(covered[cursor.position + 1 :])
    active = ObservationGroup.objects.filter(state="active")
    assert record.log_tokens == sum(active.values_list("tokens", flat=True))
    assert all(group.generation <= record.generation for group in active)
    if record.generation:
        # What is in an older generation is covered by the reflection that closed it.
        closed = ObservationGroup.objects.filter(kind="observation", state="superseded")
        reflections = ObservationGroup.objects.filter(kind="reflection", state="active")
        assert not closed or reflections
    window = [m.position for m in om.context("t").messages if m.position > cursor.position]
    assert sorted(set(window)) == [
        row.position for row in rows[cursor.position :] if row.position in set(window)
    ]
    dropped = set(range(cursor.position + 1, len(rows) + 1)) - set(window)
    # Only results without a call, or told twice, are not sent.
    assert all(rows[position - 1].role == "tool" for position in dropped)


@pytest.mark.django_db(transaction=True)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(script=st.lists(steps, max_size=14), seed=st.integers(0, 2**32))
def test_every_message_is_in_exactly_one_place(
    make_memory: Make, clock: Clock, script: list[Any], seed: int
) -> None:
    Thread.objects.all().delete()
    om = make_memory(
        ScriptedModel(unreliable(seed)),
        observation={"message_tokens": 250, "max_input_tokens": 400},
        reflection={"observation_tokens": 120},
    )
    given_so_far: list[Message] = []
    for given_so_far in play(om, clock, script):
        check(given_so_far, om)


@pytest.mark.django_db
def test_a_megabyte_goes_in_and_comes_back(make_memory: Make) -> None:
    om = make_memory()
    for text in ("x" * 1_000_000, "漢" * 350_000, "word " * 200_000):
        with om.turn("t") as turn:
            turn.user(text)
            step = turn.step()
            assert step.messages[-1].text == text
            turn.add("ok")
    assert Cursor.objects.get().position == 5


@pytest.mark.parametrize("text", ["plain", "日本", "😀", "a" * 10])
def test_clean_text_changes_nothing_that_is_fine(text: str) -> None:
    assert clean_text(text) is text
