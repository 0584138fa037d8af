"""Choosing a model by the size of its input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import ContextTooLong


class ModelByInputTokens:
    """A cheap model for small inputs, a stronger one for large ones.

    Arguments:
        up_to: Models by the largest input, in tokens, that each of them takes:
            ``{10_000: "google/gemini-2.5-flash", 40_000: "openai/gpt-5-mini"}``. Order is free.

    Raises ``ValueError`` for no limit, a limit that is no number above 0, or what is no model.
    Source: reference.
    """

    def __init__(self, up_to: Mapping[int, Any]) -> None:
        given: Any = up_to
        if not isinstance(given, Mapping) or not given:
            raise ValueError("up_to needs at least one limit, such as {10_000: 'provider/model'}")
        for limit, model in given.items():
            if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
                raise ValueError(f"a limit of up_to must be a whole number above 0, not {limit!r}")
            text = isinstance(model, str) and "/" in model.strip("/")
            if not text and not callable(getattr(model, "generate", None)):
                raise ValueError(
                    f"the model up to {limit} must be 'provider/model' or an object with "
                    f"generate(), not {model!r:.100}"
                )
        self._tiers: dict[int, Any] = dict(sorted(given.items()))

    def __repr__(self) -> str:
        return f"ModelByInputTokens({self._tiers!r})"

    def resolve(self, input_tokens: int) -> Any:
        """Return the model of the smallest limit that is not below ``input_tokens``.

        Raises :class:`~om_django.exceptions.ContextTooLong` above the largest limit.
        """
        for limit, model in self._tiers.items():
            if input_tokens <= limit:
                return model
        largest = max(self._tiers)
        raise ContextTooLong(
            f"an input of {input_tokens} tokens is above the largest limit, {largest}: "
            "add a model for it to up_to"
        )

    def get_thresholds(self) -> list[int]:
        """Return the limits, smallest first."""
        return list(self._tiers)
