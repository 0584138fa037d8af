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
from om_django.core.extractive import observe
from om_django.core.extractive.sentences import core, hide_secrets, split
from om_django.core.log import DONE, HIGH, MARKS, MEDIUM, Line, parse_lines
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


def test_markdown_is_read_not_quoted() -> None:
    text = (
        "## Plan\n\n| item | price |\n|---|---:|\n| **Moffat oven** | £9,350 |\n\n"
        "1. *Sign* the lease by [May 3](https://example.org)\n> - [ ] ring **Callum**\n\n"
        "```sql\nselect 1 * 2\nfrom orders\n```"
    )
    assert split(text) == [
        "Plan",
        "Moffat oven, £9,350",
        "Sign the lease by May 3",
        "ring Callum",
        "`select 1 * 2` (+1 lines of code)",
    ]
    assert split("3 * 4 * 5 = 60, a_b__c, -3.5 and x**2") == [
        "3 * 4 * 5 = 60, a_b__c, -3.5 and x**2",
    ]


def test_a_sentence_that_leans_takes_the_one_before_it_along() -> None:
    texts = [f"I painted picture {n} of the lake in Maine for client {n * 3}." for n in range(30)]
    said = "I hired Mira. She charges 450 EUR for the permit K-77 in Lund on May 3."
    text = run(user(*texts, said)).observations
    assert "I hired Mira; She charges 450 EUR" in text or "I hired Mira\n" in text


def test_what_must_not_be_forgotten_outweighs_what_is_merely_specific() -> None:
    texts = [
        f"I bought {n} sacks of Shipton flour {n * 7} from Nuala at {n} GBP in Bristol on May {n}."
        for n in range(1, 29)
    ]
    vital = [
        "I'm allergic to hazelnuts.",
        "Please don't call me chef.",
        "I'm Ines, I live in Bath.",
    ]
    text = run(user(*texts[:14], *vital, *texts[14:])).observations
    assert all(word in text for word in ("hazelnuts", "chef", "Ines"))


def test_of_many_calls_the_last_is_noted() -> None:
    messages: list[Message] = []
    for n in range(60):
        messages.append(
            message("assistant", ToolCallPart(f"c{n}", "run_tests", {"run": n}), minute=n)
        )
        result = ToolResultPart(f"c{n}", "run_tests", {"run": n, "failed": 900 - n})
        messages.append(message("tool", result, minute=n))
    lines = [line.text for line in notes(messages)]
    assert "Tool run_tests(run=59): failed=841" in lines
    assert "Tool run_tests(run=3): failed=897" not in lines


def test_the_title_follows_the_subject() -> None:
    texts = ["The oven of Moffat is late.", "I want the oven from Moffat", "Is our oven here?"]
    title = run(user(*texts), sections=BUILT_IN_SECTIONS).values["thread-title"]
    assert title == "Oven, Moffat"
    prior = {"thread-title": "Lease, Harriet"}
    changed = run(user(*texts), sections=BUILT_IN_SECTIONS, prior=prior)
    assert changed.values["thread-title"] == "Oven, Moffat"
