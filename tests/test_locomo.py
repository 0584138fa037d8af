"""Real conversations of many months, through the memory turn by turn.

The data is not part of this repository: set OM_LOCOMO to a directory of LoCoMo files.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from om_django.core.planner import count_window
from om_django.demo.readers import read_conversation
from om_django.models import Cursor, MemoryRecord, ObservationGroup
from om_django.models import Message as MessageRow
from om_django.observational import ObservationalMemory

ROOT = Path(os.environ.get("OM_LOCOMO") or Path(__file__).parents[2] / "shared/data/locomo")
FILES = sorted(ROOT.glob("*.json")) if ROOT.is_dir() else []
MESSAGE_TOKENS, OBSERVATION_TOKENS = 3000, 2000


@pytest.mark.skipif(not FILES, reason=f"there are no LoCoMo files in {ROOT} (set OM_LOCOMO)")
@pytest.mark.django_db
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_context_stays_bounded_and_nothing_is_lost(file: Path) -> None:
    om = ObservationalMemory(
        "default",
        {
            "model": "offline/extractive",
            "observation": {"message_tokens": MESSAGE_TOKENS},
            "reflection": {"observation_tokens": OBSERVATION_TOKENS},
        },
    )
    messages = read_conversation(file).messages
    largest = longest = 0
    for message in messages:
        with om.turn("t") as turn:
            (stored,) = turn.add(message)
            step = turn.step()
        longest = max(longest, count_window([stored]))
        largest = max(largest, step.tokens)
        assert step.tokens <= MESSAGE_TOKENS + OBSERVATION_TOKENS + longest
        if stored.role == "user":
            assert step.messages[-1].parts == stored.parts
    assert largest > MESSAGE_TOKENS
    stored_texts = [
        row.to_core().text for row in MessageRow.objects.order_by("position").iterator()
    ]
    assert stored_texts == [message.text for message in messages]
    position = 0
    for group in ObservationGroup.objects.filter(kind="observation").order_by("first_position"):
        assert group.first_position == position + 1
        position = group.last_position
    assert position == Cursor.objects.get().position
    assert MemoryRecord.objects.get().log_tokens < OBSERVATION_TOKENS
