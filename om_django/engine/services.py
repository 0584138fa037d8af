"""What the engine works with: options, clock, counter and models of one memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from om_django.core.config import MemoryConfig
from om_django.core.tokens import TokenCounter
from om_django.llm.base import Model
from om_django.models import Thread

from .hooks import HookEvent, Hooks


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """``observer`` and ``reflector`` return the model for an input of so many tokens."""

    memory: str
    config: MemoryConfig
    counter: TokenCounter
    now: Callable[[], datetime]
    zone: tzinfo
    resolve: Callable[[Any, int], Model]

    def observer(self, input_tokens: int) -> Model:
        return self.resolve(self.config.observer_model, input_tokens)

    def reflector(self, input_tokens: int) -> Model:
        return self.resolve(self.config.reflector_model, input_tokens)

    def hooks(self, kind: str, thread: Thread, trigger: str) -> Hooks:
        """Return the hooks of a cycle that begins."""
        event = HookEvent(
            name="",
            memory=self.memory,
            thread=thread.key,
            resource=thread.resource,
            trigger=str(trigger),
        )
        return Hooks(self.config.hooks, kind, event)
