"""The inline sections: the task at hand, a hint for the reply, a title."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from .. import prompts
from ..log import escape_tags
from ..messages import Message
from ..observer import ObserverInput
from . import sentences
from . import words as w
from .score import is_order, is_standing

TASK, HINT, TITLE = (
    prompts.CURRENT_TASK[0],
    prompts.SUGGESTED_RESPONSE[0],
    prompts.THREAD_TITLE[0],
)
#: A title names subjects that came up more than once.
TITLE_WORDS = 4
#: So many of the user's messages are searched for what is wanted now.
RECENT = 4
# A name inside of a sentence, or what an article or a pronoun stands in front of.
_SUBJECT = re.compile(
    r"(?:(?<=[^\W\d_] )|(?<=, ))(?P<name>[A-Z][\w'’-]{2,20}(?: [A-Z][\w'’-]{2,20})?)\b"
    r"|\b(?i:the|a|an|my|our|your|his|her|their|this|that|new) (?P<noun>[^\W\d_]{3,20})\b"
)
NO_SUBJECT = w.STOP | w.CHATTY | w.NO_TITLE | w.NUMBERS_AND_UNITS
_GOAL = re.compile(
    r"\b(?:can|could|would|will) you\b|\bhow (?:do|can|should) (?:i|we)\b|\bplease\b|\bhelp me\b"
    r"|\bi(?:'m| am)? (?:need|want|trying|would like|'d like|have) to\b|\bi'd like\b|\bi want\b"
    r"|\bi need\b"
    r"|\blet's\b|\bwe (?:need|should|must|have to)\b|\bshould (?:i|we)\b",
    re.IGNORECASE,
)


def answer(body: str, values: Mapping[str, str]) -> str:
    """Return an answer in the form the prompts demand."""
    blocks = [f"<observations>\n{body}\n</observations>"]
    blocks += [
        f"<{slug}>\n{escape_tags(value)}\n</{slug}>" for slug, value in values.items() if value
    ]
    return "\n".join(blocks)


def of_conversation(task: ObserverInput) -> dict[str, str]:
    """Return the sections asked for, those of them that can be told."""
    values: dict[str, str] = {}
    if not any(slug in task.sections for slug in (TASK, HINT, TITLE)):
        return values
    spoken = [m for m in task.messages if m.role in ("user", "assistant") and m.text.strip()]
    if TASK in task.sections:
        values[TASK] = _goal(spoken) or task.prior.get(TASK, "")
    if HINT in task.sections:
        values[HINT] = _hint(spoken)
    if TITLE in task.sections:
        values[TITLE] = _title(spoken, task.prior.get(TITLE, ""))
    return values


def of_log(asked: Mapping[str, str], prior: Mapping[str, str]) -> dict[str, str]:
    """A log tells nothing new of the task or the title: the present values stay."""
    return {s: prior[s] for s in (TASK, HINT, TITLE) if s in asked and prior.get(s)}


def _said(message: Message) -> list[str]:
    text = sentences.without_reminders(message.text[:20_000])
    cores = (sentences.core(s) for s in sentences.split(text))
    return [c for c in cores if w.content(w.words(c))]


def _is_goal(text: str) -> bool:
    return is_order(text) or _GOAL.search(text) is not None


def _short(text: str) -> str:
    return sentences.clip(sentences.hide_secrets(text), 200)


def _goal(spoken: list[Message]) -> str:
    """Return the newest request of the user; failing that, the newest wish."""
    users = [m for m in spoken if m.role == "user"][-RECENT:]
    said = [s for message in reversed(users) for s in reversed(_said(message))]
    goals = [s for s in said if _is_goal(s) and not is_standing(s)]
    goals = [s for s in goals if len(w.content(w.words(s))) > 2]
    requests = [s for s in goals if is_order(s) or s.endswith(("?", "？"))]
    if requests:
        return f"User asked: {_short(requests[0])}"
    return f"User: {_short(goals[0])}" if goals else ""


def _hint(spoken: list[Message]) -> str:
    if not spoken:
        return ""
    last = spoken[-1]
    said = _said(last)
    asked = [s for s in said if s.endswith(("?", "？"))]
    if last.role == "user":
        goals = asked or [s for s in said if _is_goal(s)]
        return f"{'Answer' if asked else 'Take up'}: {_short(goals[-1])}" if goals else ""
    return f"Wait for the user's answer to: {_short(asked[-1])}" if asked else ""


def _title(spoken: list[Message], prior: str) -> str:
    """Return the subjects that came up most, as a list: a phrase would need understanding."""
    counts: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for message in spoken:
        weight = 2 if message.role == "user" else 1
        seen: set[str] = set()
        for text in _said(message)[:50]:
            for match in _SUBJECT.finditer(text):
                subject = match["name"] or match["noun"]
                words = [word.lower() for word in subject.split()]
                if any(word in NO_SUBJECT or w.CJK.search(word) for word in words):
                    continue
                key = " ".join(map(w.stem, words))
                shown.setdefault(key, subject[:1].upper() + subject[1:])
                seen.add(key)
        counts.update(dict.fromkeys(seen, weight))
    current = {word for key in counts for word in key.split()}
    kept = [w.stem(word) in current for word in w.words(prior)]
    if kept and 2 * sum(kept) >= len(kept):
        return prior
    top: list[str] = []
    size = 0
    for key, number in counts.most_common(20):
        part_of_other = any(set(key.split()) & set(other.split()) for other in top)
        if number > 2 and not part_of_other and size + len(key.split()) <= TITLE_WORDS:
            top.append(key)
            size += len(key.split())
    return ", ".join(shown[key] for key in top) if size > 1 else prior
