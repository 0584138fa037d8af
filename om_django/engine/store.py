"""Threads, messages and the window: reading and appending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction
from django.db.models import F, Value
from django.db.models.functions import Coalesce, Greatest

from om_django.core.messages import (
    ROLES,
    InvalidMessage,
    Message,
    clean_mapping,
    part_from_json,
    part_to_json,
    validate_part,
)
from om_django.core.text import clean_text
from om_django.core.tokens import TokenCounter, count_message
from om_django.exceptions import ThreadNotFound
from om_django.models import Cursor, GroupState, MemoryRecord, ObservationGroup, Scope, Thread
from om_django.models import Message as MessageRow

MAX_KEY = 255
T = TypeVar("T")


@dataclass(slots=True)
class Loaded:
    """A thread, its memory record, and the window: one consistent reading."""

    thread: Thread
    record: MemoryRecord
    cursor: Cursor
    groups: list[ObservationGroup]
    messages: tuple[Message, ...]

    @property
    def log(self) -> list[str]:
        return [group.text for group in self.groups]


def check_key(name: str, value: object) -> str:
    """Return a thread id or resource that can be stored and compared exactly."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_KEY or clean_text(value) != value:
        raise InvalidMessage(
            f"{name} must be a text of 1 to {MAX_KEY} characters, not {value!r:.80}"
        )
    return value


def open_thread(memory: str, key: str, resource: str | None, *, create: bool = True) -> Cursor:
    """Return the cursor of a thread, with its thread and record; make all three if needed.

    Raises :class:`ThreadNotFound` when the thread belongs to another resource, or does not exist
    and ``create`` is false.
    """
    check_key("thread", key)
    if resource is not None:
        check_key("resource", resource)
    cursor = _find_cursor(memory, key)
    if cursor is None:
        cursor = _make_cursor(memory, key, resource, create=create)
    if resource is not None and cursor.thread.resource != resource:
        raise ThreadNotFound(f"there is no thread {key!r} for this resource")
    return cursor


def _find_cursor(memory: str, key: str) -> Cursor | None:
    return (
        Cursor.objects.select_related("thread", "record")
        .filter(record__memory=memory, record__scope=Scope.THREAD, thread__key=key)
        .first()
    )


def _make_cursor(memory: str, key: str, resource: str | None, *, create: bool) -> Cursor:
    if not create and not Thread.objects.filter(key=key).exists():
        raise ThreadNotFound(f"there is no thread {key!r} for this resource")
    # Each get_or_create re-reads the winner when it loses: the unique keys decide.
    thread, _ = Thread.objects.get_or_create(key=key, defaults={"resource": resource or ""})
    if resource is not None and thread.resource != resource:
        raise ThreadNotFound(f"there is no thread {key!r} for this resource")
    record, _ = MemoryRecord.objects.get_or_create(
        memory=memory, scope=Scope.THREAD, key=key, defaults={"thread": thread}
    )
    cursor, _ = Cursor.objects.get_or_create(record=record, thread=thread)
    cursor.record, cursor.thread = record, thread
    return cursor


def load(memory: str, key: str, counter: TokenCounter) -> Loaded:
    """Read a thread's memory and window: three queries, whatever the length of the thread.

    One reading is consistent enough without a transaction: the cursor is read first, messages
    never change, and a group that appears in between belongs to messages that are still shown.
    """
    cursor = _find_cursor(memory, key)
    if cursor is None:
        raise ThreadNotFound(f"there is no thread {key!r} for this resource")
    groups = list(
        ObservationGroup.objects.filter(record=cursor.record, state=GroupState.ACTIVE).order_by(
            "sequence", "piece"
        )
    )
    messages = messages_between(cursor.thread, cursor.position + 1, None, counter)
    return Loaded(cursor.thread, cursor.record, cursor, groups, messages)


_COLUMNS = (
    "id",
    "position",
    "role",
    "parts",
    "client_id",
    "created_at",
    "model",
    "metadata",
    "tokens",
    "part_tokens",
)


def messages_between(
    thread: Thread, first: int, last: int | None, counter: TokenCounter | None = None
) -> tuple[Message, ...]:
    """Return the messages of a range of positions, both ends included.

    With a ``counter``, messages that another one counted are counted again, so that the sizes of a
    window are in one unit.
    """
    rows = MessageRow.objects.filter(thread=thread, position__gte=first)
    if last is not None:
        rows = rows.filter(position__lte=last)
    found = rows.order_by("position").values_list(*_COLUMNS, "tokenizer")
    return tuple(_counted(_to_core(row[:-1], thread.key), row[-1], counter) for row in found)


def _counted(message: Message, tokenizer: str, counter: TokenCounter | None) -> Message:
    if counter is None or tokenizer == counter.name:
        return message
    provider, _, name = message.model.partition("/")
    return count_message(message, counter, provider=provider, model=name)


def last_user_message(thread: Thread, until: int, counter: TokenCounter) -> Message | None:
    """Return the newest user message up to a position."""
    row = (
        MessageRow.objects.filter(thread=thread, position__lte=until, role="user")
        .order_by("-position")
        .values_list(*_COLUMNS, "tokenizer")
        .first()
    )
    return None if row is None else _counted(_to_core(row[:-1], thread.key), row[-1], counter)


def _to_core(row: tuple[object, ...], key: str) -> Message:
    pk, position, role, parts, client_id, created_at, model, metadata, tokens, part_tokens = row
    return Message(
        role=role,  # type: ignore[arg-type] # a constraint of the table
        parts=tuple(part_from_json(part) for part in parts),  # type: ignore[attr-defined]
        id=str(pk),
        position=position,  # type: ignore[arg-type]
        thread=key,
        client_id=client_id,  # type: ignore[arg-type]
        created_at=created_at,  # type: ignore[arg-type]
        model=model,  # type: ignore[arg-type]
        metadata=metadata,  # type: ignore[arg-type]
        tokens=tokens,  # type: ignore[arg-type]
        part_tokens=tuple(part_tokens),  # type: ignore[arg-type]
    )


def prepare(message: Message, counter: TokenCounter, now: datetime, model: str = "") -> Message:
    """Return a message as it will be stored: valid, clean and counted.

    ``model`` is the actor's, for the cost of images. Raises :class:`InvalidMessage`.
    """
    if message.role not in ROLES:
        raise InvalidMessage(f"role must be one of {', '.join(ROLES)}, not {message.role!r:.40}")
    for part in message.parts:
        validate_part(part)
    if message.client_id is not None:
        check_key("client_id", message.client_id)
    parts = tuple(part_from_json(part_to_json(part)) for part in message.parts)
    created_at = message.created_at or now
    if created_at.tzinfo is None:
        raise InvalidMessage("created_at needs a time zone")
    clean = replace(
        message,
        parts=parts,
        created_at=created_at,
        metadata=clean_mapping(message.metadata),
        model=clean_text(message.model)[:255],
    )
    provider, _, name = (model or message.model).partition("/")
    return count_message(clean, counter, provider=provider, model=name)


def append(thread: Thread, messages: Sequence[Message], tokenizer: str) -> list[Message]:
    """Store prepared messages at the end of a thread and return them with id and position.

    A message whose ``client_id`` the thread already has is not stored again: the stored one comes
    back in its place. All or none are stored.
    """
    if not messages:
        return []
    return retry_locked(lambda: _append(thread, messages, tokenizer))


def _append(thread: Thread, messages: Sequence[Message], tokenizer: str) -> list[Message]:
    with transaction.atomic():
        # The first statement writes: it takes the row on PostgreSQL and the file on SQLite.
        latest = max(m.created_at for m in messages if m.created_at is not None)
        touched = Thread.objects.filter(pk=thread.pk).update(
            last_position=F("last_position") + len(messages),
            last_message_at=Greatest(Coalesce("last_message_at", Value(latest)), Value(latest)),
        )
        if not touched:
            raise ThreadNotFound(f"there is no thread {thread.key!r} any more")
        last = Thread.objects.values_list("last_position", flat=True).get(pk=thread.pk)
        known = _stored_by_client_id(thread, messages)
        new: dict[str, Message] = {}
        fresh = [m for m in messages if _is_new(m, known, new)]
        position = last - len(messages)
        if len(fresh) < len(messages):
            Thread.objects.filter(pk=thread.pk).update(last_position=position + len(fresh))
        rows = MessageRow.objects.bulk_create(
            [_to_row(thread, m, position + n, tokenizer) for n, m in enumerate(fresh, 1)]
        )
    stored = iter(
        replace(m, id=str(row.pk), position=row.position, thread=thread.key)
        for m, row in zip(fresh, rows, strict=True)
    )
    by_client_id = dict(known)
    result: list[Message] = []
    for message in messages:
        if message.client_id is not None and message.client_id in by_client_id:
            result.append(by_client_id[message.client_id])
            continue
        result.append(next(stored))
        if message.client_id is not None:
            by_client_id[message.client_id] = result[-1]
    return result


def _is_new(message: Message, known: dict[str, Message], new: dict[str, Message]) -> bool:
    key = message.client_id
    if key is None:
        return True
    if key in known or key in new:
        return False
    new[key] = message
    return True


def _stored_by_client_id(thread: Thread, messages: Sequence[Message]) -> dict[str, Message]:
    keys = [m.client_id for m in messages if m.client_id is not None]
    if not keys:
        return {}
    rows = MessageRow.objects.filter(thread=thread, client_id__in=keys).values_list(*_COLUMNS)
    return {m.client_id: m for m in (_to_core(r, thread.key) for r in rows) if m.client_id}


def _to_row(thread: Thread, message: Message, position: int, tokenizer: str) -> MessageRow:
    return MessageRow(
        thread=thread,
        position=position,
        role=message.role,
        parts=[part_to_json(part) for part in message.parts],
        client_id=message.client_id,
        model=message.model,
        metadata=dict(message.metadata),
        tokens=message.tokens or 0,
        part_tokens=list(message.part_tokens or ()),
        tokenizer=tokenizer,
        created_at=cast(datetime, message.created_at),
    )


def retry_locked(work: Callable[[], T], tries: int = 5) -> T:
    """Do database work again after a passing fault (a lock, a dropped connection).

    Inside of a transaction of the caller it runs once: what the caller wrote would be lost.
    """
    for attempt in range(1, tries + 1):
        try:
            return work()
        except OperationalError:
            connection = connections[DEFAULT_DB_ALIAS]
            if connection.in_atomic_block or attempt == tries:
                raise
            connection.close_if_unusable_or_obsolete()
    raise AssertionError("unreachable")


__all__ = [
    "Loaded",
    "append",
    "check_key",
    "last_user_message",
    "load",
    "messages_between",
    "open_thread",
    "prepare",
    "retry_locked",
]
