"""The ``data-om-*`` parts: built field by field as on the wire (camelCase), recorded as events."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from om_django.core.config import MemoryConfig
from om_django.core.messages import clean_mapping
from om_django.core.text import JSON
from om_django.models import Event, MemoryRecord, Operation, OperationKind, Thread
from om_django.signals import event_recorded

from .store import Loaded

MAX_ERROR_CHARS = 2_000


def record_event(
    thread: Thread,
    record: MemoryRecord,
    kind: str,
    data: dict[str, Any],
    operation: Operation | None = None,
) -> Event:
    """Record one part; its signal is sent when the transaction has committed."""
    event = Event.objects.create(
        thread=thread,
        record=record,
        operation=operation,
        type=kind,
        data=clean_mapping({key: value for key, value in data.items() if value is not None}),
    )
    transaction.on_commit(partial(event_recorded.send_robust, sender=Event, event=event))
    return event


def operation_type(operation: Operation) -> str:
    """Return ``observation`` or ``reflection``, as the wire says it."""
    observing = (OperationKind.OBSERVE, OperationKind.BUFFER_OBSERVATION)
    return "observation" if operation.kind in observing else "reflection"


def started(operation: Operation, thread: Thread, at: datetime) -> None:
    record_event(
        thread,
        operation.record,
        "data-om-observation-start",
        {
            **_common(operation, thread),
            "startedAt": at.isoformat(),
            "tokensToObserve": operation.tokens_in,
            "threadIds": [thread.key],
            "config": operation.config,
        },
        operation,
    )


def ended(
    operation: Operation,
    thread: Thread,
    at: datetime,
    *,
    observations: str,
    values: dict[str, JSON],
    failures: list[dict[str, str]],
) -> None:
    record_event(
        thread,
        operation.record,
        "data-om-observation-end",
        {
            **_common(operation, thread),
            "completedAt": at.isoformat(),
            "durationMs": _duration_ms(operation, at),
            "tokensObserved": operation.tokens_in,
            "observationTokens": operation.tokens_out,
            "observations": observations,
            "currentTask": values.get("current-task"),
            "suggestedResponse": values.get("suggested-response"),
            "extractedValues": values or None,
            "extractionFailures": failures or None,
        },
        operation,
    )


def failed(operation: Operation, thread: Thread, at: datetime, error: str) -> None:
    record_event(
        thread,
        operation.record,
        "data-om-observation-failed",
        {
            **_common(operation, thread),
            "failedAt": at.isoformat(),
            "durationMs": _duration_ms(operation, at),
            "tokensAttempted": operation.tokens_in,
            "error": error[:MAX_ERROR_CHARS],
        },
        operation,
    )


def title_changed(operation: Operation, thread: Thread, old: str, new: str, at: datetime) -> None:
    record_event(
        thread,
        operation.record,
        "data-om-thread-update",
        {
            "cycleId": str(operation.cycle_id),
            "threadId": thread.key,
            "oldTitle": old or None,
            "newTitle": new,
            "timestamp": at.isoformat(),
        },
        operation,
    )


def status(loaded: Loaded, config: MemoryConfig, pending: int, step: int) -> dict[str, JSON]:
    """Return the data of ``data-om-status``. Sizes are in tokens."""
    return {
        "windows": {
            "active": {
                "messages": {"tokens": pending, "threshold": config.observation.message_tokens},
                "observations": {
                    "tokens": loaded.record.log_tokens,
                    "threshold": config.reflection.observation_tokens,
                },
            },
            "buffered": {
                "observations": {
                    "chunks": 0,
                    "messageTokens": 0,
                    "projectedMessageRemoval": 0,
                    "observationTokens": 0,
                    "status": "idle",
                },
                "reflection": {
                    "inputObservationTokens": 0,
                    "observationTokens": 0,
                    "status": "idle",
                },
            },
        },
        "recordId": str(loaded.record.pk),
        "threadId": loaded.thread.key,
        "stepNumber": step,
        "generationCount": loaded.record.generation,
    }


def _common(operation: Operation, thread: Thread) -> dict[str, Any]:
    return {
        "cycleId": str(operation.cycle_id),
        "operationType": operation_type(operation),
        "recordId": str(operation.record_id),
        "threadId": thread.key,
    }


def _duration_ms(operation: Operation, at: datetime) -> int:
    if operation.started_at is None:
        return 0
    # A clock that was set back must not make a negative duration.
    return max(0, round((at - operation.started_at).total_seconds() * 1000))
