"""What the engine asks of a language model, and what it gets back. No vendor type passes here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from om_django.core.messages import FilePart, ImagePart
    from om_django.core.observer import ObserverInput
    from om_django.core.reflector import ReflectorInput

Purpose = Literal["observe", "reflect", "extract", "chat"]
FinishReason = Literal["stop", "length", "tool-calls", "content-filter", "error", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call.

    ``system`` is control text and nothing else; ``prompt`` is data. ``task`` is the structured
    origin of ``prompt``, for models that are programs and need not read their own transcript back.
    ``timeout`` is in seconds.
    """

    purpose: Purpose
    system: str
    prompt: str
    attachments: tuple[ImagePart | FilePart, ...] = ()
    temperature: float | None = None
    max_output_tokens: int | None = None
    provider_options: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    task: ObserverInput | ReflectorInput | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider billed them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """One answer. ``metadata`` keeps what the provider reported beside it."""

    text: str
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    model: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Model(Protocol):
    """A language model. ``name`` is ``provider/model``."""

    name: str

    def generate(self, request: ModelRequest) -> ModelResponse:
        """Answer, or raise a :class:`ModelError`."""
        ...

    async def agenerate(self, request: ModelRequest) -> ModelResponse:
        """Answer, or raise a :class:`ModelError`."""
        ...


class ModelError(Exception):
    """A call that gave no answer. ``retryable`` tells whether the same call may work later."""

    retryable = False


class TransientModelError(ModelError):
    """Rate limit, timeout, connection or server fault: the same call may work later."""

    retryable = True


class PermanentModelError(ModelError):
    """Bad key, bad request, refusal: the same call fails again."""


class ContextTooLong(PermanentModelError):
    """The input is larger than the model takes; a smaller one may work."""


class ModelTimeout(TransientModelError):
    """No answer within the limit."""
