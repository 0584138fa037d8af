"""Tool calls and their results belong together: no provider takes one without the other.

A result answers the nearest call before it with its id that has no result yet: some providers use
the same ids again in every turn. A result that stands before the only calls with its id answers
the first of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from ..messages import Message, ToolCallPart, ToolResultPart

NO_RESULT = "[no result was recorded]"

Place: TypeAlias = tuple[int, int]
"""A message of the sequence and a part of it, both by index."""
Answer: TypeAlias = tuple[ToolCallPart, Place | None]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which result answers which call, which calls have none and which results answer none."""

    result_of: dict[Place, Place]
    unanswered: tuple[Place, ...]
    orphans: frozenset[Place]


def match_pairs(messages: Sequence[Message]) -> Pairs:
    """Return which result answers which call. Takes linear time."""
    waiting: dict[str, list[tuple[int, deque[Place]]]] = {}
    result_of: dict[Place, Place] = {}
    early: dict[str, list[Place]] = {}
    orphans: list[Place] = []
    calls: list[Place] = []
    seen: set[str] = set()
    for i, message in enumerate(messages):
        for j, part in enumerate(message.parts):
            if isinstance(part, ToolCallPart):
                calls.append((i, j))
                seen.add(part.tool_call_id)
                stack = waiting.setdefault(part.tool_call_id, [])
                if not stack or stack[-1][0] != i:
                    stack.append((i, deque()))
                stack[-1][1].append((i, j))
            elif isinstance(part, ToolResultPart):
                nearest = waiting.get(part.tool_call_id)
                if nearest:
                    result_of[nearest[-1][1].popleft()] = (i, j)
                    if not nearest[-1][1]:
                        nearest.pop()
                elif part.tool_call_id in seen:
                    orphans.append((i, j))
                else:
                    early.setdefault(part.tool_call_id, []).append((i, j))
    for call_id, results in early.items():
        left = [place for _, places in waiting.get(call_id, ()) for place in places]
        if left:
            result_of[left[0]] = results.pop(0)
        orphans.extend(results)
    unanswered = tuple(place for place in calls if place not in result_of)
    return Pairs(result_of, unanswered, frozenset(orphans))


def normalise_pairs(messages: Sequence[Message], *, keep_open: bool = False) -> list[Message]:
    """Return the messages so that every call is directly followed by exactly one result.

    Results move up to their calls, in call order; results without a call and second results go; a
    call without a result gets one that says so. ``keep_open`` leaves the calls of the last
    assistant message alone if only results follow it. Messages that are right already come back as
    the same objects; one that is taken apart may appear twice.
    """
    pairs = match_pairs(messages)
    last = next((i for i in reversed(range(len(messages))) if messages[i].role != "tool"), -1)
    placed: dict[int, list[Answer]] = {}
    for i, message in enumerate(messages):
        found = [
            (part, pairs.result_of.get((i, j)))
            for j, part in enumerate(message.parts)
            if isinstance(part, ToolCallPart)
        ]
        if found:
            stays_open = keep_open and i == last
            placed[i] = [pair for pair in found if pair[1] is not None or not stays_open]
    kept = _in_place(messages, placed)
    out: list[Message] = []
    for i, message in enumerate(messages):
        out.extend(_rest(message, kept=i in kept))
        if i in placed and i + 1 not in kept and placed[i]:
            out.append(_results(messages, i, placed[i]))
    return out


def _in_place(messages: Sequence[Message], placed: dict[int, list[Answer]]) -> set[int]:
    """Return the tool messages that follow their calls with just the results they should hold."""
    kept: set[int] = set()
    for i, wanted in placed.items():
        end = i + 1
        found: list[Place] = []
        while end < len(messages) and messages[end].role == "tool" and end not in placed:
            found.extend(
                (end, j)
                for j, part in enumerate(messages[end].parts)
                if isinstance(part, ToolResultPart)
            )
            end += 1
        if found == [place for _, place in wanted] and not messages[i].tool_results:
            kept.update(range(i + 1, end))
    return kept


def _rest(message: Message, *, kept: bool) -> list[Message]:
    """Return the message without its results, if anything is left of it."""
    if kept or not message.tool_results:
        return [message]
    parts = [part for part in message.parts if not isinstance(part, ToolResultPart)]
    return [message.with_parts(parts)] if parts else []


def _results(messages: Sequence[Message], i: int, answers: Sequence[Answer]) -> Message:
    """Return a tool message with the results of the calls of message ``i``."""
    parts: list[ToolResultPart] = []
    base: Message | None = None
    for call, place in answers:
        if place is None:
            parts.append(ToolResultPart(call.tool_call_id, call.tool_name, NO_RESULT, "error"))
            continue
        source = messages[place[0]]
        part = source.parts[place[1]]
        assert isinstance(part, ToolResultPart)
        parts.append(part)
        if base is None and source.role == "tool":
            base = source
    if base is None:
        call_message = messages[i]
        base = Message(role="tool", thread=call_message.thread, created_at=call_message.created_at)
    return base if base.parts == tuple(parts) else base.with_parts(parts)


def safe_cut(messages: Sequence[Message], limit_index: int) -> int:
    """Return the largest ``n`` up to ``limit_index`` at which the messages can be cut in two.

    No call is on one side and its result on the other, and no call before the cut still waits for a
    result. A call waits until a later message of the user shows that it was given up. Takes linear
    time.
    """
    limit = max(0, min(limit_index, len(messages)))
    # cut n is barred while the running sum of these is positive
    steps = [0] * (len(messages) + 2)
    pairs = match_pairs(messages)
    for (a, _), (b, _) in pairs.result_of.items():
        steps[min(a, b) + 1] += 1
        steps[max(a, b) + 1] -= 1
    last_user = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
    for i, _ in pairs.unanswered:
        if i >= last_user:
            steps[i + 1] += 1
    barred = list(accumulate(steps))
    return max(n for n in range(limit + 1) if not barred[n])
