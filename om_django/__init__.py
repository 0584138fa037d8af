"""Observational memory for Django chat and agent products.

``from om_django import memory`` is the memory named "default"; ``memories["name"]`` any other.
Importing this package imports no model and reads no setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .llm.fallback import ModelWithRetries
    from .llm.tiers import ModelByInputTokens
    from .observational import ObservationalMemory, memories, memory
    from .turn import Step, Turn

__version__ = "0.1.0"
__all__ = [
    "ModelByInputTokens",
    "ModelWithRetries",
    "ObservationalMemory",
    "Step",
    "Turn",
    "__version__",
    "memories",
    "memory",
]

_HOME = {
    "ModelByInputTokens": "llm.tiers",
    "ModelWithRetries": "llm.fallback",
    "ObservationalMemory": "observational",
    "memories": "observational",
    "memory": "observational",
    "Step": "turn",
    "Turn": "turn",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
