"""Sentences: splitting a text, cutting a sentence down to its core, hiding secrets.

Every pattern here runs on at most :data:`MAX_SENTENCE_CHARS` characters, whatever the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .markdown import plain
from .words import CJK

MAX_SENTENCE_CHARS = 600
MAX_SENTENCES = 1_500
MAX_CORE_CHARS = 240
MAX_TAG_CHARS = 40
MAX_TEXT_CHARS = 2_000_000

_END = re.compile(
    r"[.!?…]+[\"'”’)\]]{0,3}(?=\s|$)|[。！？｡]+[」』”]{0,2}|[\r\n\v\f\x85\u2028\u2029]+"
)
_ABBREVIATIONS = re.compile(
    r"(?:mr|mrs|ms|dr|prof|st|sr|jr|vs|etc|e\.g|i\.e|no|approx|dept|fig|inc|ltd|z\.b|bzw|ca|nr)"
)
_REMINDER_OPEN, _REMINDER_CLOSE = "<system-reminder", "</system-reminder>"

_LEAD = re.compile(
    r"^(?:"
    r"(?:wow|oh|ooh|aww?|ah|hey|hi|hello|yeah|yes|yep|yup|yay|sure|ok|okay|well|haha|hah|lol|omg"
    r"|gosh"
    r"|hmm+|um+|uh|absolutely|definitely|totally|exactly|of course|no problem|no worries|right|true"
    r"|thanks(?: (?:so much|a lot|again|for asking|for your [\w ]{1,20}))?|thank you(?: so much)?"
    r"|great|good|nice|cool|awesome|amazing|sounds good|that's great|that's awesome|nah|no|nope"
    r"|dear|sorry|please|good (?:morning|evening|afternoon)|not much|same here|me too)"
    r"(?:,? [A-Z][\w'-]{1,20})?(?:[,!.…:;\u2014-]+\s*|$)"
    r"|(?:so|and|but|also|plus|anyway|actually|honestly|basically|btw|by the way|just|well|oh|hey"
    r"|yeah|luckily|fortunately|thankfully|to be honest|fyi|on another note|speaking of which"
    r"|you know|i mean|i think|i guess|i believe"
    r"|i feel like|in fact|as you know|like i said|and then|then|since we last (?:chatted|spoke"
    r"|talked)"
    r")(?:,\s*|\s+(?!far\b|that\b|many\b|much\b|as\b|if\b|in case\b))"
    r")",
    re.IGNORECASE,
)
_TRAIL = re.compile(
    r"(?:[,\s]+(?:you know|right|isn't it|don't you think|i think|i guess|lol|haha+|too|as well"
    r"|though"
    r"|actually|honestly|by the way|btw|please|thanks|thank you|so much|for sure|of course|etc"
    r"|and stuff|or something|if that makes sense)|[,\s]*[:;]-?[)D(P]"
    r"|\s*[\U0001F300-\U0001FAFF❤️☺]+"
    r")\s*$",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"\s[-–—]+\s|\s?[—]\s?|;\s|,\s(?=(?:and|but|so|which|because|though|although|while|where)\s)"
    r"|\s(?=(?:because|although|so that|which is|which was|and (?:i|it|we|he|she|they|i'm|it's)"
    r"|but (?:i|it|we|he|she|they|i'm|it's)|so (?:i|we|it's|i'm))\s)|，|；",
    re.IGNORECASE,
)
_VOCATIVE_FIND = re.compile(
    r"\b(?:hey|hi|hello|thanks|thank you|wow|yeah|yep|totally|absolutely|congrats|bye|agree|great"
    r"|cool|awesome|sounds great|dear|night|same here|good luck)[,!]? "
    r"(?P<name>[A-Z][a-z]{1,20})(?=[,!.?\s]|$)"
)
_PLAIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?(?=[\s,])")
_SECRETS = (
    re.compile(
        r"(?i)(\b(?:password|passwort|passcode|passphrase|api[ _-]?key|secret(?:[ _-]?key)?"
        r"|access[ _-]?token|auth[ _-]?token|token|pin(?: code)?)\b[\"']?(?:\s*[:=]\s*|\s+is:?\s+))"
        r"[\"']?(?!(?:the|a|an|not|my|your|wrong|invalid|expired|correct|required|missing)\b)"
        r"[^\s\"',;]{3,200}"
    ),
    re.compile(r"()\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|AIza)[-_]?[A-Za-z0-9_-]{14,200}"),
    re.compile(r"()(?<![\w.-])(?:\d[ -]?){13,19}(?![\w-])"),
    re.compile(r"(?i)(\bbearer )[A-Za-z0-9._-]{16,400}"),
)


def hide_secrets(text: str) -> str:
    """Return ``text`` with the values of passwords, keys and card numbers left out."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1[hidden]", text)
    return text


def without_reminders(text: str) -> str:
    """Drop internal reminders, in one pass whatever stands between unbalanced tags."""
    if _REMINDER_OPEN not in text:
        return text
    out: list[str] = []
    position = 0
    while (start := text.find(_REMINDER_OPEN, position)) >= 0:
        end = text.find(_REMINDER_CLOSE, start)
        if end < 0:
            break
        out.append(text[position:start])
        position = end + len(_REMINDER_CLOSE)
    out.append(text[position:])
    return " ".join(out)


def split(text: str) -> list[str]:
    """Return the sentences of a text without markdown, bounded in number and length."""
    sentences = list(_pieces(plain(text[:MAX_TEXT_CHARS])))
    if len(sentences) <= MAX_SENTENCES:
        return sentences
    # The two ends of a long document say most; of the middle an even sample is read.
    edge = MAX_SENTENCES // 3
    middle = sentences[edge:-edge]
    step = len(middle) // edge + 1
    return [*sentences[:edge], *middle[::step], *sentences[-edge:]]


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(text):
        piece = text[start : match.end()]
        if match.group()[0] == "." and _is_abbreviation(piece):
            continue
        yield from _bounded(piece)
        start = match.end()
    yield from _bounded(text[start:])


def _is_abbreviation(piece: str) -> bool:
    last = piece[-12:].rstrip(".").rpartition(" ")[2].lower()
    return _ABBREVIATIONS.fullmatch(last) is not None or (
        last.isdigit() and len(piece.strip()) <= 4
    )


def _bounded(piece: str) -> Iterator[str]:
    """Yield a piece with single spaces, in chunks where it is longer than a sentence may be."""
    piece = " ".join(piece.split())
    while len(piece) > MAX_SENTENCE_CHARS:
        cut = piece.rfind(" ", MAX_SENTENCE_CHARS // 2, MAX_SENTENCE_CHARS)
        cut = cut if cut > 0 else MAX_SENTENCE_CHARS
        yield piece[:cut]
        piece = piece[cut:].lstrip()
    if piece:
        yield piece


def names_called(sentences: list[str]) -> frozenset[str]:
    """Return the names people are addressed by: they are not what is spoken of."""
    return frozenset(
        match["name"].lower() for text in sentences for match in _VOCATIVE_FIND.finditer(text)
    )


def core(text: str, names: frozenset[str] = frozenset()) -> str:
    """Return a sentence without openers, vocatives, tags and its full stop."""
    text = text.strip()
    text = text.lstrip("*#>•-–— \t") if text[:1] in "*#>•-–—" else text
    upper = text[:1].isupper()
    for _ in range(6):
        opener = _LEAD.match(text)
        shorter = text[opener.end() :] if opener else text
        head, comma, tail = shorter.partition(",")
        if comma and head.lower() in names:
            shorter = tail.lstrip()
        if shorter == text:
            break
        text = shorter
    if upper:
        text = capital(text)
    text = text.rstrip(" \t.!…。！~")
    for _ in range(4):
        # Only the end is searched: the pattern would be tried at every letter of the sentence.
        tag = _TRAIL.search(text, max(0, len(text) - MAX_TAG_CHARS))
        shorter = (text[: tag.start()] if tag else text).rstrip(" \t.!…。！,~")
        head, comma, tail = shorter.rstrip("?").rpartition(",")
        if comma and tail.strip().lower() in names:
            shorter = head + ("?" if shorter.endswith("?") else "")
        if shorter == text:
            break
        text = shorter
    return text


def capital(text: str) -> str:
    """Begin a text that was cut with a capital, unless with a name as written or code."""
    return text[0].upper() + text[1:] if _PLAIN_WORD.match(text) else text


def clauses(text: str) -> list[tuple[int, int]]:
    """Return the clauses of a sentence as spans."""
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _BREAK.finditer(text):
        if match.start() - start >= 8:
            spans.append((start, match.start()))
            start = match.end()
    spans.append((start, len(text)))
    return [span for span in spans if text[span[0] : span[1]].strip()]


def clip(text: str, limit: int = MAX_CORE_CHARS) -> str:
    """Cut a text at a word, with a mark."""
    if CJK.search(text):
        limit //= 2
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", limit // 2, limit)
    return text[: cut if cut > 0 else limit].rstrip(" ,;:") + "…"
