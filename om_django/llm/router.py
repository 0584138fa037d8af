"""From a setting to a model: ``provider/model`` strings and instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .base import Model, PermanentModelError
from .fallback import FallbackModel, ModelWithRetries
from .tiers import ModelByInputTokens


def _offline(name: str) -> Model:
    from .offline import ExtractiveModel

    model = ExtractiveModel()
    if model.name != f"offline/{name}":
        raise PermanentModelError(f"there is no model offline/{name}: use {model.name}")
    return model


PROVIDERS: dict[str, Callable[[str], Model]] = {"offline": _offline}


def resolve_model(value: Any, input_tokens: int) -> Model:
    """Return the model that a setting names, for an input of ``input_tokens``.

    Raises :class:`PermanentModelError` that says what to set or install, and
    :class:`ContextTooLong` when no model of :class:`ModelByInputTokens` takes so much.
    """
    if isinstance(value, ModelByInputTokens):
        return resolve_model(value.resolve(input_tokens), input_tokens)
    if isinstance(value, list | tuple):
        return _fallback(value, input_tokens)
    if not isinstance(value, str):
        model: Model = value
        return model
    provider, _, name = value.partition("/")
    factory = PROVIDERS.get(provider)
    if factory is None:
        known = ", ".join(f"{provider}/*" for provider in sorted(PROVIDERS))
        raise PermanentModelError(
            f"no provider for model {value!r}: use one of {known}, or an object with generate()"
        )
    return factory(name)


def _fallback(values: Sequence[Any], input_tokens: int) -> Model:
    entries = [v if isinstance(v, ModelWithRetries) else ModelWithRetries(model=v) for v in values]
    models = [(resolve_model(e.model, input_tokens), e) for e in entries if e.enabled]
    if not models:
        raise PermanentModelError("no model of the list is enabled")
    return FallbackModel(models)
