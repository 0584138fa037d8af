"""Reflecting: the log becomes the next generation, or stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from om_django.exceptions import ReflectionFailed
from om_django.llm.base import ModelRequest, ModelResponse, PermanentModelError
from om_django.models import Event, MemoryRecord, ObservationGroup, Operation
from om_django.observational import ObservationalMemory
from om_django.testing import ScriptedModel, observations

from ..conftest import Clock, words

pytestmark = pytest.mark.django_db
Make = Callable[..., ObservationalMemory]


def notes(tokens: int, name: str = "n") -> str:
    """Return an answer of roughly so many tokens of observations."""
    return observations(*(f"{name}{n} {words(20)}" for n in range(max(1, tokens // 30))))


class Agents:
    """An Observer that writes ``size`` tokens and a Reflector with a script."""

    def __init__(self, make: Make, reflector: Any, size: int = 700, **options: Any) -> None:
        self.observer = ScriptedModel(lambda r: notes(size, f"o{self.observer.calls}-"))
        self.reflector = ScriptedModel(reflector)
        self.om = make(
            observation={"model": self.observer, **options.pop("observation", {})},
            reflection={"model": self.reflector, **options.pop("reflection", {})},
            **options,
        )

    def observe(self, times: int) -> None:
        for _ in range(times):
            with self.om.turn("t") as turn:
                turn.user(words(1100))
                self.step = turn.step()
                turn.add("ok")

    @property
    def record(self) -> MemoryRecord:
        return MemoryRecord.objects.get()


def active() -> list[str]:
    groups = ObservationGroup.objects.filter(state="active").order_by("sequence", "piece")
    return [group.text for group in groups]


def test_at_the_threshold_the_log_becomes_the_next_generation(make_memory: Make) -> None:
    agents = Agents(make_memory, [observations("all in one")])
    agents.observe(3)
    assert agents.record.generation == 1
    assert active() == ["Date: Jan 5, 2026\n* 🟡 (12:00) all in one"]
    assert agents.record.log_tokens == ObservationGroup.objects.get(state="active").tokens
    reflection = ObservationGroup.objects.get(kind="reflection")
    assert (reflection.first_position, reflection.last_position) == (1, 5)
    assert reflection.generation == 1
    closed = ObservationGroup.objects.filter(state="superseded")
    assert list(closed.values_list("generation", "closed_generation")) == [(0, 1)] * 3
    assert reflection.message_count == sum(group.message_count for group in closed)
    assert agents.step.log_tokens < 2000
    end = Event.objects.filter(type="data-om-observation-end").order_by("-id")[0]
    assert end.data["operationType"] == "reflection"
    agents.observe(1)
    assert len(active()) == 2


@pytest.mark.parametrize("bad", ["", "loop", "<observations>\n</observations>", "cut"])
def test_a_useless_reflection_leaves_the_log(make_memory: Make, clock: Clock, bad: str) -> None:
    answer: Any = {
        "loop": "<observations>\n" + "* the same line again and again\n" * 200 + "</observations>",
        "cut": ModelResponse(
            text="<observations>\n* only the first\n* sec", finish_reason="length"
        ),
    }.get(bad, bad)
    agents = Agents(make_memory, [answer])
    agents.observe(3)
    before = active()
    assert len(before) == 3
    assert agents.reflector.calls == 4
    assert agents.record.generation == 0
    assert Event.objects.filter(type="data-om-observation-failed").count() == 1
    with pytest.raises(ReflectionFailed, match="no usable reflection in 4 attempts"):
        agents.om.reflect("t")
    assert active() == before
    # It waits, and then until the log has grown.
    clock.move(hours=1)
    calls = agents.reflector.calls
    with agents.om.turn("t") as turn:
        turn.user("hi")
        turn.step()
    assert agents.reflector.calls == calls


def test_a_log_that_cannot_shrink_enough_is_not_reflected_at_every_turn(
    make_memory: Make, clock: Clock
) -> None:
    agents = Agents(make_memory, [notes(2080)], size=740)
    agents.observe(3)
    record = agents.record
    assert agents.reflector.calls == 4
    assert record.generation == 1
    assert record.log_tokens >= 2000
    for _ in range(5):
        clock.move(hours=1)
        with agents.om.turn("t") as turn:
            turn.user("hi")
            assert turn.step().messages[-1].text == "hi"
            turn.add("ho")
    assert agents.reflector.calls == 4
    agents.observe(1)
    assert agents.reflector.calls == 8


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([1300, 900, 1500, 1800], 900),
        ([1300, 900, 1500, None], 900),
        ([1900, 1900, 1900, 1950], 1900),
        ([3000, 3000, 3000, 3000], None),
    ],
)
def test_the_smallest_sound_attempt_is_kept(
    make_memory: Make, sizes: list[int | None], kept: int | None
) -> None:
    """The log has about 2,100 tokens and the threshold is far below what any attempt reaches."""
    script = iter(sizes)
    agents = Agents(
        make_memory,
        lambda r: "" if (size := next(script)) is None else notes(size),
        reflection={"observation_tokens": 500},
        size=450,
    )
    agents.observe(0)
    for _ in range(5):
        with agents.om.turn("t") as turn:
            turn.user(words(1100))
        agents.om.observe("t")
    tokens = agents.record.log_tokens
    assert tokens > 2000
    with agents.om.turn("t") as turn:
        turn.step()
    assert agents.reflector.calls == 4
    if kept is None:
        assert agents.record.generation == 0
        assert agents.record.log_tokens == tokens
    else:
        assert agents.record.generation == 1
        assert agents.record.log_tokens == pytest.approx(kept, rel=0.1)


def test_levels_rise_from_one_and_from_two_for_a_wordy_model(make_memory: Make) -> None:
    for name, levels in (("test/x", [1, 2, 3, 4]), ("google/gemini-2.5-flash-lite", [2, 3, 4])):
        MemoryRecord.objects.all().delete()
        agents = Agents(make_memory, [notes(2090)], size=740)
        agents.reflector.name = name
        agents.observe(3)
        assert [r.task.level for r in agents.reflector.requests] == levels  # type: ignore[union-attr]


def test_a_manual_reflection_starts_gently_and_takes_a_request(make_memory: Make) -> None:
    agents = Agents(make_memory, [observations("short")], size=300)
    agents.observe(1)
    assert agents.om.reflect("t", prompt="Keep the numbers.")
    request = agents.reflector.requests[0]
    assert request.task.level == 0  # type: ignore[union-attr]
    assert "Keep the numbers." in request.system
    assert Operation.objects.get(kind="reflect").trigger == "manual"


def test_an_empty_log_is_not_reflected(make_memory: Make) -> None:
    agents = Agents(make_memory, [observations("x")])
    assert not agents.om.reflect("t")
    assert agents.reflector.calls == 0


def test_a_failing_reflector_does_not_stop_the_conversation(make_memory: Make) -> None:
    agents = Agents(make_memory, [PermanentModelError("no key")])
    agents.observe(4)
    assert agents.reflector.calls == 1
    assert len(active()) == 4
    assert agents.step.messages[-1].text == words(1100)


def test_observations_made_meanwhile_stand_after_the_reflection(
    make_memory: Make, transactional_db: None
) -> None:
    def answer(request: ModelRequest) -> str:
        with agents.om.turn("t") as turn:
            turn.user("meanwhile")
        agents.om.observe("t")
        return observations("reflected")

    agents = Agents(make_memory, answer, size=300)
    agents.observe(1)
    assert agents.om.reflect("t")
    first, second = active()
    assert "reflected" in first
    assert "o2-0" in second
    assert agents.record.log_tokens == sum(
        ObservationGroup.objects.filter(state="active").values_list("tokens", flat=True)
    )


def test_pieces_of_a_reflection_know_their_sources(make_memory: Make) -> None:
    def day(number: int, count: int = 40) -> str:
        lines = "\n".join(
            f"* 🟡 ({n % 24:02}:00) day {number} note {n} {words(8)}" for n in range(count)
        )
        return f"Date: Jan {number}, 2026\n{lines}"

    texts = iter([day(1), day(2), day(3)])
    agents = Agents(make_memory, [], size=0)
    agents.observer._function = lambda r: f"<observations>\n{next(texts)}\n</observations>"
    agents.reflector._function = lambda r: (
        f"<observations>\n{day(1, 20)}\n{day(2, 20)}\n{day(3, 20)}\n</observations>"
    )
    agents.observe(3)
    pieces = ObservationGroup.objects.filter(kind="reflection").order_by("piece")
    ranges = [(piece.first_position, piece.last_position) for piece in pieces]
    sources = ObservationGroup.objects.filter(kind="observation").order_by("sequence")
    assert ranges == [(group.first_position, group.last_position) for group in sources]
    assert [piece.text.split("\n")[0] for piece in pieces] == [
        f"Date: Jan {n}, 2026" for n in (1, 2, 3)
    ]
