"""The rule-based Reflector."""

from __future__ import annotations

import re
import time
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from om_django.core.answers import Answer, Verdict
from om_django.core.extractive import reflect
from om_django.core.log import DONE, HIGH, LOW, MARKS, MEDIUM, parse_lines
from om_django.core.observer import BUILT_IN_SECTIONS
from om_django.core.reflector import ReflectorInput, parse_reflector_answer

from .test_extractive import count


def log(lines: int = 120) -> str:
    out: list[str] = []
    marks = (HIGH, MEDIUM, LOW, DONE)
    for n in range(lines):
        if n % 6 == 0:
            out.append(
                f"Date: {(date(2026, 1, 1) + timedelta(days=n // 6)):%b} {n // 6 % 28 + 1}, 2026"
            )
        who = "User" if n % 3 else "Assistant"
        out.append(
            f"* {marks[n % 4]} (10:{n % 60:02}) {who}: topic{n} concerns place{n * 7} "
            f"and thing{n * 3}"
        )
    return "\n".join(out)


def shrink(text: str, target: int, level: int = 1) -> Answer:
    task = ReflectorInput(log=text, log_tokens=count(text), target_tokens=target, level=level)
    raw = reflect(task, count)
    assert raw == reflect(task, count)
    return parse_reflector_answer(raw, task)


def test_a_reflection_is_below_its_target_with_room_left() -> None:
    text = log()
    target = count(text) * 2 // 3
    sizes = [count(shrink(text, target, level).observations) for level in range(5)]
    assert all(size < target for size in sizes)
    assert 0.5 * target < sizes[1] < 0.7 * target
    assert sizes == sorted(sizes, reverse=True)


def test_kept_lines_keep_day_and_mark_and_the_strong_stay() -> None:
    text = log()
    before = {line.text.partition("topic")[2].split()[0]: line for line in parse_lines(text)}
    once = shrink(text, count(text) // 2).observations
    assert parse_lines(shrink(once, 10 * count(once)).observations) == parse_lines(once)
    after = parse_lines(once)
    kept = 0
    for line in after:
        time = line.time
        for later, topic in re.findall(r"(?:\((\d\d:\d\d)\) |: )topic(\d+)", line.text):
            kept += 1
            time = later or time
            assert (line.day, line.mark) == (before[topic].day, before[topic].mark)
            assert time == before[topic].time
    assert kept > 20
    marks = "".join(line.mark for line in after)
    assert marks.count(HIGH) + marks.count(DONE) > 2 * marks.count(LOW)


def test_a_tiny_log_comes_back_as_it_is() -> None:
    text = "Date: Feb 3, 2026\n* 🔴 (23:30) User: I moved to Lund (meaning Feb 2, 2026)"
    assert shrink(text, 2_000).observations == text


def test_repeats_go_and_subnotes_stay_below_their_note() -> None:
    text = (
        "Date: Feb 3, 2026\n"
        "* 🔴 (10:00) User wants the Falcon launch on May 3\n"
        "  * -> depends on the Paris office\n"
        "* 🔴 (11:00) User wants the Falcon launch on May 3\n"
        "* 🔴 (12:00) User wants the Falcon launch on May 10"
    )
    assert shrink(text, 2_000).observations.splitlines() == [
        *text.splitlines()[:3],
        text.splitlines()[4],
    ]


def test_thread_tags_do_not_become_notes() -> None:
    text = '<thread id="a">\nDate: Feb 3, 2026\n* 🔴 (10:00) User has 2 cats\n</thread>'
    assert "thread" not in shrink(text, 500).observations


def test_sections_of_a_reflection_are_the_prior_ones() -> None:
    task = ReflectorInput(
        log=log(), log_tokens=1, target_tokens=400, sections=BUILT_IN_SECTIONS,
        prior={"current-task": "plan the launch"},
    )  # fmt: skip
    answer = parse_reflector_answer(reflect(task, count), task)
    assert answer.values == {"current-task": "plan the launch"}


words = st.sampled_from(
    ["Lund", "Ana", "42", "paid", "I", "Falcon", "no", "42 EUR", "<thread>", "花生", "x" * 90, ";"]
)
log_lines = st.one_of(
    st.builds(
        lambda mark, minute, body: f"* {mark} (10:{minute:02}) User: {' '.join(body)}",
        st.sampled_from(MARKS),
        st.integers(0, 59),
        st.lists(words, min_size=1, max_size=30),
    ),
    st.builds(lambda d: f"Date: Feb {d}, 2026", st.integers(1, 28)),
    st.builds(lambda body: "  * -> " + " ".join(body), st.lists(words, min_size=1, max_size=6)),
    st.text(max_size=60),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(log_lines, max_size=60), st.integers(40, 600), st.integers(0, 4))
def test_any_log_is_rewritten_below_its_target(rows: list[str], target: int, level: int) -> None:
    text = "\n".join(rows)
    answer = shrink(text, target, level)
    assert answer.verdict.sound
    assert count(answer.observations) < target
    raw = [line for line in answer.observations.splitlines() if line.startswith("* ")]
    by_day = [(line.day, line.raw) for line in parse_lines(answer.observations)]
    assert raw == [] or len(set(by_day)) == len(by_day)


@pytest.mark.parametrize("target", [0, 1, 5, 12])
def test_a_target_too_small_for_a_line_still_gives_a_valid_answer(target: int) -> None:
    assert shrink(log(), target, 4).verdict is Verdict.OK


def test_a_large_log_is_quick() -> None:
    began = time.perf_counter()
    text = log(6_000)
    assert shrink(text, count(text) // 2).verdict is Verdict.OK
    assert shrink("* 🔴 " + "a; " * 300_000, 500).verdict is Verdict.OK
    assert shrink("* 🔴 " + " " * 300_000 + "(" * 300_000, 500).verdict.sound
    assert time.perf_counter() - began < 10
