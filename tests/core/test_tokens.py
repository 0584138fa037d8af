from __future__ import annotations

import base64
import gettext
import hashlib
import importlib.util
import inspect
import logging
import math
import random
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from om_django.core import tokens
from om_django.core.images import image_tokens
from om_django.core.messages import (
    DataPart,
    FilePart,
    ImagePart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from om_django.core.tokens import (
    CHUNK,
    EstimateCounter,
    TiktokenCounter,
    TokenCounter,
    TokenizerUnavailable,
    count_message,
    count_messages,
    count_part,
    default_counter,
    reset_default_counter,
    window_tokens,
)

try:
    ENCODING = tokens._load_encoding()
except TokenizerUnavailable:
    ENCODING = None

needs_encoding = pytest.mark.skipif(ENCODING is None, reason="no data of o200k_base here")


@pytest.fixture(params=["o200k_base", "estimate"])
def counter(request: pytest.FixtureRequest) -> TokenCounter:
    if request.param == "estimate":
        return EstimateCounter()
    if ENCODING is None:
        pytest.skip("no data of o200k_base here")
    return TiktokenCounter(ENCODING)


class Characters:
    """One token per character: arithmetic that can be done by hand."""

    name = "characters"

    def count(self, text: str) -> int:
        return len(text)


CHARACTERS = Characters()


# --- Text ---------------------------------------------------------------------------------------

EVERY_CUT = (
    "He said: don't—it’s 3pm; x1y2z3, foo_bar.baz(qux)[0]\r\n\r\n\tif a == b:  # 1,234.56\n"
    "你好，世界。今天天气很好！これは、テストです。 12月3日 Привет, мир! "
    "สวัสดี\u3000終 ½² \ufe0f🎉🎉 AbcDEF 'tis I'LL"
)


@needs_encoding
@pytest.mark.parametrize("seed", range(20))
def test_long_text_counts_exactly_as_tiktoken(seed: int) -> None:
    assert ENCODING is not None
    rng = random.Random(seed)
    words = EVERY_CUT.split(" ")
    text = "".join(rng.choice(words) + rng.choice(["", " ", "\n", "  "]) for _ in range(600))
    assert len(text) > 4 * CHUNK
    assert TiktokenCounter(ENCODING).count(text) == len(ENCODING.encode_ordinary(text))


@needs_encoding
@pytest.mark.parametrize("module", [inspect, gettext, base64, random, threading])
def test_source_code_counts_exactly_as_tiktoken(module: object) -> None:
    assert ENCODING is not None
    text = inspect.getsource(module)  # type: ignore[arg-type]
    assert TiktokenCounter(ENCODING).count(text) == len(ENCODING.encode_ordinary(text))


HOSTILE = {
    "letter": "a",
    "capital": "A",
    "han": "中",
    "space": " ",
    "no-break space": "\u00a0",
    "emoji": "🎉",
    "newline": "\n",
    "combining mark": "\u0301",
    "digit": "7",
    "dash": "-",
    "apostrophe": "'",
    "slash": "/",
    "NUL": "\0",
    "lone surrogate": "\ud800",
}


class SpyEncoder:
    name = "spy"

    def __init__(self) -> None:
        self.chunks: list[str] = []

    def encode_ordinary(self, text: str) -> list[int]:
        self.chunks.append(text)
        return [0] * len(text)


@pytest.mark.parametrize("run", HOSTILE.values(), ids=HOSTILE)
def test_encoder_gets_short_chunks_only(run: str) -> None:
    spy = SpyEncoder()
    assert TiktokenCounter(spy).count(run * 1_000_000) == 1_000_000
    assert max(map(len, spy.chunks)) <= CHUNK
    assert len(spy.chunks) <= 2 * 1_000_000 // CHUNK + 1


@given(st.text(max_size=40).map(lambda text: text * 200))
def test_chunks_lose_nothing(text: str) -> None:
    chunks = list(tokens._chunks(text))
    assert "".join(chunks) == text
    assert all(len(chunk) <= CHUNK for chunk in chunks)


@needs_encoding
@pytest.mark.parametrize("run", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_counts_nearly_as_tiktoken(run: str) -> None:
    assert ENCODING is not None
    text = run * 20_000
    real = len(ENCODING.encode_ordinary(text))
    assert abs(TiktokenCounter(ENCODING).count(text) - real) <= len(text) / 100


@pytest.mark.parametrize("run", HOSTILE.values(), ids=HOSTILE)
def test_a_megabyte_of_anything(run: str, counter: TokenCounter) -> None:
    assert counter.count(run * 1_000_000) > 1000


def test_a_megabyte_of_base64(counter: TokenCounter) -> None:
    text = base64.b64encode(random.Random(1).randbytes(750_000)).decode()
    assert counter.count(text) == pytest.approx(len(text) / 1.466, rel=0.2)


def test_empty_and_tiny(counter: TokenCounter) -> None:
    assert counter.count("") == 0
    for text in ("a", " ", "中", "\0", "\ud800", "🎉", "\r\n"):
        assert counter.count(text) >= 1


@needs_encoding
def test_special_tokens_are_plain_text() -> None:
    assert ENCODING is not None
    assert TiktokenCounter(ENCODING).count("<|endoftext|>") > 1


@given(st.text(st.characters(exclude_categories=())))
def test_estimate_of_any_text(text: str) -> None:
    assert EstimateCounter().count(text) >= bool(text)


@needs_encoding
@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=())))
def test_exact_count_of_any_text(text: str) -> None:
    assert ENCODING is not None
    assert TiktokenCounter(ENCODING).count(text) >= bool(text)


# --- Accuracy of the estimate -------------------------------------------------------------------

SAMPLES = {
    "chat": (
        "Hey Mel! Good to see you, how have you been? I went to a support group yesterday and it "
        "was so powerful. Wow, that's cool! What happened that was so awesome, did you hear any "
        "inspiring stories? We should plan the trip to Lisbon in May, flights are around $340. "
    ),
    "json": (
        '{"id": 4711, "status": "open", "customer": {"name": "Ada", "email": "ada@example.com"}, '
        '"items": [{"sku": "A-100", "qty": 2, "price": 19.99}], "created_at": "2025-03-04T10:00"}'
    ),
    "typescript": (
        "export async function load(id: string): Promise<User | null> {\n  const res = await "
        "fetch(`/api/users/${id}`);\n  if (!res.ok) return null;\n  return (await res.json()) as "
        "User;\n}\n\ninterface Props { items: Item[]; onSelect?: (item: Item) => void }\n"
    ),
    "chinese": (
        "开启后，智能体的上下文窗口不再无限膨胀：原始消息在后台被持续压缩成观测日志，日志太长时再被压缩成反思。"
        "我们昨天讨论了付款方式，他说下个月开始使用新的系统，所以需要先把数据库迁移好。"
    ),
}


@needs_encoding
@pytest.mark.parametrize("kind", SAMPLES)
def test_estimate_of_samples_is_near(kind: str) -> None:
    assert ENCODING is not None
    real = len(ENCODING.encode_ordinary(SAMPLES[kind]))
    assert EstimateCounter().count(SAMPLES[kind]) == pytest.approx(real, rel=0.12)


@needs_encoding
@pytest.mark.parametrize("module", [inspect, gettext, base64, random, threading, logging])
def test_estimate_of_python_is_near(module: object) -> None:
    assert ENCODING is not None
    text = inspect.getsource(module)  # type: ignore[arg-type]
    assert EstimateCounter().count(text) == pytest.approx(
        len(ENCODING.encode_ordinary(text)), rel=0.1
    )


LANGUAGES = "ja ko ru uk ar he hi th de fr es pl tr vi el fa bn ta ka"


def translation(language: str) -> str:
    spec = importlib.util.find_spec("django")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    locale = Path(spec.submodule_search_locations[0]) / "conf" / "locale"
    with (locale / language / "LC_MESSAGES" / "django.mo").open("rb") as file:
        catalog = vars(gettext.GNUTranslations(file))["_catalog"]
    return "\n".join(text for key, text in catalog.items() if key and len(text) > 30)


@needs_encoding
@pytest.mark.parametrize(
    ("language", "within"),
    [
        ("en", 0.1),
        # Catalogs are full of placeholders and markup: prose is nearer, see below.
        ("zh_Hans", 0.15),
        ("zh_Hant", 0.15),
        *((code, 0.25) for code in LANGUAGES.split()),
    ],
)
def test_estimate_of_languages_is_near(language: str, within: float) -> None:
    assert ENCODING is not None
    text = translation(language)
    if language == "en":
        text = inspect.getdoc(logging.Logger) or ""
        text += (inspect.getdoc(threading) or "") + (random.__doc__ or "") + (zlib.__doc__ or "")
    real = len(ENCODING.encode_ordinary(text))
    assert EstimateCounter().count(text) == pytest.approx(real, rel=within)


@needs_encoding
def test_estimate_of_chinese_prose_is_near() -> None:
    assert ENCODING is not None
    text = (
        "昨天下午我们讨论了新店的装修方案。她觉得墙面应该刷成米白色，因为早上的阳光会从东边的窗户照进来，"
        "深色会让房间显得太小。预算一共是六万两千英镑，其中烤箱要花九千多，剩下的留给地板、照明和第一个月的"
        "房租。我提醒她，保险必须在八月一日之前办好，否则不能开业。她答应下周三带女儿上完小提琴课以后再给"
        "供应商打电话，顺便问问面粉的价格有没有变化。另外，她的母亲十月会从拉各斯飞过来，住两个多星期，"
        "所以那段时间店里的排班要提前安排好。"
    )
    real = len(ENCODING.encode_ordinary(text))
    assert EstimateCounter().count(text) == pytest.approx(real, rel=0.1)


# --- Parts --------------------------------------------------------------------------------------

PIXELS = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x04\0\0\0\x04\0" + bytes(1_000_000)
).decode()  # 1024 x 1024, a megabyte
IMAGE = 85 + 4 * 170


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (TextPart("hello"), 5),
        (TextPart(""), 0),
        (ReasoningPart("a long thought"), 0),
        (DataPart("data-om-status", {"a": "b"}), 0),
        (OtherPart("step-start", {"a": "b"}), 0),
        (ToolCallPart("1", "search"), len("search{}")),
        (ToolCallPart("1", "search", {"q": "x"}), len('search{"q":"x"}')),
        (
            ToolCallPart("1", "search", {"q": "x"}, raw_args='{ "q": "x" }'),
            len('search{ "q": "x" }'),
        ),
        (ToolResultPart("1", "search", "found"), len("found")),
        (ToolResultPart("1", "search", {"a": 1}), len('{"a":1}')),
        (ToolResultPart("1", "search", [{"type": "text", "text": "hi"}]), 29),
        (ToolResultPart("1", "search", None), len("null")),
        (ImagePart(url="https://e.com/a.png", token_estimate=7), 7),
        (FilePart(url="https://e.com/a.pdf", token_estimate=7.4), 7),
        (FilePart(url="https://e.com/a.pdf", token_estimate=0), 0),
        (FilePart(url="https://e.com/a.pdf", size=8000, token_estimate=-1), 2000),
        (FilePart(url="https://e.com/a.pdf", size=8000, token_estimate=math.nan), 2000),
        (FilePart(url="https://e.com/a.pdf", size=8000, token_estimate=math.inf), 2000),
        (FilePart(url="https://e.com/a.pdf", token_estimate=1e300), tokens.MAX_PART_TOKENS),
        (FilePart(data=PIXELS, media_type="image/png"), IMAGE),
        (ImagePart(data=PIXELS), IMAGE),
    ],
)
def test_count_part(part: Part, expected: int) -> None:
    assert count_part(part, CHARACTERS) == expected


TEXT_ITEM = {"type": "text", "text": "Look:"}
IMAGE_ITEM = {"type": "image", "data": PIXELS, "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ([TEXT_ITEM, IMAGE_ITEM], 5 + IMAGE),
        ({"type": "content", "value": [TEXT_ITEM, IMAGE_ITEM]}, 5 + IMAGE),
        ({"content": [IMAGE_ITEM], "isError": False}, IMAGE + len('{"isError":false}')),
        (["Look:", IMAGE_ITEM, {"a": 1}], 5 + IMAGE + len('{"a":1}')),
        ([{**IMAGE_ITEM, "token_estimate": 9}], 9),
        ([{"type": "input_audio", "input_audio": {"data": "A" * 4000}}], 750),
        (
            [{"type": "file", "url": "https://e.com/a.csv", "mediaType": "text/csv"}],
            len('{"type":"file","mimeType":"text/csv","filename":"a.csv"}'),
        ),
        ("data:image/png;base64," + PIXELS, IMAGE),
        ({"screenshot": "data:image/png;base64," + PIXELS}, IMAGE + len('{"screenshot":""}')),
        ({"encryptedContent": "x" * 257}, len('{"encryptedContent":"[encrypted]"}')),
        ({"encryptedContent": "x" * 256}, len('{"encryptedContent":""}') + 256),
        ([{"encrypted_content": "x" * 9999}], len('[{"encrypted_content":"[encrypted]"}]')),
        ('{"encryptedContent": "%s"}' % ("x" * 9999), len('{"encryptedContent": "[encrypted]"}')),
        ({"data": PIXELS[:4000]}, len('{"data":""}') + 4000),
    ],
)
def test_tool_results(result: object, expected: int) -> None:
    part = ToolResultPart("1", "shot", result)  # type: ignore[arg-type]
    assert count_part(part, CHARACTERS) == expected


def test_data_uris_count_as_images_wherever_they_stand() -> None:
    uri = "data:image/png;base64," + PIXELS
    assert count_part(TextPart(uri), CHARACTERS) == IMAGE
    assert count_part(TextPart(f"see ![]({uri}) and {uri}"), CHARACTERS) == 2 * IMAGE + 14
    assert count_part(ToolCallPart("1", "t", {"image": uri}), CHARACTERS) == IMAGE + len(
        't{"image":""}'
    )
    assert count_part(TextPart(uri), CHARACTERS, provider="google", model="gemini-3") == 1120


def test_other_base64_is_text() -> None:
    short = "data:image/png;base64," + PIXELS[:900]
    pdf = "data:application/pdf;base64," + PIXELS[:4000]
    for text in (PIXELS[:4000], short, pdf):
        assert count_part(TextPart(text), CHARACTERS) == len(text)


def test_provider_and_model_reach_the_formulas(counter: TokenCounter) -> None:
    part = ImagePart(data=PIXELS)
    for provider, model in (("google", "gemini-2.5-pro"), ("anthropic", ""), ("", "gpt-5")):
        expected = image_tokens(part, provider, model)
        assert count_part(part, counter, provider=provider, model=model) == expected
        result = ToolResultPart("1", "t", [IMAGE_ITEM])
        assert count_part(result, counter, provider=provider, model=model) == expected
        message = count_message(
            Message(role="user", parts=(part,)), counter, provider=provider, model=model
        )
        assert message.part_tokens == (expected,)


def test_tool_heavy_chat_counts(counter: TokenCounter) -> None:
    result = "The order 4711 was shipped on Monday with two items. " * 25
    messages = [
        message
        for n in range(40)
        for message in (
            Message(role="assistant", parts=(ToolCallPart(str(n), "find_order", {"id": n}),)),
            Message(role="tool", parts=(ToolResultPart(str(n), "find_order", result),)),
        )
    ]
    assert count_messages(messages, counter) > 40 * 250


def test_small_calls_never_count_negative(counter: TokenCounter) -> None:
    assert count_part(ToolCallPart("1", "search", {"q": "x"}), counter) >= 4


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
items = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "media", "file", "resource"])},
    optional=dict.fromkeys(
        ("text", "data", "url", "image", "mediaType", "token_estimate"), json_values
    ),
)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, st.text()),
    st.builds(ReasoningPart, st.text()),
    st.builds(ToolCallPart, st.just("1"), st.text(), json_values, st.none() | st.text()),
    st.builds(ToolResultPart, st.just("1"), st.text(), json_values | st.lists(items)),
    st.builds(DataPart, st.just("data-x"), json_values),
    st.builds(ImagePart, data=st.text(), token_estimate=st.none() | st.floats()),
    st.builds(FilePart, url=st.text(), token_estimate=st.none() | st.integers()),
)


@given(st.lists(parts, max_size=5))
def test_counting_never_raises_and_is_never_negative(some: list[Part]) -> None:
    estimate = EstimateCounter()
    message = count_message(Message(role="assistant", parts=tuple(some)), estimate)
    assert message.part_tokens is not None
    assert len(message.part_tokens) == len(some)
    assert all(0 <= n <= tokens.MAX_PART_TOKENS for n in message.part_tokens)
    assert message.tokens == estimate.count("assistant") + sum(message.part_tokens)


# --- Messages -----------------------------------------------------------------------------------


def test_count_message_keeps_everything_else() -> None:
    message = Message(
        role="user", id="m1", parts=(TextPart("abc"), ReasoningPart("x")), metadata={"a": 1}
    )
    counted = count_message(message, CHARACTERS)
    assert (counted.tokens, counted.part_tokens) == (len("user") + 3, (3, 0))
    assert (counted.id, counted.parts, counted.metadata) == ("m1", message.parts, {"a": 1})
    assert message.tokens is None


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([], 0), ([0], 24 + 4), ([10], 24 + 14), ([10, 20, 0], 24 + 14 + 24 + 4)],
)
def test_window_tokens(counts: list[int], expected: int) -> None:
    assert window_tokens(counts) == expected
    assert window_tokens(iter(counts)) == expected


def test_count_messages_counts_only_what_is_not_counted() -> None:
    fresh = Message(role="user", parts=(TextPart("abc"),))
    known = Message(role="user", parts=(TextPart("abc"),), tokens=0)
    assert count_messages([], CHARACTERS) == 0
    assert count_messages([fresh, known], CHARACTERS) == 24 + (7 + 4) + (0 + 4)


# --- The default counter ------------------------------------------------------------------------


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def fresh_default(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OM_DJANGO_TOKENIZER", raising=False)
    reset_default_counter()
    yield
    reset_default_counter()


def nothing(url: str, expected_hash: str) -> bytes | None:
    return None


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for source in ("_cached", "_packaged", "_downloaded"):
        monkeypatch.setattr(tokens, source, nothing)


def test_forced_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OM_DJANGO_TOKENIZER", "estimate")
    assert default_counter().name == "estimate-1"


@needs_encoding
def test_forced_o200k(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OM_DJANGO_TOKENIZER", "o200k_base")
    assert default_counter().name == "o200k_base"
    assert default_counter() is default_counter()


@pytest.mark.usefixtures("offline")
def test_forced_o200k_without_data_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OM_DJANGO_TOKENIZER", "o200k_base")
    with pytest.raises(TokenizerUnavailable, match=r"om-django\[offline\]"):
        default_counter()


def test_unknown_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OM_DJANGO_TOKENIZER", "cl100k")
    with pytest.raises(ValueError, match="OM_DJANGO_TOKENIZER"):
        default_counter()


@pytest.mark.usefixtures("offline")
def test_fallback_warns_once_and_tries_again_later(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempts: list[str] = []

    def count_attempt(url: str, expected_hash: str) -> bytes | None:
        attempts.append(url)
        return None

    monkeypatch.setattr(tokens, "_downloaded", count_attempt)
    caplog.set_level(logging.WARNING, logger="om_django")
    for _ in range(3):
        assert default_counter(clock=clock).name == "estimate-1"
    assert len(attempts) == 1
    clock.now += 599
    default_counter(clock=clock)
    assert len(attempts) == 1
    clock.now += 1
    assert default_counter(clock=clock).name == "estimate-1"
    assert len(attempts) == 2
    default_counter(clock=clock)
    assert len(attempts) == 2
    messages = [record.getMessage() for record in caplog.records if record.name == "om_django"]
    assert len(messages) == 1
    assert "om-django[offline]" in messages[0]
    assert "TIKTOKEN_CACHE_DIR" in messages[0]


@needs_encoding
def test_later_attempt_can_succeed(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        for source in ("_cached", "_packaged", "_downloaded"):
            patch.setattr(tokens, source, nothing)
        assert default_counter(clock=clock).name == "estimate-1"
    assert default_counter(clock=clock).name == "estimate-1"
    clock.now += 600
    assert default_counter(clock=clock).name == "o200k_base"


def test_built_once_by_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    loading = threading.Event()

    def slow() -> SpyEncoder:
        built.append(1)
        loading.wait(0.1)
        return SpyEncoder()

    monkeypatch.setattr(tokens, "_load_encoding", slow)
    found: list[TokenCounter] = []
    threads = [threading.Thread(target=lambda: found.append(default_counter())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert len(set(map(id, found))) == 1
    assert len(found) == 8


def test_who_has_an_estimate_does_not_wait_for_another_thread(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, finish = threading.Event(), threading.Event()

    def fail() -> SpyEncoder:
        raise TokenizerUnavailable("no data.")

    def hang() -> SpyEncoder:
        started.set()
        finish.wait(10)
        return SpyEncoder()

    monkeypatch.setattr(tokens, "_load_encoding", fail)
    default_counter(clock=clock)
    clock.now += 600
    monkeypatch.setattr(tokens, "_load_encoding", hang)
    thread = threading.Thread(target=default_counter, kwargs={"clock": clock})
    thread.start()
    assert started.wait(10)
    assert default_counter(clock=clock).name == "estimate-1"
    finish.set()
    thread.join()
    assert default_counter(clock=clock).name == "spy"


def small_file() -> bytes:
    return b"\n".join(base64.b64encode(bytes([n])) + b" %d" % n for n in range(256)) + b"\n"


URL = "https://example.com/encodings/o200k_base.tiktoken"


def test_tiktokens_cache_is_read_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_file()
    name = hashlib.sha1(URL.encode()).hexdigest()
    (tmp_path / name).write_bytes(data)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tokens, "_packaged", nothing)
    monkeypatch.setattr(tokens, "_downloaded", nothing)
    ranks = tokens._load_ranks(URL, hashlib.sha256(data).hexdigest())
    assert ranks[b"a"] == 97
    assert len(ranks) == 256
    (tmp_path / name).write_bytes(data + b"damaged")
    with pytest.raises(TokenizerUnavailable):
        tokens._load_ranks(URL, hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", None])
def test_cache_directory_as_tiktoken_finds_it(
    variable: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    directory = tmp_path
    if variable is not None:
        monkeypatch.setenv(variable, str(tmp_path))
    else:
        monkeypatch.setattr(tokens.tempfile, "gettempdir", lambda: str(tmp_path))
        directory = tmp_path / "data-gym-cache"
        directory.mkdir()
    (directory / hashlib.sha1(URL.encode()).hexdigest()).write_bytes(b"x")
    assert tokens._cached(URL, "") == b"x"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert tokens._cached(URL, "") is None


def test_packaged_file_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens.importlib.util, "find_spec", lambda name: None)
    assert tokens._packaged(URL, "") is None


def test_download_that_hangs_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken.load

    finish = threading.Event()
    calls: list[str] = []

    def hang(url: str, expected_hash: str) -> bytes:
        calls.append(url)
        finish.wait(10)
        return b"late"

    monkeypatch.setattr(tiktoken.load, "read_file_cached", hang)
    monkeypatch.setattr(tokens, "DOWNLOAD_TIMEOUT", 0.01)
    assert tokens._downloaded(URL, "") is None
    assert tokens._downloaded(URL, "") is None
    assert calls == [URL]
    thread = tokens._downloads[0]
    assert thread.daemon
    finish.set()
    thread.join()
    monkeypatch.setattr(tokens, "DOWNLOAD_TIMEOUT", 10)
    assert tokens._downloaded(URL, "") == b"late"


def test_download_that_fails_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken.load

    def fail(url: str, expected_hash: str) -> bytes:
        raise ConnectionError("no internet")

    monkeypatch.setattr(tiktoken.load, "read_file_cached", fail)
    assert tokens._downloaded(URL, "") is None
