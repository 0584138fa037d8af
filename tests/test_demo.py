from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import override_settings

from om_django.core.messages import Message, TextPart
from om_django.demo.player import Happening, Played, Sample, turns
from om_django.demo.plot import draw
from om_django.demo.readers import BadInput, read_conversation
from om_django.demo.svg import render
from om_django.demo.terminal import make_console, said
from om_django.models import MemoryRecord, ObservationGroup, Thread
from om_django.models import Message as MessageRow
from om_django.testing import ScriptedModel, observations

WORDS = "The oven from Kestrel costs 4,200 pounds and is delivered on Friday 6 March. "


def native(count: int = 24) -> list[dict[str, Any]]:
    """Return messages of our own format, with one tool call and its result among them."""
    begun = datetime(2026, 3, 1, 9, tzinfo=UTC)
    lines: list[dict[str, Any]] = []
    for number in range(count):
        role = "user" if number % 2 == 0 else "assistant"
        lines.append({"role": role, "parts": [{"type": "text", "text": f"{number}: {WORDS * 3}"}]})
    call = {"type": "tool-call", "tool_call_id": "c1", "tool_name": "search", "args": {"q": "oven"}}
    result = {"type": "tool-result", "tool_call_id": "c1", "tool_name": "search", "result": "none"}
    lines[3:3] = [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [result]}]
    for number, line in enumerate(lines):
        line["id"] = f"m{number}"
        line["created_at"] = (begun + timedelta(minutes=number)).isoformat()
    return lines


def openai(count: int = 24) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}: {WORDS * 3}"}
        for n in range(count)
    ]
    function = {"name": "search", "arguments": '{"q": "oven"}'}
    call = {"id": "c1", "type": "function", "function": function}
    lines[3:3] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "none"},
    ]
    return lines


def locomo() -> dict[str, Any]:
    def session(number: int) -> list[dict[str, Any]]:
        return [
            {
                "speaker": "Ann" if n % 3 else "Bob",
                "dia_id": f"D{number}:{n}",
                "text": f"{n}: {WORDS * 3}",
                **({"blip_caption": "a photo of a cat"} if n == 1 else {}),
            }
            for n in range(1, 13)
        ]

    return {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_10": session(10),
        "session_10_date_time": "12:05 am on 12 June, 2023",
        "session_2": session(2),
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_3_date_time": "1:56 pm on 9 May, 2023",
    }


def jsonl(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


Demo = Callable[..., str]


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    def run(**options: Any) -> str:
        out = io.StringIO()
        given = {
            "message_tokens": 400,
            "observation_tokens": 250,
            "svg": str(tmp_path / "saw.svg"),
            "stdout": out,
        }
        call_command("om_demo", **{**given, **options})
        return out.getvalue()

    return run


# The command


@pytest.mark.django_db
@pytest.mark.parametrize("make", [native, openai])
def test_plays_json_lines(demo: Demo, tmp_path: Path, make: Callable[[], Any]) -> None:
    output = demo(file=jsonl(tmp_path / "chat.jsonl", make()))

    assert list(MessageRow.objects.order_by("position").values_list("role", flat=True)[:5]) == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]
    assert MessageRow.objects.count() == 26
    for part in (
        "● observation",
        "activation    window",
        "The context of the next call",
        "<observations>",
        "Tokens in total",
        "Compression",
        "400 + 250 = 650",
        "unobserved messages",
        "Picture:",
        "om_demo --thread chat",
    ):
        assert part in output
    ElementTree.parse(tmp_path / "saw.svg")


@pytest.mark.django_db
def test_plays_a_locomo_file(demo: Demo, tmp_path: Path) -> None:
    file = tmp_path / "26.json"
    file.write_text(json.dumps(locomo(), indent=2), encoding="utf-8")

    demo(file=file)

    rows = list(MessageRow.objects.order_by("position"))
    assert [row.client_id for row in rows[::12]] == ["D2:1", "D10:1"]
    assert rows[0].created_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert rows[12].created_at == datetime(2023, 6, 12, 0, 5, tzinfo=UTC)
    assert rows[0].metadata == {"speaker": "Ann", "session": 2}
    assert rows[0].parts[0]["text"].endswith("\n[image: a photo of a cat]")
    assert {(row.role, row.metadata["speaker"]) for row in rows} == {
        ("user", "Ann"),
        ("assistant", "Bob"),
    }


@pytest.mark.django_db
def test_keeps_the_times_of_the_conversation(demo: Demo, tmp_path: Path) -> None:
    output = demo(file=jsonl(tmp_path / "chat.jsonl", native()), full=True)

    first = MessageRow.objects.get(position=1)
    assert first.created_at == datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert "Today is Mar 1, 2026." in output


@pytest.mark.django_db
def test_goes_on_with_a_thread(demo: Demo, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "chat.jsonl", native())
    demo(file=file, thread="t", limit=10)
    before = ObservationGroup.objects.count()

    output = demo(file=file, thread="t")

    assert "10 messages were in the thread already" in output
    ids = list(MessageRow.objects.order_by("position").values_list("client_id", flat=True))
    assert ids == [f"m{number}" for number in range(26)]
    assert ObservationGroup.objects.count() > before
    assert "10 messages" not in demo(file=file, thread="other")
    assert "26 messages were in the thread already" in demo(file=file, thread="t")
    assert MessageRow.objects.count() == 52


@pytest.mark.django_db
def test_takes_a_new_thread_each_time(demo: Demo, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "my chat.jsonl", native(6))

    demo(file=file)
    demo(file=file)

    assert list(Thread.objects.order_by("pk").values_list("key", flat=True)) == [
        "my-chat",
        "my-chat-2",
    ]


@pytest.mark.django_db
def test_refuses_a_thread_with_another_conversation(demo: Demo, tmp_path: Path) -> None:
    other = native()
    other[0]["parts"] = [{"type": "text", "text": "something else"}]
    demo(file=jsonl(tmp_path / "a.jsonl", native()), thread="t", limit=4)

    with pytest.raises(CommandError, match="holds another conversation"):
        demo(file=jsonl(tmp_path / "b.jsonl", other), thread="t")

    assert MessageRow.objects.count() == 4


@pytest.mark.django_db
def test_quiet_prints_the_summary_only(demo: Demo, tmp_path: Path) -> None:
    output = demo(file=jsonl(tmp_path / "chat.jsonl", native()), quiet=True, svg="")

    assert output.lstrip().startswith("Summary")
    assert "observation log" not in output
    assert not (tmp_path / "saw.svg").exists()


@pytest.mark.django_db
def test_observes_and_reflects_by_the_model_of_the_settings(demo: Demo, tmp_path: Path) -> None:
    model = ScriptedModel([observations("a line of the script")], name="test/scripted")
    with override_settings(OM_DJANGO={"MEMORIES": {"mine": {"model": model}}}):
        output = demo(file=jsonl(tmp_path / "chat.jsonl", native()), memory="mine")

    assert model.calls > 0
    assert "by test/scripted" in output
    assert "a line of the script" in output
    assert MemoryRecord.objects.get().memory == "mine"


@pytest.mark.django_db
def test_shows_a_failure_and_fails_when_the_context_grew(demo: Demo, tmp_path: Path) -> None:
    model = ScriptedModel(["no answer at all"], name="test/scripted")
    file = jsonl(tmp_path / "chat.jsonl", native())
    out = io.StringIO()
    with (
        override_settings(OM_DJANGO={"MEMORIES": {"demo": {"model": model}}}),
        pytest.raises(CommandError, match="The largest context had"),
    ):
        demo(file=file, stdout=out)

    assert "× failed" in out.getvalue()
    assert MessageRow.objects.count() == 26


@pytest.mark.django_db
def test_needs_a_memory_that_exists(demo: Demo) -> None:
    with pytest.raises(CommandError, match="There is no memory 'nope', only 'default'"):
        demo(memory="nope")


@pytest.mark.django_db
def test_sizes_of_the_settings_are_the_default(demo: Demo, tmp_path: Path) -> None:
    options = {"model": "offline/extractive", "observation": {"message_tokens": 444}}
    with override_settings(OM_DJANGO={"MEMORIES": {"demo": options}}):
        output = demo(
            file=jsonl(tmp_path / "chat.jsonl", native(4)),
            message_tokens=None,
            observation_tokens=None,
        )

    assert "444 + 4,000 = 4,444" in output


@pytest.mark.django_db
def test_the_shipped_conversation_begins(demo: Demo) -> None:
    output = demo(limit=40, message_tokens=2_000, observation_tokens=600)

    assert "● observation" in output
    assert "◆ reflection  generation 1" in output
    assert MessageRow.objects.count() == 40


@pytest.mark.django_db
def test_creates_the_admin_once_and_only_with_debug(demo: Demo) -> None:
    with pytest.raises(CommandError, match="DEBUG"):
        demo(create_admin=True, limit=2)
    assert not get_user_model().objects.exists()

    with override_settings(DEBUG=True):
        first = demo(create_admin=True, limit=2)
        second = demo(create_admin=True, limit=2)

    assert "Created the superuser admin with password admin" in first
    assert "nothing was changed" in second
    assert get_user_model().objects.get().is_superuser


@pytest.mark.django_db
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_without_utf8_is_enough(demo: Demo, tmp_path: Path, encoding: str) -> None:
    lines = native()
    lines[0]["parts"][0]["text"] = "Zoë 🔴 中文 \x1b[31m\x07 [bold]not markup[/bold] " + WORDS
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict")

    demo(file=jsonl(tmp_path / "chat.jsonl", lines), stdout=stream)

    stream.flush()
    output = raw.getvalue().decode(encoding)
    assert "o observation" in output
    assert "\x1b[31m" not in output


# Reading


def test_the_shipped_conversation_is_sound() -> None:
    conversation = read_conversation()

    times = [message.created_at for message in conversation.messages]
    assert len(conversation.messages) == 758
    assert len({message.client_id for message in conversation.messages}) == 758
    assert all(a < b for a, b in pairwise(times) if a and b)
    assert {message.role for message in conversation.messages} == {"user", "assistant", "tool"}


def test_ids_stay_when_messages_are_added(tmp_path: Path) -> None:
    short = read_conversation(jsonl(tmp_path / "a.jsonl", openai(4))).messages
    long = read_conversation(jsonl(tmp_path / "b.jsonl", openai(8))).messages

    assert [m.client_id for m in long[: len(short)]] == [m.client_id for m in short]


def test_a_list_and_a_byte_order_mark_and_other_line_ends(tmp_path: Path) -> None:
    as_list = tmp_path / "list.json"
    as_list.write_text(json.dumps(openai(4), indent=1), encoding="utf-8-sig")
    windows = tmp_path / "windows.jsonl"
    windows.write_bytes(b"\r\n".join(json.dumps(line).encode() for line in openai(4)))

    assert read_conversation(as_list).messages == read_conversation(windows).messages


def test_a_line_separator_inside_a_text_is_no_new_line(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    text = "one\N{LINE SEPARATOR}two"
    file.write_text(json.dumps({"role": "user", "content": text}, ensure_ascii=False) + "\n\n")

    assert read_conversation(file).messages[0].text == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "in.jsonl: is empty"),
        (b" \n\n", "is empty"),
        (b"\xff\xfe{", "is not UTF-8 text"),
        (b"hello\n", "line 1: not JSON: Expecting value"),
        (b'{"role": "user", "content": "a"}\n{"role": "user",\n', "line 2: not JSON"),
        (b'{\n "speaker_a": "A",\n "speaker_b"\n}', "line 4: not JSON"),
        (b'{"role": "user", "content": "a"}\n{"role": "king", "content": "b"}', "line 2: unknown"),
        (b'{"role": ["user"], "content": "a"}', "line 1: unknown role"),
        (b'{"role": "user"}', "line 1: a message needs 'parts', or 'content'"),
        (b'{"role": "user", "parts": "a"}', "line 1: 'parts' must be a list"),
        (b'{"role": "user", "parts": [{"type": "text"}]}', "line 1: a text part"),
        (b'{"role": "user", "content": 7}', "line 1: "),
        (b'{"role": "user", "content": "a", "created_at": "yesterday"}', "line 1: 'created_at'"),
        (b'{"role": "user", "content": "a", "created_at": 1e99}', "line 1: 'created_at'"),
        (b'{"role": "user", "content": "a", "id": ""}', "line 1: 'id' must be"),
        (b'{"role": "user", "content": "a", "id": "x"}\n' * 2, "line 2: the id 'x' is used twice"),
        (b'{"role": "user", "content": "a"}\n7\n', "line 2: a message must be a JSON object"),
        (b"[1]", "entry 1: a message must be a JSON object"),
        (b"[]", "has no messages"),
        (b'{"a": 1}', "neither messages nor a LoCoMo conversation"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(content)

    with pytest.raises(BadInput) as caught:
        read_conversation(file)

    assert message in str(caught.value)
    assert "in.jsonl" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speaker_b": "Ann"}, "it needs two names"),
        ({"session_2_date_time": "8 May"}, "session_2_date_time must be like '1:56 pm"),
        ({"session_2": "hello"}, "session_2: must be a list"),
        ({"session_2": [{"speaker": "Eve", "text": "a"}]}, "message 1: unknown speaker 'Eve'"),
        ({"session_2": [{"speaker": "Ann"}]}, "message 1: 'text' must be a string"),
        ({"session_2": [], "session_10": []}, "has no sessions with messages"),
    ],
)
def test_bad_locomo_files(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    file = tmp_path / "in.json"
    file.write_text(json.dumps({**locomo(), **change}), encoding="utf-8")

    with pytest.raises(BadInput) as caught:
        read_conversation(file)

    assert message in str(caught.value)
    assert "in.json" in str(caught.value)


@pytest.mark.django_db
def test_bad_input_is_an_error_of_the_command(demo: Demo, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="there is no such file"):
        demo(file=tmp_path / "missing.jsonl")
    with pytest.raises(CommandError, match="cannot be read"):
        demo(file=tmp_path)
    assert not Thread.objects.exists()


# Turns, plot, picture


def test_a_turn_is_what_the_user_says_and_all_that_answers_it() -> None:
    roles = ["assistant", "user", "user", "assistant", "tool", "assistant", "user"]
    messages = [Message(role=role, parts=(TextPart("a"),)) for role in roles]  # type: ignore[arg-type]

    found = [[message.role for message in turn] for turn in turns(messages)]

    assert found == [
        ["assistant"],
        ["user", "user", "assistant", "tool", "assistant"],
        ["user"],
    ]


def played(samples: list[Sample]) -> Played:
    happening = Happening("observation", 2, 2, 900, 90, (900, 10), (0, 90), 0, "text")
    return Played("t", 1_000, 500, samples=samples, happenings=[happening])


@pytest.mark.parametrize(
    "samples",
    [
        [Sample(1, 10, 0)],
        [Sample(n, n * 10 % 900, n) for n in range(1, 2_000)],
        [Sample(7, 0, 0), Sample(7, 5_000_000, 0), Sample(900_000_000, 0, 10)],
    ],
)
def test_plot_and_picture_fit_whatever_the_sizes(samples: list[Sample]) -> None:
    run = played(samples)

    lines = draw(run, 80)
    picture = ElementTree.fromstring(render(run, title="<a> & b", subtitle='"c"'))

    assert lines
    assert max(line.cell_len for line in lines) <= 80
    assert picture.tag.endswith("svg")
    assert "nan" not in ElementTree.tostring(picture, encoding="unicode")


def test_nothing_played_draws_nothing() -> None:
    assert draw(played([])) == []


def test_text_of_a_conversation_is_printed_as_text() -> None:
    out = io.StringIO()

    make_console(out).print(said("[red]a[/red]\x1b]0;title\x07\x00b\ud800"))

    assert out.getvalue().startswith("[red]a[/red]\N{REPLACEMENT CHARACTER}]0;title")
    assert "\x1b" not in out.getvalue()
