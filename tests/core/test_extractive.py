"""The rule-based Observer and Reflector."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from om_django.core.answers import Answer, Verdict
from om_django.core.extractive import observe, reflect
from om_django.core.extractive.sentences import core, hide_secrets, split
from om_django.core.log import DONE, HIGH, LOW, MARKS, MEDIUM, Line, parse_lines
from om_django.core.messages import (
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from om_django.core.observer import BUILT_IN_SECTIONS, ObserverInput, parse_observer_answer
from om_django.core.reflector import ReflectorInput, parse_reflector_answer

WHEN = datetime(2026, 2, 4, 5, 30, tzinfo=UTC)


def count(text: str) -> int:
    """Stand in for a tokenizer: as strict, and the same everywhere."""
    return len(re.findall(r"\w{1,5}|[^\w\s]", text))


def message(role: Role, *parts: str | Part, minute: int = 0) -> Message:
    return Message(
        role=role,
        parts=tuple(TextPart(part) if isinstance(part, str) else part for part in parts),
        created_at=WHEN + timedelta(minutes=minute),
    )


def user(*texts: str) -> list[Message]:
    return [message("user", text, minute=minute) for minute, text in enumerate(texts)]


def run(messages: Sequence[Message], **options: object) -> Answer:
    task = ObserverInput(messages=tuple(messages), **options)  # type: ignore[arg-type]
    raw = observe(task, count)
    assert raw == observe(task, count)
    answer = parse_observer_answer(raw, task)
    assert answer.verdict.sound, answer.detail
    return answer


def notes(messages: Sequence[Message], **options: object) -> list[Line]:
    lines = parse_lines(run(messages, **options).observations)
    assert len({line.raw for line in lines}) == len(lines)
    assert all(line.mark in MARKS for line in lines)
    return lines


def only(messages: Sequence[Message], **options: object) -> Line:
    (line,) = notes(messages, **options)
    return line


def test_a_line_is_marked_timed_and_dated_in_the_users_zone() -> None:
    line = only(user("I moved to Lund yesterday."), zone=ZoneInfo("America/Chicago"))
    assert (line.day, line.time, line.mark) == (date(2026, 2, 3), "23:30", HIGH)
    assert line.meant == date(2026, 2, 2)
    assert line.text == "User: I moved to Lund yesterday (meaning Feb 2, 2026)"


def test_a_message_without_a_time_is_noted_without_one() -> None:
    said = Message(role="user", parts=(TextPart("My sister Ana is allergic to penicillin"),))
    assert run([said]).observations == "* 🔴 User: My sister Ana is allergic to penicillin"


@pytest.mark.parametrize(
    "text",
    [
        "Hi! How are you?",
        "Thanks so much, you're awesome :)",
        "Wow, that's great!",
        "Have a nice day, see you soon!",
        "ok",
        "👍",
        "haha yes",
        "???",
        "",
        "谢谢！",
    ],
)
def test_filler_is_dropped(text: str) -> None:
    answer = run(user(text))
    assert answer.verdict is Verdict.NOTHING
    assert "(nothing to note)" in observe(ObserverInput(messages=tuple(user(text))), count)


def test_no_messages_are_nothing() -> None:
    assert run([]).verdict is Verdict.NOTHING
    assert run([message("system", "I like Paris and 42 cats")]).verdict is Verdict.NOTHING


@pytest.mark.parametrize(
    ("role", "text", "mark"),
    [
        ("user", "I'm allergic to penicillin", HIGH),
        ("user", "Can you book a table for 4 in Lund?", HIGH),
        ("user", "I have signed the lease for Elm Street 5", DONE),
        ("user", "We paid the invoice 4411", DONE),
        ("user", "I have not paid the invoice 4411", HIGH),
        ("assistant", "Order 4411 ships from Oslo with UPS", MEDIUM),
        ("assistant", "I painted the lake near our house in Maine last year", HIGH),
    ],
)
def test_marks(role: Role, text: str, mark: str) -> None:
    assert only([message(role, text)]).mark == mark


def test_a_statement_is_kept_word_for_word_without_its_wrapping() -> None:
    line = only(user("Hey Mel! Well, so actually I adopted a puppy named Biscuit, you know!"))
    assert line.text == "User: I adopted a puppy named Biscuit"


def test_requests_are_told_from_statements() -> None:
    lines = notes(user("Can you find flights to Oslo for May 3?", "My budget is 300 EUR."))
    assert [line.text.partition(":")[0] for line in lines] == ["User asked", "User"]


def test_what_is_known_is_not_noted_again_but_a_new_number_is() -> None:
    known = "Date: Feb 3, 2026\n* 🔴 (10:00) User: My budget for the trip is 300 EUR"
    assert run(user("My budget for the trip is 300 EUR"), previous=known).verdict is Verdict.NOTHING
    assert "450" in only(user("My budget for the trip is 450 EUR"), previous=known).text


def test_two_days_spoken_of_are_two_lines() -> None:
    lines = notes(user("I met Rob in Lund last Tuesday. I fly to Oslo in three days."))
    assert [line.meant for line in lines] == [date(2026, 2, 3), date(2026, 2, 7)]


@pytest.mark.parametrize(
    ("outcome", "result", "shown"),
    [
        ("ok", {"status": "delayed", "eta": "2026-02-09"}, "status=delayed, eta=2026-02-09"),
        ("error", "timeout after 30 s", "error: timeout after 30 s"),
        ("denied", None, "denied: not approved by the user"),
        ("ok", "", "empty result"),
    ],
)
def test_a_tool_exchange_is_one_line(outcome: str, result: object, shown: str) -> None:
    messages = [
        message("assistant", ToolCallPart("c1", "search_orders", {"order": 4411})),
        message("tool", ToolResultPart("c1", "search_orders", result, outcome)),  # type: ignore[arg-type]
    ]
    line = only(messages)
    assert line.text == f"Tool search_orders(order=4411): {shown}"
    assert line.mark == MEDIUM


def test_an_open_call_and_a_lone_result() -> None:
    call = message("assistant", ToolCallPart("c1", "deploy", raw_args='{"env": "prod"}'))
    assert only([call]).text == "Tool deploy(env=prod): no result yet"
    result = message("tool", ToolResultPart("c9", "deploy", {"version": "v42"}))
    assert only([result]).text == "Tool deploy: version=v42"


def test_attachments_are_named() -> None:
    line = only([message("user", ImagePart(url="https://example.org/a/receipt.png"))])
    assert line.text == "User: sent image receipt.png"


def test_secrets_are_not_written_down() -> None:
    text = "My password is hunter22! The card is 4111 1111 1111 1111, api_key: sk-abcdefghij0123456"
    hidden = hide_secrets(text)
    assert "hunter22" not in hidden
    assert "4111" not in hidden
    assert "sk-" not in hidden
    assert hide_secrets("The password is wrong") == "The password is wrong"


def test_sections_only_where_asked_for() -> None:
    messages = [
        *user("I need to move the launch of Falcon to May 10.", "Falcon runs in Frankfurt."),
        message("user", "Which region is Falcon in, Frankfurt or Paris?", minute=5),
    ]
    assert run(messages).values == {}
    values = run(messages, sections=BUILT_IN_SECTIONS).values
    assert "launch of Falcon" in values["current-task"]
    assert values["suggested-response"].startswith("Answer: Which region is Falcon in")
    assert "Falcon" in values["thread-title"]
    assert 2 <= len(values["thread-title"].split()) <= 5
    kept = run(messages, sections=BUILT_IN_SECTIONS, prior={"thread-title": "Falcon launch"})
    assert kept.values["thread-title"] == "Falcon launch"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("你好！我昨天搬到了上海。我对花生过敏，请记住。", ["搬到了上海", "花生过敏"]),
        ("Ich bin gestern nach Berlin gezogen. Mein Budget ist 1200 Euro.", ["Berlin", "1200"]),
        ("Moro em Lisboa com minha irmã Ana. O prazo é 14 de maio.", ["Lisboa", "14"]),
        ("Mam psa Burka i mieszkam w Krakowie. Czynsz to 2500 zł.", ["Krakowie", "2500"]),
        ("أعيش في القاهرة وعمري 34 سنة", ["34"]),
    ],
)
def test_other_languages(text: str, kept: list[str]) -> None:
    text_of_notes = run(user(text)).observations
    for words in kept:
        assert words in text_of_notes


def test_splitting() -> None:
    assert split("Dr. Lee came at 3.5 km. Then? 好的。再见！") == [
        "Dr. Lee came at 3.5 km.",
        "Then?",
        "好的。",
        "再见！",
    ]
    assert core("So far we sold 12") == "So far we sold 12"


def test_notes_are_much_smaller_than_a_long_conversation() -> None:
    texts = [
        f"In week {n} I visited place {n * 7} in Oslo with my friend number {n * 3}, we stayed "
        "there for hours and talked about everything that had happened since the last time, "
        "which was really lovely and so much fun for all of us. Thank you for listening!"
        for n in range(120)
    ]
    messages = user(*texts)
    size = sum(count(m.text) for m in messages)
    by_level = [count(run(messages, level=level).observations) for level in (0, 1, 2)]
    assert by_level[0] < size / 3.5
    assert by_level[0] > by_level[1] > by_level[2] > 0
    assert len(notes(messages, level=2)) <= 40


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        " " * 1_000_000,
        "I am 5. " * 100_000,
        "".join(f"I saw {n} cats. " for n in range(100_000)),
        "<observations>" * 50_000,
        "</observations>\n<thread id='x'>" * 20_000,
        "<system-reminder>" * 50_000,
        "\n* 🔴 (10:00) x" * 50_000,
        "[" * 300_000 + "]" * 300_000,
        "?!." * 300_000,
        '"' * 500_000,
        "1" * 500_000,
        "1-" * 300_000,
        "password: " * 80_000,
        "A a, " * 150_000,
        "我" * 300_000,
        "\u2028\x85\x0b" * 100_000,
    ],
)
def test_hostile_input_finishes_and_stays_bounded(text: str) -> None:
    began = time.perf_counter()
    task = ObserverInput(messages=(message("user", text),), sections=BUILT_IN_SECTIONS)
    raw = observe(task, len)
    assert time.perf_counter() - began < 6
    assert parse_observer_answer(raw, task).verdict.sound
    assert len(raw) < 20_000


def test_hostile_tool_results() -> None:
    deep: object = "x"
    for _ in range(200):
        deep = {"a": [deep]}
    big = "[" * 19_000
    for result in (deep, big, {str(n): n for n in range(10_000)}, ["y" * 100_000] * 50):
        line = only([message("tool", ToolResultPart("c", "t" * 500, result))])  # type: ignore[arg-type]
        assert len(line.text) < 400


any_text = st.text(max_size=120) | st.sampled_from(
    [
        "I moved to Lund yesterday!",
        "</observations>",
        "<thread id='a'>I paid 40 EUR</thread>",
        "Date: Dec 4, 2025",
        "* 🔴 (10:00) fake",
        "```\ncode\n```",
        "(nothing to note)",
        "<current-task>x</current-task>",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), any_text), max_size=12))
def test_any_conversation_gives_a_sound_answer(turns: list[tuple[Role, str]]) -> None:
    messages = [message(role, text, minute=n) for n, (role, text) in enumerate(turns)]
    answer = run(messages, sections=BUILT_IN_SECTIONS)
    lines = answer.observations.splitlines()
    assert all(line.startswith(("* ", "Date: ")) for line in lines)


# The Reflector


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
    after = parse_lines(shrink(text, count(text) // 2).observations)
    kept = 0
    for line in after:
        for topic in re.findall(r"topic(\d+)", line.text):
            kept += 1
            assert line.day == before[topic].day
            assert line.mark == before[topic].mark
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
