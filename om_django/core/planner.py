"""What has to happen now: a pure function of the state, the options and the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from .config import MemoryConfig
from .convert.pairs import safe_cut
from .messages import Message
from .tokens import window_tokens

#: The longest pause after failures in a row.
MAX_PAUSE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the planner sees of a thread and its memory. Sizes are in tokens.

    ``messages`` are those after the observed position. ``observe_not_before`` and
    ``reflect_not_before`` end a pause after failures; a log of up to ``reflect_above`` tokens
    is known not to shrink below the threshold.
    """

    messages: tuple[Message, ...]
    log_tokens: int
    observe_not_before: datetime | None = None
    reflect_not_before: datetime | None = None
    reflect_above: int = 0

    @property
    def pending_tokens(self) -> int:
        return count_window(self.messages)


@dataclass(frozen=True, slots=True)
class Observe:
    """Observe the first ``count`` messages of the window now."""

    count: int


@dataclass(frozen=True, slots=True)
class Reflect:
    """Rewrite the log now."""


Decision: TypeAlias = Observe | Reflect


def count_window(messages: Sequence[Message]) -> int:
    """Return the tokens of messages with their framing; counts must be known."""
    return window_tokens(message.tokens or 0 for message in messages)


def plan(state: State, config: MemoryConfig, now: datetime) -> Decision | None:
    """Return the next thing to do before the actor may be called, or ``None``.

    The log is looked at first: it is part of what the actor reads, and of what the Observer is
    given.
    """
    if not config.enabled:
        return None
    if should_reflect(state, config, now):
        return Reflect()
    if should_observe(state, config, now):
        count = observable(state.messages, config.observation.max_input_tokens)
        if count:
            return Observe(count)
    return None


def should_observe(state: State, config: MemoryConfig, now: datetime) -> bool:
    return state.pending_tokens >= config.observation.message_tokens and not _paused(
        state.observe_not_before, now
    )


def should_reflect(state: State, config: MemoryConfig, now: datetime) -> bool:
    return (
        state.log_tokens >= config.reflection.observation_tokens
        and state.log_tokens > state.reflect_above
        and not _paused(state.reflect_not_before, now)
    )


def observable(messages: Sequence[Message], max_tokens: int) -> int:
    """Return how many of the first messages one call may observe.

    All of them, unless they exceed ``max_tokens``; never past an unanswered tool call, and never
    between a call and its result. A message alone above ``max_tokens`` is taken alone: its text is
    cut for the model.
    """
    limit = len(messages)
    total = 0
    for index, message in enumerate(messages):
        total += message.tokens or 0
        if total > max_tokens and index:
            limit = index
            break
    count = safe_cut(messages, limit)
    if count or limit == len(messages):
        return count
    # A call and its results exceed the limit together: take the smallest piece that can be taken.
    for longer in range(limit + 1, len(messages) + 1):
        if count := safe_cut(messages, longer):
            return count
    return 0


def _paused(until: datetime | None, now: datetime) -> bool:
    # A pause that lies further off than any can be comes from a clock that was set back.
    return until is not None and now < until <= now + MAX_PAUSE
