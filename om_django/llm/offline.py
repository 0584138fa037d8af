"""A model without a network: a program that observes and reflects by rules.

It is made for trying the package out, for tests, and for running without a key. It quotes and
shortens what was said, resolves relative dates and ranks lines by plain reasons. It does not
understand what it reads, ignores custom instructions and the language setting, and fills only the
built-in sections.
"""

from __future__ import annotations

from collections.abc import Callable

from om_django.core.extractive import observe, reflect
from om_django.core.observer import ObserverInput
from om_django.core.reflector import ReflectorInput

from .base import ModelRequest, ModelResponse, PermanentModelError, Usage

NAME = "offline/extractive"


class ExtractiveModel:
    """Deterministic Observer and Reflector; the same request gets the same answer.

    ``count`` counts tokens; the package's own counter by default.
    """

    name = NAME

    def __init__(self, *, count: Callable[[str], int] | None = None) -> None:
        self._count = count

    def generate(self, request: ModelRequest) -> ModelResponse:
        """Observe or reflect. Raises :class:`PermanentModelError` when asked for anything else."""
        count = self._count or _default_count()
        task = request.task
        if request.purpose == "observe" and isinstance(task, ObserverInput):
            text = observe(task, count)
        elif request.purpose == "reflect" and isinstance(task, ReflectorInput):
            text = reflect(task, count)
        else:
            raise PermanentModelError(
                f"{NAME} can only observe and reflect: it works on the request's task by rules and "
                f"cannot answer a prompt (purpose {request.purpose!r}, "
                f"task {type(task).__name__ if task is not None else 'missing'}). "
                "Configure a language model for this purpose."
            )
        return ModelResponse(
            text=text,
            usage=Usage(input_tokens=count(request.prompt), output_tokens=count(text)),
            model=self.name,
        )

    async def agenerate(self, request: ModelRequest) -> ModelResponse:
        """Do the same; there is nothing to wait for."""
        return self.generate(request)


def _default_count() -> Callable[[str], int]:
    from om_django.core.tokens import default_counter

    return default_counter().count
