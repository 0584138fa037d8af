"""A list of models: when one fails, the next is asked."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .base import Model, ModelError, ModelRequest, ModelResponse

logger = logging.getLogger("om_django")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWithRetries:
    """One model of a list.

    ``max_retries`` is how often it is asked again before the next one is. ``provider_options``
    are added to those of the call. Source: reference.
    """

    model: Any
    max_retries: int = 0
    enabled: bool = True
    provider_options: dict[str, Any] = field(default_factory=dict)


class FallbackModel:
    """Asks models in order until one answers. Its name is that of the first."""

    def __init__(self, models: Sequence[tuple[Model, ModelWithRetries]]) -> None:
        self._models = models
        self.name = models[0][0].name

    def _tries(self, request: ModelRequest) -> Iterator[tuple[Model, ModelRequest]]:
        for model, entry in self._models:
            options = {**request.provider_options, **entry.provider_options}
            for _ in range(entry.max_retries + 1):
                yield model, replace(request, provider_options=options)

    def generate(self, request: ModelRequest) -> ModelResponse:
        error: ModelError | None = None
        for model, own in self._tries(request):
            try:
                return _named(model.generate(own), model)
            except ModelError as failed:
                error = _note(failed, model)
        raise error or ModelError("the list has no model")

    async def agenerate(self, request: ModelRequest) -> ModelResponse:
        error: ModelError | None = None
        for model, own in self._tries(request):
            try:
                return _named(await model.agenerate(own), model)
            except ModelError as failed:
                error = _note(failed, model)
        raise error or ModelError("the list has no model")


def _named(response: ModelResponse, model: Model) -> ModelResponse:
    return response if response.model else replace(response, model=model.name)


def _note(error: ModelError, model: Model) -> ModelError:
    logger.warning("Model %s failed: %s", model.name, error)
    return error
