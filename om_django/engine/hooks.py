"""Hooks: the application's functions around observing and reflecting.

``OM_DJANGO["MEMORIES"][name]["hooks"]`` is a dict of functions of one :class:`HookEvent`; they may
be async. Lifecycle hooks (``on_observation_start``, ``on_observation_end``,
``on_reflection_start``, ``on_reflection_end``) are told what happens; one that raises is logged and
changes nothing. The same events go out as the signals of :mod:`om_django.signals`. Transforms
(``before_observation``, ``after_observation``, ``before_reflection``, ``after_reflection``) may
return something else than they were given; one that raises fails the cycle before anything is
saved. Source: reference.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from asgiref.sync import async_to_sync
from django.dispatch import Signal

from om_django import signals
from om_django.core.messages import Message
from om_django.exceptions import OMError
from om_django.llm.base import Usage

logger = logging.getLogger("om_django")

SIGNALS: Mapping[str, Signal] = {
    "on_observation_start": signals.observation_started,
    "on_observation_end": signals.observation_ended,
    "on_reflection_start": signals.reflection_started,
    "on_reflection_end": signals.reflection_ended,
}


class HookFailed(OMError):
    """A transform raised; nothing of its cycle was saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """What a hook is told.

    ``trigger`` is ``manual``, ``turn-sync`` or ``async-buffer``. At an end ``usage`` sums the
    calls of the cycle and ``error`` says why it failed. ``messages`` are given to
    ``before_observation``, ``observations`` to the other transforms.
    """

    name: str
    memory: str
    thread: str
    resource: str
    trigger: str
    usage: Usage | None = None
    error: str | None = None
    messages: tuple[Message, ...] = ()
    observations: str = ""


class Hooks:
    """The hooks of one cycle; ``kind`` is ``observation`` or ``reflection``."""

    def __init__(self, hooks: Mapping[str, Any], kind: str, event: HookEvent) -> None:
        self._hooks = hooks
        self._kind = kind
        self._event = event

    def started(self) -> None:
        self._tell(f"on_{self._kind}_start", self._event)

    def ended(self, usage: Usage, error: str | None = None) -> None:
        self._tell(f"on_{self._kind}_end", replace(self._event, usage=usage, error=error))

    def before(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages that the Observer is given."""
        name = "before_observation"
        changed = self._transform(name, replace(self._event, name=name, messages=messages))
        return messages if changed is None else tuple(changed)

    def rewrite(self, when: str, observations: str) -> str:
        """Return the text to go on with; ``when`` is ``before`` or ``after``."""
        name = f"{when}_{self._kind}"
        event = replace(self._event, name=name, observations=observations)
        changed = self._transform(name, event)
        return observations if changed is None else str(changed)

    def _tell(self, name: str, event: HookEvent) -> None:
        event = replace(event, name=name)
        SIGNALS[name].send_robust(sender=Hooks, event=event)
        if (hook := self._hooks.get(name)) is not None:
            try:
                _call(hook, event)
            except Exception:
                logger.exception("The hook %s of memory %s raised", name, event.memory)

    def _transform(self, name: str, event: HookEvent) -> Any:
        hook = self._hooks.get(name)
        if hook is None:
            return None
        try:
            return _call(hook, event)
        except Exception as error:
            raise HookFailed(f"{name} raised {type(error).__name__}: {error}") from error


def _call(hook: Any, event: HookEvent) -> Any:
    return async_to_sync(hook)(event) if inspect.iscoroutinefunction(hook) else hook(event)
