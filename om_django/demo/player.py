"""Playing a conversation through a memory as an agent loop would."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Literal

from django.db.models import Count, Q, Sum
from django.utils import timezone

from om_django.core.messages import Message, part_to_json
from om_django.core.planner import count_window
from om_django.models import Event, ModelCall, Operation, OperationState
from om_django.models import Message as MessageRow
from om_django.observational import ObservationalMemory
from om_django.turn import Step, Turn

Kind = Literal["observation", "reflection", "failure"]


class OtherConversation(ValueError):
    """The thread holds another conversation than the one to play."""


class DemoClock:
    """The time of the conversation: what was said last, plus the time that really passed since."""

    def __init__(self) -> None:
        self._said: datetime | None = None
        self._at = 0.0

    def __call__(self) -> datetime:
        if self._said is None:
            return timezone.now()
        return self._said + timedelta(seconds=time.monotonic() - self._at)

    def move(self, said: datetime | None) -> None:
        """Go on to when a message was said; never back."""
        if said is not None and (self._said is None or said > self()):
            self._said, self._at = said, time.monotonic()


@dataclass(frozen=True, slots=True)
class Sample:
    """Sizes after a message, in tokens. ``at`` is the message's position in the thread."""

    at: int
    window: int
    log: int

    @property
    def total(self) -> int:
        return self.window + self.log


@dataclass(frozen=True, slots=True)
class Happening:
    """One observation or reflection as it happened at a step, or one that failed.

    ``messages`` are those that left the window; ``window`` and ``log`` are the sizes before and
    after. Sizes are in tokens. ``text`` is the new text of the log, or the error.
    """

    kind: Kind
    at: int
    messages: int
    tokens_in: int
    tokens_out: int
    window: tuple[int, int]
    log: tuple[int, int]
    generation: int
    text: str

    @property
    def ratio(self) -> float:
        return self.tokens_in / max(1, self.tokens_out)


@dataclass(slots=True)
class Played:
    """What a run came to. Sizes are in tokens, times in seconds."""

    thread: str
    message_threshold: int
    log_threshold: int
    samples: list[Sample] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    step_seconds: list[float] = field(default_factory=list)
    skipped: int = 0
    stored: int = 0
    #: The largest context an actor was given, and the largest single message.
    largest_context: int = 0
    largest_message: int = 0
    final: Step | None = None

    @property
    def bound(self) -> int:
        """What no context may exceed: both thresholds and one message."""
        return self.message_threshold + self.log_threshold + self.largest_message

    @property
    def bounded(self) -> bool:
        return self.largest_context <= self.bound

    def count(self, kind: Kind) -> int:
        return sum(happening.kind == kind for happening in self.happenings)


class Player:
    """Plays messages into a thread and keeps the sizes of the context.

    Arguments:
        memory: The memory to play through; ``clock`` must be its clock.
        thread: The thread's id. Messages it has already are not played again.
        on_message: Called after each message of the conversation, stored or skipped.
        on_happening: Called for each observation, reflection and failure.
    """

    def __init__(
        self,
        memory: ObservationalMemory,
        thread: str,
        clock: DemoClock,
        *,
        on_message: Callable[[], None] = lambda: None,
        on_happening: Callable[[Happening], None] = lambda happening: None,
    ) -> None:
        self.memory = memory
        self.clock = clock
        self.played = Played(
            thread,
            memory.config.observation.message_tokens,
            memory.config.reflection.observation_tokens,
        )
        self._on_message = on_message
        self._on_happening = on_happening
        self._window = self._log = 0
        self._last_event = 0

    def play(self, messages: Sequence[Message]) -> Played:
        """Play all messages, then take one more step: the context of the next call.

        Raises :class:`OtherConversation`.
        """
        thread = self.played.thread
        known = self._known(messages)
        fresh = [message for message in messages if message.client_id not in known]
        self.played.skipped = len(messages) - len(fresh)
        for _ in range(self.played.skipped):
            self._on_message()
        if self.played.skipped:
            self.clock.move(
                max(
                    (m.created_at for m in messages if m.client_id in known and m.created_at),
                    default=None,
                )
            )
            self._resume()
        for turn_messages in turns(fresh):
            with self.memory.turn(thread, model="demo/replay") as turn:
                for message in turn_messages:
                    self._play_one(turn, message)
        with self.memory.turn(thread, model="demo/replay") as turn:
            self.played.final = self._step(turn)
        return self.played

    def _play_one(self, turn: Turn, message: Message) -> None:
        self.clock.move(message.created_at)
        if message.role == "user":
            stored = [turn.user(message)]
        else:
            if message.role == "assistant":
                # Here an agent loop would ask its model; the answer is known already.
                self._step(turn)
            stored = turn.add(message)
        for one in stored:
            alone = count_window([one])
            self.played.stored += 1
            self.played.largest_message = max(self.played.largest_message, alone)
            self._window += count_window([one, one]) - alone if self._window else alone
            self._sample(one.position)
        self._on_message()

    def _sample(self, position: int) -> None:
        self.played.samples.append(Sample(position, self._window, self._log))

    def _step(self, turn: Turn) -> Step:
        before = self._window
        begun = time.perf_counter()
        step = turn.step()
        self.played.step_seconds.append(time.perf_counter() - begun)
        log_before, self._log = self._log, step.log_tokens
        self._window = step.message_tokens
        self.played.largest_context = max(self.played.largest_context, step.tokens)
        self._report(before, log_before, step)
        return step

    def _report(self, window: int, log: int, step: Step) -> None:
        """Tell what happened in a step: read from the events it left."""
        ends = [event for event in self._new_events() if event.type in (ENDED, FAILED)]
        at = self.played.samples[-1].at if self.played.samples else 0
        for index, event in enumerate(ends):
            happening = _happening(event, at, window, log)
            later = [kind_of(other) for other in ends[index + 1 :]]
            # The last sizes are known: what was written also has framing, and a message that is
            # still to be answered stays in sight.
            if happening.kind == "observation" and "observation" not in later:
                happening = replace(happening, window=(window, step.message_tokens))
            if happening.kind != "failure" and not {"observation", "reflection"} & set(later):
                happening = replace(happening, log=(log, step.log_tokens))
            window, log = happening.window[1], happening.log[1]
            self.played.happenings.append(happening)
            self._on_happening(happening)
        if ends:
            self._sample(at)

    def _new_events(self) -> list[Event]:
        events = Event.objects.filter(
            thread__key=self.played.thread,
            record__memory=self.memory.name,
            pk__gt=self._last_event,
        )
        found = list(events.order_by("pk").select_related("operation"))
        self._last_event = found[-1].pk if found else self._last_event
        return found

    def _resume(self) -> None:
        context = self.memory.context(self.played.thread)
        self._window, self._log = context.message_tokens, context.log_tokens
        events = Event.objects.filter(
            thread__key=self.played.thread, record__memory=self.memory.name
        )
        self._last_event = events.order_by("-pk").values_list("pk", flat=True).first() or 0

    def _known(self, messages: Sequence[Message]) -> set[str | None]:
        """Return the ids that the thread has already."""
        rows = MessageRow.objects.filter(thread__key=self.played.thread)
        known = set(rows.exclude(client_id=None).values_list("client_id", flat=True))
        for message in messages:
            if message.client_id in known:
                row = rows.get(client_id=message.client_id)
                if row.parts != [part_to_json(part) for part in message.parts]:
                    raise OtherConversation(
                        f"thread {self.played.thread!r} holds another conversation: its message "
                        f"{message.client_id!r} is not the one of this file"
                    )
                break
        return set(known)


ENDED, FAILED = "data-om-observation-end", "data-om-observation-failed"


def kind_of(event: Event) -> Kind:
    """Return what an event that ends an operation tells."""
    if event.type == FAILED:
        return "failure"
    return "observation" if event.data.get("operationType") == "observation" else "reflection"


def _happening(event: Event, at: int, window: int, log: int) -> Happening:
    operation = event.operation
    assert operation is not None, "an operation records its events"
    kind = kind_of(event)
    first, last = operation.start_position, operation.end_position
    return Happening(
        kind=kind,
        at=at,
        messages=0 if first is None or last is None else last - first + 1,
        tokens_in=operation.tokens_in,
        tokens_out=operation.tokens_out,
        window=(window, max(0, window - operation.tokens_in) if kind == "observation" else window),
        log=(log, _log_after(kind, log, operation.tokens_out)),
        generation=operation.generation + (kind == "reflection"),
        text=str(event.data.get("error" if kind == "failure" else "observations") or ""),
    )


def _log_after(kind: Kind, log: int, tokens_out: int) -> int:
    return {"observation": log + tokens_out, "reflection": tokens_out, "failure": log}[kind]


def turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Split a conversation into turns: what the user says, and all that answers it."""
    turn: list[Message] = []
    for is_user, run in groupby(messages, key=lambda message: message.role == "user"):
        if is_user and turn:
            yield turn
            turn = []
        turn.extend(run)
    if turn:
        yield turn


@dataclass(frozen=True, slots=True)
class Totals:
    """Everything a thread holds, over all runs. Sizes are in tokens."""

    messages: int
    tokens: int
    observations: int
    reflections: int
    model_calls: int


def totals(memory: str, thread: str) -> Totals:
    """Count what is stored of a thread."""
    rows = MessageRow.objects.filter(thread__key=thread).aggregate(
        messages=Count("pk"), tokens=Sum("tokens")
    )
    mine = {"record__memory": memory, "thread__key": thread}
    done = Operation.objects.filter(state=OperationState.SUCCEEDED, **mine).aggregate(
        observations=Count("pk", filter=Q(kind__contains="observ")),
        reflections=Count("pk", filter=Q(kind__contains="reflect")),
    )
    calls = ModelCall.objects.filter(
        operation__record__memory=memory, operation__thread__key=thread
    ).count()
    return Totals(
        messages=rows["messages"],
        tokens=rows["tokens"] or 0,
        observations=done["observations"],
        reflections=done["reflections"],
        model_calls=calls,
    )
