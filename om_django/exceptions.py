"""Errors a caller can act on."""

from __future__ import annotations

from om_django.core.config import ConfigError
from om_django.core.messages import InvalidMessage
from om_django.llm.base import (
    ContextTooLong,
    ModelError,
    ModelTimeout,
    PermanentModelError,
    TransientModelError,
)

__all__ = [
    "ConfigError",
    "ContextTooLong",
    "InvalidMessage",
    "ModelError",
    "ModelTimeout",
    "OMError",
    "ObservationFailed",
    "PermanentModelError",
    "ReflectionFailed",
    "ThreadNotFound",
    "TransientModelError",
    "TurnClosed",
]


class OMError(Exception):
    """Base of the errors of this package that are not about models, messages or settings."""


class ThreadNotFound(OMError):
    """The thread does not exist for this resource; nobody learns whether it does for another."""


class TurnClosed(OMError):
    """The turn has ended: start another one."""


class ObservationFailed(OMError):
    """No usable observation came back; the messages and the log are as they were."""


class ReflectionFailed(OMError):
    """No usable reflection came back; the log is as it was."""
