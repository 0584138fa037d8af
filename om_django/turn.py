"""Turn and Step: what an agent loop calls."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from asgiref.sync import sync_to_async

from .core.context import Context, build_context
from .core.convert.detect import messages_from
from .core.convert.gemini import to_gemini
from .core.convert.openai import to_openai
from .core.convert.ui import to_ui
from .core.messages import (
    InvalidMessage,
    Message,
    Outcome,
    Part,
    TextPart,
    ToolResultPart,
)
from .core.planner import Observe, State, count_window, observable, plan
from .core.text import JSON
from .engine import events, store
from .engine.flow import Flow, Pause, arun, run
from .engine.observe import observe
from .engine.operations import live_until
from .engine.reflect import reflect
from .exceptions import ObservationFailed, ReflectionFailed, TurnClosed
from .models import Trigger

if TYPE_CHECKING:
    from .observational import ObservationalMemory

logger = logging.getLogger("om_django")

Content = str | Sequence[Part] | Message
#: Sections of the log that the actor is shown, in this order.
SHOWN_VALUES = ("current-task", "suggested-response")
FIRST_POLL, MAX_POLL = 0.02, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The context of one call of the actor.

    ``system`` are the system blocks and ``messages`` what follows them, ready to send. All token
    numbers are in tokens: ``message_tokens`` is the window, ``log_tokens`` the observations.
    ``status`` is the data of the ``data-om-status`` part.
    """

    number: int
    system: tuple[str, ...]
    messages: tuple[Message, ...]
    message_tokens: int
    log_tokens: int
    status: dict[str, JSON]

    @property
    def tokens(self) -> int:
        """What the two thresholds bound: window and log together, without fixed instructions."""
        return self.message_tokens + self.log_tokens

    def to_openai(self, *, system: str = "") -> list[dict[str, Any]]:
        """Return OpenAI chat messages; ``system`` are the application's own instructions."""
        blocks = [system, *self.system] if system else list(self.system)
        return [{"role": "system", "content": text} for text in blocks] + to_openai(self.messages)

    def to_gemini(self, *, system: str = "") -> dict[str, Any]:
        """Return ``system_instruction`` and ``contents`` for ``generate_content``."""
        blocks = [system, *self.system] if system else list(self.system)
        own, contents = to_gemini(self.messages)
        parts = [{"text": text} for text in blocks] + list((own or {}).get("parts", ()))
        return {"system_instruction": {"parts": parts} if parts else None, "contents": contents}

    def to_ui(self) -> list[dict[str, Any]]:
        """Return AI SDK UI messages, without system blocks and reminder."""
        return to_ui([m for m in self.messages if m.position])


class Turn:
    """One turn of a thread: the user speaks, the actor answers in one or more steps.

    Everything is stored at once, so a turn that stops half way has lost nothing. Each method has
    an async form with the prefix ``a``. See :meth:`ObservationalMemory.turn`.
    """

    def __init__(
        self,
        memory: ObservationalMemory,
        thread: str,
        resource: str | None,
        *,
        model: str = "",
        read_only: bool = False,
    ) -> None:
        self.memory = memory
        self.thread = thread
        self.resource = resource
        self.model = model
        self.read_only = read_only
        self._open = False
        self._steps = 0
        self._prompt: Message | None = None
        # What a read-only turn was told; it is shown to the actor and not stored.
        self._unstored: list[Message] = []

    def __enter__(self) -> Self:
        services = self.memory.services
        self._counter = services.counter
        self._cursor = store.open_thread(
            self.memory.name, self.thread, self.resource, create=not self.read_only
        )
        self._open = True
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._open = False

    async def __aenter__(self) -> Self:
        return await sync_to_async(self.__enter__)()

    async def __aexit__(self, *exc_info: object) -> None:
        self._open = False

    # Storing

    def user(
        self,
        content: Content,
        *,
        client_id: str | None = None,
        created_at: datetime | None = None,
        metadata: dict[str, JSON] | None = None,
    ) -> Message:
        """Store what the user says and return it as stored.

        Arguments:
            content: Text, parts, or a message with role ``user``.
            client_id: Your own id; sent twice, the message is stored once.
            created_at: When it was said, with a time zone; default now.
            metadata: Anything of yours, JSON.

        Raises :class:`~om_django.exceptions.InvalidMessage`.
        """
        message = _as_message("user", content)
        message = replace(
            message,
            client_id=client_id or message.client_id,
            created_at=created_at or message.created_at,
            metadata={**message.metadata, **(metadata or {})},
        )
        return self._store([message])[0]

    async def auser(
        self,
        content: Content,
        *,
        client_id: str | None = None,
        created_at: datetime | None = None,
        metadata: dict[str, JSON] | None = None,
    ) -> Message:
        """Async form of :meth:`user`."""
        return await sync_to_async(self.user)(
            content, client_id=client_id, created_at=created_at, metadata=metadata
        )

    def add(self, message: Any, *, model: str = "") -> list[Message]:
        """Store a message of the actor or a tool and return it as stored.

        Arguments:
            message: A text (the assistant's), a :class:`Message`, or what a model's SDK returned:
                an OpenAI message, a Gemini content, an AI SDK UI message, as object or dict, or a
                list of them.
            model: The ``provider/model`` that wrote it; default the turn's.

        Raises :class:`~om_django.exceptions.InvalidMessage`.
        """
        if isinstance(message, str):
            messages = [_as_message("assistant", message)]
        else:
            messages = messages_from(message)
        written_by = model or self.model
        return self._store(
            [
                replace(m, model=m.model or written_by) if m.role == "assistant" else m
                for m in messages
            ]
        )

    async def aadd(self, message: Any, *, model: str = "") -> list[Message]:
        """Async form of :meth:`add`."""
        return await sync_to_async(self.add)(message, model=model)

    def tool_result(
        self, tool_call_id: str, result: JSON, *, name: str = "", outcome: Outcome = "ok"
    ) -> Message:
        """Store what a tool call came to and return it as stored.

        Arguments:
            tool_call_id: The id of the call.
            result: Text or JSON.
            name: The tool's name.
            outcome: ``ok``, ``error`` or ``denied``.
        """
        part = ToolResultPart(tool_call_id, name, result, outcome)
        return self._store([Message(role="tool", parts=(part,))])[0]

    async def atool_result(
        self, tool_call_id: str, result: JSON, *, name: str = "", outcome: Outcome = "ok"
    ) -> Message:
        """Async form of :meth:`tool_result`."""
        return await sync_to_async(self.tool_result)(
            tool_call_id, result, name=name, outcome=outcome
        )

    def _store(self, messages: Sequence[Message]) -> list[Message]:
        self._check_open()
        now = self.memory.services.now()
        ready = [store.prepare(m, self._counter, now, self.model) for m in messages]
        if self.read_only:
            self._unstored.extend(ready)
            return ready
        stored = store.append(self._cursor.thread, ready, self._counter.name)
        for message in stored:
            if message.role == "user":
                self._prompt = message
        return stored

    # Steps

    def step(self, *, model: str = "") -> Step:
        """Observe and reflect if it is time to, and return the context for the actor.

        A memory model that fails delays nothing: the context is then longer than it should be, and
        the next try waits. ``model`` is the actor's ``provider/model``, default the turn's.
        """
        return run(self._step(model))

    async def astep(self, *, model: str = "") -> Step:
        """Async form of :meth:`step`; memory models are awaited."""
        return await arun(self._step(model))

    def observe(self) -> bool:
        """Observe all that can be observed now. See :meth:`ObservationalMemory.observe`."""
        return run(self._observe_all())

    async def aobserve(self) -> bool:
        """Async form of :meth:`observe`."""
        return await arun(self._observe_all())

    def reflect(self, prompt: str = "") -> bool:
        """Rewrite the log now. See :meth:`ObservationalMemory.reflect`."""
        return run(self._reflect_now(prompt))

    async def areflect(self, prompt: str = "") -> bool:
        """Async form of :meth:`reflect`."""
        return await arun(self._reflect_now(prompt))

    def _check_open(self) -> None:
        if not self._open:
            raise TurnClosed("use a turn inside of its with block")

    def _load(self) -> store.Loaded:
        return store.load(self.memory.name, self.thread, self._counter)

    def _step(self, model: str) -> Flow[Step]:
        self._check_open()
        if model:
            self.model = model
        loaded = self._load()
        if not self.read_only:
            loaded = yield from self._settle(loaded)
        return self._build(loaded)

    def _settle(self, loaded: store.Loaded) -> Flow[store.Loaded]:
        """Do what the planner says until it says nothing, or the time is up."""
        services = self.memory.services
        deadline = time.monotonic() + services.config.blocking_timeout
        while (decision := plan(_state(loaded), services.config, services.now())) is not None:
            if time.monotonic() >= deadline:
                logger.warning("No time left to observe thread %s in this step", self.thread)
                break
            trigger = Trigger.TURN_SYNC
            try:
                if isinstance(decision, Observe):
                    done = yield from observe(
                        services, loaded, decision.count, trigger=trigger, deadline=deadline
                    )
                else:
                    done = yield from reflect(services, loaded, trigger=trigger, deadline=deadline)
            except (ObservationFailed, ReflectionFailed) as error:
                # The pause that was recorded keeps the planner from asking for it again.
                logger.warning("Thread %s goes on as it is: %s", self.thread, error)
                done = True
            if not done:
                yield from self._wait(loaded, deadline)
            loaded = self._load()
        return loaded

    def _wait(self, loaded: store.Loaded, deadline: float) -> Flow[None]:
        """Wait while another worker is at this record."""
        pause = FIRST_POLL
        while time.monotonic() < deadline and live_until(loaded.record, self.memory.services.now()):
            yield Pause(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, MAX_POLL)

    def _observe_all(self) -> Flow[bool]:
        self._check_open()
        services = self.memory.services
        any_done = False
        while True:
            loaded = self._load()
            count = observable(loaded.messages, services.config.observation.max_input_tokens)
            if not count:
                return any_done
            deadline = time.monotonic() + services.config.blocking_timeout
            done = yield from observe(
                services, loaded, count, trigger=Trigger.MANUAL, deadline=deadline
            )
            if not done:
                return any_done
            any_done = True

    def _reflect_now(self, prompt: str) -> Flow[bool]:
        self._check_open()
        services = self.memory.services
        deadline = time.monotonic() + services.config.blocking_timeout
        return (
            yield from reflect(
                services,
                self._load(),
                trigger=Trigger.MANUAL,
                deadline=deadline,
                start_level=0,
                extra_request=prompt,
            )
        )

    def _build(self, loaded: store.Loaded) -> Step:
        services = self.memory.services
        messages = (*self._prompt_in_flight(loaded), *loaded.messages, *self._unstored)
        context: Context = build_context(
            loaded.log,
            messages,
            values={slug: str(loaded.cursor.values.get(slug) or "") for slug in SHOWN_VALUES},
            today=services.now().astimezone(services.zone).date(),
        )
        number, self._steps = self._steps, self._steps + 1
        step = Step(
            number=number,
            system=context.system,
            messages=context.messages,
            message_tokens=count_window(messages),
            log_tokens=loaded.record.log_tokens,
            status=events.status(loaded, services.config, count_window(loaded.messages), number),
        )
        if not self.read_only:
            events.record_event(loaded.thread, loaded.record, "data-om-status", step.status)
        return step

    def _prompt_in_flight(self, loaded: store.Loaded) -> tuple[Message, ...]:
        """Return the user's message if it was observed already: the actor must still answer it."""
        if not loaded.cursor.position or any(m.role == "user" for m in loaded.messages):
            return ()
        prompt = self._prompt or store.last_user_message(
            loaded.thread, loaded.cursor.position, self._counter
        )
        return () if prompt is None else (prompt,)


def _state(loaded: store.Loaded) -> State:
    return State(
        messages=loaded.messages,
        log_tokens=loaded.record.log_tokens,
        observe_not_before=loaded.record.observe_not_before,
        reflect_not_before=loaded.record.reflect_not_before,
        reflect_above=loaded.record.reflect_above,
    )


def _as_message(role: Any, content: Content) -> Message:
    if isinstance(content, Message):
        if content.role != role:
            raise InvalidMessage(f"the message has role {content.role!r}, not {role!r}")
        return content
    if isinstance(content, str):
        return Message(role=role, parts=(TextPart(content),))
    return Message(role=role, parts=tuple(content))
