"""Operations: claiming work under the record's lock, and saving its result while the lease holds.

A record is locked by writing to it first. That is a row lock on PostgreSQL and the write lock of
the file on SQLite, and no model is ever asked while it is held.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from om_django.core.config import MemoryConfig
from om_django.core.planner import MAX_PAUSE
from om_django.core.text import clean_text
from om_django.llm.base import Usage
from om_django.models import (
    LIVE_STATES,
    Cursor,
    MemoryRecord,
    ModelCall,
    Operation,
    OperationKind,
    OperationState,
    Thread,
    Trigger,
)

from . import events
from .store import retry_locked

#: Time beyond the limit of a blocking call before another worker may take the work over, in s.
LEASE_MARGIN = 15.0
FIRST_PAUSE = timedelta(seconds=5)


class Busy(Exception):
    """Another worker has a live operation of this kind on the record."""


class Stale(Exception):
    """The state has moved on since it was read: read it again."""


class LeaseLost(Exception):
    """The lease ran out and somebody else took over; the result must not be saved."""


@dataclass(slots=True)
class Run:
    """A claimed operation in the hands of this worker."""

    operation: Operation
    thread: Thread
    token: uuid.UUID
    calls: list[ModelCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    sent_attachments: bool = False

    def note(self, call: ModelCall, usage: Usage) -> None:
        """Keep a call for the audit trail; it is saved with the operation's end."""
        call.operation = self.operation
        call.number = len(self.calls) + 1
        self.calls.append(call)
        self.usage = self.usage + usage


def lock(record_id: int) -> MemoryRecord:
    """Lock a record for the rest of the transaction and return it as it is now.

    Raises :class:`Stale` when it is gone.
    """
    if not MemoryRecord.objects.filter(pk=record_id).update(version=F("version") + 1):
        raise Stale("the memory record was deleted")
    return MemoryRecord.objects.get(pk=record_id)


def claim(
    *,
    record: MemoryRecord,
    thread: Thread,
    kind: OperationKind,
    trigger: Trigger,
    config: MemoryConfig,
    tokens_in: int,
    now: datetime,
    seconds: float,
    start_position: int | None = None,
    end_position: int | None = None,
    until_sequence: int | None = None,
) -> Run:
    """Begin an operation and take its lease for ``seconds`` and a margin.

    An operation whose lease ran out is closed as failed. Raises :class:`Busy` or :class:`Stale`.
    """

    def work() -> Run:
        with transaction.atomic():
            fresh = lock(record.pk)
            live = Operation.objects.filter(record=fresh, kind=kind, state__in=LIVE_STATES).first()
            if live is not None:
                if live.lease_expires_at is None or live.lease_expires_at > now:
                    raise Busy
                _close_expired(live, thread, now)
            if fresh.generation != record.generation:
                raise Stale("another reflection was saved")
            if start_position is not None and not _cursor_at(fresh, thread, start_position - 1):
                raise Stale("another observation was saved")
            token = uuid.uuid4()
            operation = Operation.objects.create(
                record=fresh,
                thread=thread,
                kind=kind,
                state=OperationState.RUNNING,
                trigger=trigger,
                generation=fresh.generation,
                start_position=start_position,
                end_position=end_position,
                until_sequence=until_sequence,
                tokens_in=tokens_in,
                attempt=1,
                lease_token=token,
                lease_expires_at=now + timedelta(seconds=seconds + LEASE_MARGIN),
                config=config.snapshot(),
                started_at=now,
            )
            events.started(operation, thread, now)
            return Run(operation, thread, token)

    return retry_locked(work)


def live_until(record: MemoryRecord, now: datetime) -> datetime | None:
    """Return when the lease of the record's live operation runs out, ``None`` without one."""
    return (
        Operation.objects.filter(record=record, state__in=LIVE_STATES, lease_expires_at__gt=now)
        .values_list("lease_expires_at", flat=True)
        .first()
    )


def _cursor_at(record: MemoryRecord, thread: Thread, position: int) -> bool:
    return Cursor.objects.filter(record=record, thread=thread, position=position).exists()


def _close_expired(operation: Operation, thread: Thread, now: datetime) -> None:
    error = "the worker went away: its lease ran out"
    Operation.objects.filter(pk=operation.pk).update(
        state=OperationState.FAILED, error=error, finished_at=now
    )
    events.failed(operation, thread, now, error)


def save_end(run: Run, now: datetime, *, tokens_out: int, model: str) -> MemoryRecord:
    """Close an operation as succeeded, inside the transaction that saves its result.

    Returns the locked record. Raises :class:`LeaseLost` when the lease is no longer ours.
    """
    record = lock(run.operation.record_id)
    run.operation.record = record
    run.operation.tokens_out = tokens_out
    _close(run, now, OperationState.SUCCEEDED, model=model, error="")
    return record


def fail(
    run: Run, now: datetime, error: str, *, model: str, grown_by: int = 0, cancelled: bool = False
) -> None:
    """Close an operation as failed (or cancelled), and let the record pause.

    Pauses double from five seconds up to ten minutes with every failure in a row. ``grown_by``:
    tokens the log must grow by before it is reflected again. A lost lease is no error here: the
    one who took over has closed the operation.
    """
    error = clean_text(error)

    def work() -> None:
        with transaction.atomic():
            record = lock(run.operation.record_id)
            run.operation.record = record
            state = OperationState.CANCELLED if cancelled else OperationState.FAILED
            _close(run, now, state, model=model, error=error)
            if not cancelled:
                _pause(record, run.operation, now, grown_by)
            events.failed(run.operation, run.thread, now, error)

    try:
        retry_locked(work)
    except (LeaseLost, Stale):
        return


def _pause(record: MemoryRecord, operation: Operation, now: datetime, grown_by: int) -> None:
    observing = events.operation_type(operation) == "observation"
    name = "observe" if observing else "reflect"
    failures = min(getattr(record, f"{name}_failures") + 1, 1000)
    pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), MAX_PAUSE)
    changes: dict[str, Any] = {f"{name}_failures": failures, f"{name}_not_before": now + pause}
    if grown_by:
        changes["reflect_above"] = record.log_tokens + grown_by
    MemoryRecord.objects.filter(pk=record.pk).update(**changes)


def _close(run: Run, now: datetime, state: OperationState, *, model: str, error: str) -> None:
    operation = run.operation
    changes: dict[str, Any] = {
        "state": state,
        "finished_at": now,
        "tokens_out": operation.tokens_out,
        "end_position": operation.end_position,
        "tokens_in": operation.tokens_in,
        "model": model[:255],
        "error": error,
        "attempt": max(1, len(run.calls)),
        "input_tokens": run.usage.input_tokens,
        "output_tokens": run.usage.output_tokens,
        "cached_tokens": run.usage.cached_tokens,
    }
    held = Operation.objects.filter(
        pk=operation.pk, state=OperationState.RUNNING, lease_token=run.token
    ).update(**changes)
    if not held:
        raise LeaseLost
    for name, value in changes.items():
        setattr(operation, name, value)
    ModelCall.objects.bulk_create(run.calls)
