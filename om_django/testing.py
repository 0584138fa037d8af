"""A scripted model for tests: of this package, and of yours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from .llm.base import ModelError, ModelRequest, ModelResponse

Answer: TypeAlias = str | ModelResponse | Exception
Script: TypeAlias = Iterable[Answer] | Callable[[ModelRequest], Answer]


class ScriptedModel:
    """Answers from a script and remembers what it was asked.

    Arguments:
        script: The answers in order, or a function of the request. An exception is raised; a text
            is the whole answer. When a list has run out, its last answer is given again.
        name: What the model calls itself.
    """

    def __init__(self, script: Script, name: str = "test/scripted") -> None:
        self.name = name
        self.requests: list[ModelRequest] = []
        self._function = script if callable(script) else None
        self._answers: Iterator[Answer] = iter(()) if callable(script) else iter(script)
        self._last: Answer = ModelError("the script has no answer")
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        """How often the model was asked."""
        return len(self.requests)

    def generate(self, request: ModelRequest) -> ModelResponse:
        with self._lock:
            self.requests.append(request)
            if self._function is None:
                self._last = next(self._answers, self._last)
        answer = self._last if self._function is None else self._function(request)
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse(text=answer, model=self.name) if isinstance(answer, str) else answer

    async def agenerate(self, request: ModelRequest) -> ModelResponse:
        return self.generate(request)


def observations(*lines: str) -> str:
    """Return an Observer's answer with these notes."""
    notes = "\n".join(f"* 🟡 (12:00) {line}" for line in lines)
    return f"<observations>\nDate: Jan 5, 2026\n{notes}\n</observations>"
