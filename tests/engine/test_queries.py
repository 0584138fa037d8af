"""The cost of a step does not depend on the length of the thread."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from om_django.core.messages import TextPart, part_to_json
from om_django.models import Cursor, GroupKind, MemoryRecord, ObservationGroup, Operation, Thread
from om_django.models import Message as MessageRow
from om_django.observational import ObservationalMemory

pytestmark = pytest.mark.django_db
Make = Callable[..., ObservationalMemory]


def grow(om: ObservationalMemory, count: int) -> None:
    """Store a thread of ``count`` messages, all but the last ten observed, in five groups."""
    with om.turn("t") as turn:
        turn.user("first")
    thread, record = Thread.objects.get(), MemoryRecord.objects.get()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    MessageRow.objects.bulk_create(
        MessageRow(
            thread=thread,
            position=position,
            role="user" if position % 2 else "assistant",
            parts=[part_to_json(TextPart(f"message {position}"))],
            tokens=5,
            part_tokens=[4],
            tokenizer=om.services.counter.name,
            created_at=now,
        )
        for position in range(2, count + 1)
    )
    Thread.objects.update(last_position=count)
    operation = Operation.objects.create(
        record=record,
        thread=thread,
        kind="observe",
        state="succeeded",
        trigger="manual",
        generation=0,
    )
    observed = count - 10
    edges = [observed * n // 5 for n in range(6)]
    ObservationGroup.objects.bulk_create(
        ObservationGroup(
            record=record,
            thread=thread,
            operation=operation,
            kind=GroupKind.OBSERVATION,
            state="active",
            sequence=number,
            generation=0,
            text=f"* note {number}",
            tokens=5,
            first_message=1,
            last_message=1,
            first_position=first + 1,
            last_position=last,
            message_count=last - first,
            message_tokens=10,
            observed_until=now,
        )
        for number, (first, last) in enumerate(pairwise(edges), 1)
    )
    Cursor.objects.update(position=observed)
    MemoryRecord.objects.update(last_sequence=5, log_tokens=25)


def queries_of_a_turn(om: ObservationalMemory) -> tuple[int, int, int]:
    counts = []
    with CaptureQueriesContext(connection) as opening, om.turn("t") as turn:
        pass
    counts.append(len(opening))
    with om.turn("t") as turn:
        for work in (lambda: turn.user("hi"), turn.step):
            with CaptureQueriesContext(connection) as queries:
                work()
            counts.append(sum(not q["sql"].startswith(("SAVEPOINT", "RELEASE")) for q in queries))
    return counts[0], counts[1], counts[2]


@pytest.mark.parametrize("count", [100, 20_000])
def test_queries_of_a_turn_are_constant(make_memory: Make, count: int) -> None:
    om = make_memory()
    grow(om, count)
    opening, storing, step = queries_of_a_turn(om)
    assert (opening, storing, step) == (1, 3, 4)


def test_the_window_is_read_by_an_index(make_memory: Make) -> None:
    om = make_memory()
    grow(om, 2_000)
    thread = Thread.objects.get()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE om_django_message")
    rows = MessageRow.objects.filter(thread=thread, position__gt=1_990).order_by("position")
    plan = rows.explain()
    assert "om_message_position" in plan or "USING INDEX sqlite_autoindex_om_django_message" in plan
