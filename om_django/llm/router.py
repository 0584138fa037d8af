"""From a setting to a model: ``provider/model`` strings and instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import Model, PermanentModelError


def _offline(name: str) -> Model:
    from .offline import ExtractiveModel

    model = ExtractiveModel()
    if model.name != f"offline/{name}":
        raise PermanentModelError(f"there is no model offline/{name}: use {model.name}")
    return model


PROVIDERS: dict[str, Callable[[str], Model]] = {"offline": _offline}


def resolve_model(value: Any) -> Model:
    """Return the model that a setting names.

    Raises :class:`PermanentModelError` that says what to set or install.
    """
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
