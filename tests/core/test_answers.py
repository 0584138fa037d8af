from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from om_django.core.answers import Verdict, find_loop, parse_answer


@pytest.mark.parametrize(
    ("raw", "stored"),
    [
        ("<observations>\n* a\n</observations>\n<observations>\n* b\n</observations>", "* a\n* b"),
        ("- one\n  * two\n3. three\nplain", "- one\n  * two\n3. three"),
        (
            "<observations>\nDate: Dec 4, 2025\n🔴 (09:00) a\n</observations>",
            "Date: Dec 4, 2025\n* 🔴 (09:00) a",
        ),
        ("<observations>\n* code:\n    x = 1\n</observations>", "* code:\n    x = 1"),
        (
            "<observations>\n* quotes </observations> in a line\n* b\n</observations>",
            "* quotes &lt;/observations> in a line\n* b",
        ),
        ("see <observations> there\n<observations>\n* a\n</observations>", "* a"),
        (
            "<observations>\n* a\n<observations>\n* b\n</observations>",
            "* a\n* &lt;observations>\n* b",
        ),
    ],
)
def test_observations_are_read(raw: str, stored: str) -> None:
    answer = parse_answer(raw)
    assert answer.verdict == Verdict.OK
    assert answer.observations == stored


@pytest.mark.parametrize(
    ("raw", "verdict"),
    [
        ("", Verdict.EMPTY),
        (" \n ", Verdict.EMPTY),
        ("```\n```", Verdict.EMPTY),
        ("<observations></observations>", Verdict.EMPTY),
        ("<observations>\nDate: Dec 4, 2025\n</observations>", Verdict.EMPTY),
        ("I cannot help with that.", Verdict.UNPARSABLE),
        ("<observations>\n(nothing to note)\n</observations>", Verdict.NOTHING),
        ("* (nothing new to note).", Verdict.NOTHING),
        ("<observations>\n" + "again and again " * 300, Verdict.DEGENERATE),
    ],
)
def test_verdicts(raw: str, verdict: Verdict) -> None:
    answer = parse_answer(raw)
    assert answer.verdict == verdict
    assert answer.observations == ""
    assert bool(answer.detail) is not verdict.sound


def test_prose_is_taken_whole_only_where_it_may_be() -> None:
    assert parse_answer("All is well.", prose=True).observations == "* All is well."


def test_a_cut_answer_loses_its_last_line() -> None:
    assert parse_answer("<observations>\n* a\n* b", cut=True).observations == "* a"
    assert parse_answer("<observations>\n* a", cut=True).verdict == Verdict.CUT
    assert parse_answer("", cut=True).verdict == Verdict.CUT
    whole = "<observations>\n* a\n* b\n</observations>\n<current-task>x"
    assert parse_answer(whole, cut=True).observations == "* a\n* b"


SLUGS = ("current-task", "mood")


def test_sections_stand_outside_of_the_observations() -> None:
    raw = (
        "<observations>\n* says <mood> and\n<mood>no</mood>\n</observations>\n"
        "<current-task>\nplan\nmore\n</current-task>\n<mood>42</mood>\n<mood>happy</mood>"
    )
    answer = parse_answer(raw, slugs=SLUGS)
    assert answer.values == {"current-task": "plan\nmore", "mood": "happy"}
    assert "says <mood> and" in answer.observations
    assert "<mood>no</mood>" in answer.observations
    assert parse_answer(
        "<observations>\n* a\n</observations>\n<mood></mood>", slugs=SLUGS
    ).values == {"mood": ""}
    assert parse_answer("* a\n<mood>x</mood>", slugs=SLUGS).observations == "* a"


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        ("word pair " * 192, False),
        ("word pair " * 208, True),
        ("x" * 50_001, True),
        ("\n".join(f"line number {n} with more than 24 characters" for n in range(21)), False),
        ("\n".join(f"line number {n} with more than 24 characters" for n in range(21)) * 62, True),
    ],
)
def test_loops_are_found(text: str, loop: bool) -> None:
    assert bool(find_loop(text)) is loop


@pytest.mark.parametrize(("lines", "repeats", "loop"), [(40, 20, False), (41, 21, True)])
def test_half_of_the_lines_may_repeat(lines: int, repeats: int, loop: bool) -> None:
    fresh = [
        f"{n} {'abcdefghij'[n % 10] * 3} is line {n * 7919} of the text, {n**5}"
        for n in range(lines - repeats)
    ]
    text = (
        "\n".join([*fresh, *(fresh * 3)[:repeats]]) + "\n" + "\n".join(f"{n}" for n in range(400))
    )
    assert len(text) > 2000
    assert bool(find_loop(text)) is loop


@given(
    st.text(alphabet=st.sampled_from("<>/*-\n ab`observations🔴()0:9")),
    st.booleans(),
    st.booleans(),
)
def test_any_text_is_read_without_a_fault(raw: str, cut: bool, prose: bool) -> None:
    answer = parse_answer(raw, slugs=SLUGS, cut=cut, prose=prose)
    assert bool(answer.observations.strip()) is (answer.verdict == Verdict.OK)
    assert "<observations" not in answer.observations.lower()
