"""What a sentence is worth keeping: a sum of small reasons, each of them visible."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

from ..log import DONE, HIGH, LOW, MEDIUM
from . import words as w

_NUMBER = re.compile(r"\d")
_MONEY = re.compile(
    r"[$€£¥₹]\s?\d|\d\s?(?:[$€£¥]|usd|eur|dollars?|euros?|bucks|zł|元|k\b)", re.IGNORECASE
)
_IDENTIFIER = re.compile(
    r"https?://|\w@\w|`[^`]+`|\b\w+[._/-]\w*\d\w*\b|\b[A-Z]{2,}[-_]?\d+\b|(?<!\w)[~.]?/[\w.-]+/"
    r"|\w\(\)"
    r"|\b[a-z]+_[a-z_]+\b|\.(?:py|js|ts|md|txt|csv|json|yml|yaml|sql|pdf|html|toml)\b|#\d+"
)
_QUOTED = re.compile(r"[\"“«「『][^\"”»」』]{2,80}[\"”»」』]")
_ENTITY = re.compile(r"(?<=[a-z0-9,;:'’\"(“-] )[\"“(]?([A-Z][\w'’&.-]{1,30}|[A-Z]{2,10}\b)")
_NOT_ENTITY = {"i", "i'm", "i've", "i'd", "i'll", "ok", "okay", "omg", "lol", "wow", "hey", "btw"}
_REQUEST = re.compile(
    r"\b(?:can|could|would|will) you\b|\bhow (?:do|can|should|to)\b|\bplease\b|\bhelp me\b"
    r"|\bshould i\b"
    r"|\bcan i\b|\bwhat (?:is|are|should|would|does|do i)\b|\bwhich\b|\bhow (?:much|many|long)\b"
    r"|\b(?:show|give|tell|write|find|make|send|explain|fix|add|create|suggest|recommend) me\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"^(?:please|show|give|write|find|create|explain|fix|add|summari[sz]e|translate|draft|check"
    r"|remind|book|list|compare|change|update|remove|delete|implement|refactor|plan|help|suggest"
    r"|recommend|tell me|send|cancel|make sure|(?:can|could|would|will) you)\b",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(
    r"\b(?:how(?:'s| is| are| was| were| have| did)\b.{0,24}\b(?:you|it|your|things|everything"
    r"|life|going)"
    r"|what's (?:up|new)|what about you|and you|you too|see you|talk (?:to you )?(?:soon|later)"
    r"|take care|keep (?:it up|up the|me posted|going|in touch)|let me know|good luck|have (?:a"
    r"|fun)"
    r"|(?:great|good|nice|lovely) to (?:see|hear|catch|meet|talk)|(?:nice|great) (?:job|work|one)"
    r"|anything else|happy to help|glad (?:you|to|i could)|i'm here (?:for|if|to)|feel free"
    r"|you're welcome"
    r"|can't wait to (?:see|hear)|proud of you|means a lot|sounds (?:like|great|good|fun|amazing)"
    r"|thanks? (?:for|you|so)|no (?:problem|worries)|i hope (?:this|that|it|you)|of course!?$)",
)
_ASSISTANT_TALK = re.compile(
    r"^(?:here (?:is|are)|i can (?:help|also|assist)|i(?:'d| would) be (?:happy|glad)|let me\b"
    r"|sure\b"
    r"|certainly|i(?:'m| am) sorry|i apologi[sz]e|would you like|do you want me|i(?:'ll"
    r"| will) (?:help|do"
    r" my best|be (?:happy|glad))|it(?:'s| is) (?:important|always|great|good|worth)|remember to"
    r"|consider\b)",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"^(?:it|it's|that|that's|this|there|there's|these|those|they|they're)\b",
    re.IGNORECASE,
)
_DONE = "(?:" + "|".join(sorted(w.DONE_WORDS)) + ")"
_CONFIRMED = re.compile(
    r"\b(?:it|that|this)(?:'s| is)? (?:works?|worked|done|fixed|solved)\b|\b(?:all )?(?:done"
    r"|sorted)\b"
    r"|\bworks (?:now|again|perfectly)\b|\b(?:i|we|i've|we've|have|has|was|were|is|are|got|been) "
    rf"(?:\w+ly |just |already |finally |now )?{_DONE}\b(?! up\b| in\b| to\b)",
    re.IGNORECASE,
)
#: What leans on the sentence before it.
_LEANS = re.compile(
    r"^(?:he|she|they|it|that|this|these|those|his|her|their|him|them|not|both|neither|which|same"
    r"|one|ones|so that|the (?:first|second|third|other|others|latter|former|same|rest))\b",
    re.IGNORECASE,
)
#: How the assistant is to behave from now on.
_STANDING = re.compile(
    r"\b(?:please,? (?:don't|do not|never|always|no)|from now on|don't (?:call|ask|tell|use|say"
    r"|send|give|write|mention|remind|suggest)|never (?:call|use|say|send|write|mention|suggest)"
    r"|always (?:use|answer|reply|give|write|call|ask|include)|(?:call|address) me"
    r"|(?:short|brief|long|concise) answers?|no (?:emojis?|jargon|bullet))\b",
    re.IGNORECASE,
)
_IDENTITY = re.compile(
    r"\b(?i:i'm|i am|my name is|my name's|call me) [A-Z][a-z]{2,}|\b(?i:i live in"
    r"|i work (?:as|at|for)|i(?:'m| am) (?:an?\b(?! (?:bit|little|lot|huge|big|fan))|\d\d)"
    r"|my (?:husband|wife|partner|son|daughter|boss|team) (?:is|are)\b)"
)
_BRACKET = re.compile(r"^\[[^\]]{1,400}\]$")

#: What a day that is spoken of adds.
DATED = 1.2


@dataclass(frozen=True, slots=True)
class Judged:
    """A sentence with what was found in it."""

    score: float
    mark: str
    stems: tuple[str, ...]
    question: bool = False
    request: bool = False
    facts: frozenset[str] = frozenset()


class Judge:
    """Scores sentences against how often their words occur in all that is known."""

    def __init__(self, frequency: Counter[str]) -> None:
        self._frequency = frequency

    def rarity(self, stem: str) -> float:
        """Return 1 for a word that occurs once, less for every doubling."""
        return 1.0 / (1.0 + 0.35 * math.log2(1 + max(0, self._frequency[stem] - 1)))

    def judge(self, text: str, *, role: str, dated: bool = False, whole: str = "") -> Judged:
        """Score ``text``; ``whole`` is the sentence it was cut out of."""
        tokens = w.words(text)
        bag = set(tokens)
        stems = tuple(w.content(tokens))
        if not stems or not any(len(s) <= w.MAX_WORD_CHARS for s in stems):
            return Judged(0.0, LOW, stems)
        facts = frozenset(t for t in tokens if t[:1].isdigit() or t in w.NEGATION)
        question = text.rstrip("\"'”) ").endswith(("?", "？"))
        asks = bool(bag & w.ASKING) and _REQUEST.search(text) is not None
        request = role == "user" and (asks or is_order(text))
        if _BRACKET.match(text):
            return Judged(1.0 + 0.12 * min(8, len(stems)), LOW, stems, facts=facts)
        score = 0.45 * sum(sorted(map(self.rarity, stems), reverse=True)[:9])
        first = bool(bag & w.FIRST_PERSON) or "我" in text
        second = bool(bag & w.SECOND_PERSON)
        specifics = self._specifics(text)
        score += specifics
        score += _reasons(bag, first)
        score += DATED if dated else 0.0
        score -= 0.35 * min(4, len(bag & w.CHATTY))
        if _SMALL_TALK.search((whole or text).lower()):
            score -= 1.6
        if second and not request:
            score -= 0.7 if first else 1.6
        if question and not request:
            score -= 2.2
        elif question:
            # Requests of a user matter; the same words between two people are small talk.
            score += -0.8 if second and not specifics else 0.6
        if not first and _GENERAL.match(text):
            score -= 0.6
        if bag & w.HEALTH and first and not question:
            score += 3.5
        if role == "user" and is_standing(text):
            score += 5.0
        if role == "user" and _IDENTITY.search(text):
            score += 3.5
        if role == "assistant":
            score -= 0.2 if first and not second else 0.5
            if _ASSISTANT_TALK.match(text):
                score -= 1.6
        return Judged(
            score, _mark(text, bag, role, first, request, score), stems, question, request, facts
        )

    @staticmethod
    def _specifics(text: str) -> float:
        score = 0.0
        entities = {e.lower() for e in _ENTITY.findall(text)} - _NOT_ENTITY
        score += min(2.1, 0.75 * len(entities))
        if _NUMBER.search(text):
            score += min(1.6, 0.8 + 0.3 * (len(re.findall(r"\d+", text)) - 1))
            if _MONEY.search(text):
                score += 0.8
        if _IDENTIFIER.search(text):
            score += 1.0
        if _QUOTED.search(text):
            score += 1.0
        return score


def _reasons(bag: set[str], first: bool) -> float:
    score = 1.2 if first else 0.0
    if bag & w.DECISION:
        score += 0.9 if first else 0.3
    if bag & w.EVENT:
        score += 0.9 if first else 0.4
    score += min(1.2, 0.5 * len(bag & w.LIFE))
    if bag & w.VITAL:
        score += 1.5
    if bag & w.CHANGE:
        score += 0.4
    if bag & w.DEADLINE:
        score += 0.3
    if bag & w.NEGATION:
        score += 0.25
    if bag & w.MONTH_DAY_WORDS:
        score += 0.6
    return score


def _mark(text: str, bag: set[str], role: str, first: bool, request: bool, score: float) -> str:
    question = text.endswith("?")
    if not question and bag & w.DONE_WORDS and not bag & w.NEGATION and _is_done(text):
        return DONE
    if role == "user":
        return HIGH if first or request or score >= 3.0 else MEDIUM if score >= 1.5 else LOW
    # Of a person on the assistant's side; what an assistant offers to do is no news of the user.
    if first and bag & (w.DECISION | w.EVENT | w.LIFE) and not bag & w.MODAL and not question:
        return HIGH if score >= 3.0 else MEDIUM
    return MEDIUM if score >= 1.8 else LOW


def is_order(text: str) -> bool:
    """Tell whether a sentence asks for something to be done."""
    return _ORDER.match(text) is not None


def is_standing(text: str) -> bool:
    """Tell whether a sentence says how to behave from now on."""
    return _STANDING.search(text) is not None


def leans(text: str) -> bool:
    """Tell whether a sentence speaks of something that only the one before it names."""
    return _LEANS.match(text) is not None


def _is_done(text: str) -> bool:
    return _CONFIRMED.search(text) is not None
