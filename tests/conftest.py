from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from om_django.observational import ObservationalMemory, memories
from om_django.testing import ScriptedModel, observations


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, **delta: float) -> None:
        self.time += timedelta(**delta)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_memory(clock: Clock) -> Callable[..., ObservationalMemory]:
    """Make a memory with small limits and a scripted model for both agents."""

    def make(model: Any = None, **options: Any) -> ObservationalMemory:
        settings: dict[str, Any] = {
            "model": model or ScriptedModel([observations("something was said")]),
            "observation": {"message_tokens": 1000},
            "reflection": {"observation_tokens": 2000},
        }
        for name, value in options.items():
            if isinstance(value, dict) and isinstance(settings.get(name), dict):
                settings[name] = {**settings[name], **value}
            else:
                settings[name] = value
        if "model" in options.get("observation", {}) or "model" in options.get("reflection", {}):
            settings.pop("model")
        return ObservationalMemory("default", settings, clock=clock)

    return make


@pytest.fixture(autouse=True)
def _fresh_memories() -> Iterator[None]:
    yield
    memories.reset()


def words(tokens: int) -> str:
    """Return a text of about so many tokens."""
    return " ".join(["hello"] * tokens)
