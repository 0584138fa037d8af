"""How much of what LoCoMo asks about survives in the context, with the rule-based model.

No language model answers anything here: the benchmark looks whether the evidence of a question is
still in the window or quoted by a kept line. Run it as ``python benchmarks/locomo_coverage.py``.
Files 26 and 41 were looked at while the rules were written, the others were not.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from om_django.core.answers import Verdict  # noqa: E402
from om_django.core.dates import format_day, parse_day  # noqa: E402
from om_django.core.extractive import words as w  # noqa: E402
from om_django.core.log import join_texts, parse_lines  # noqa: E402
from om_django.core.messages import Message, TextPart  # noqa: E402
from om_django.core.observer import (  # noqa: E402
    ObserverInput,
    build_observer_prompt,
    parse_observer_answer,
)
from om_django.core.reflector import (  # noqa: E402
    Attempt,
    ReflectorInput,
    best,
    build_reflector_prompt,
    good,
    levels,
    parse_reflector_answer,
)
from om_django.core.tokens import default_counter  # noqa: E402
from om_django.llm.base import ModelRequest  # noqa: E402
from om_django.llm.offline import ExtractiveModel  # noqa: E402

BUDGETS = ((1500, 1000), (3000, 2000), (6000, 4000))
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
TUNED_ON = ("26", "41")
MIN_SHARE = 0.6
_SESSION_TIME = re.compile(r"(\d+):(\d+) ([ap]m) on (\d+) (\w+), (\d+)")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass
class Context:
    """What an actor would see, and what it cost to get there."""

    log: str = ""
    window: list[Message] = field(default_factory=list)
    observed_tokens: int = 0
    noted_tokens: int = 0
    observations: int = 0
    reflections: int = 0
    reflector_calls: int = 0
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return "\n".join([self.log, *(message.text for message in self.window)])


def load(path: Path, count: Callable[[str], int]) -> tuple[list[Message], list[dict[str, Any]]]:
    """Return a conversation as messages (speaker A is the user) and its questions."""
    data = json.loads(path.read_text(encoding="utf-8"))
    messages: list[Message] = []
    number = 1
    while f"session_{number}_date_time" in data:
        start = session_time(data[f"session_{number}_date_time"])
        for minute, turn in enumerate(data.get(f"session_{number}") or []):
            text = turn["text"]
            if turn.get("blip_caption"):
                text = f"{text}\n[image: {turn['blip_caption']}]"
            messages.append(
                Message(
                    role="user" if turn["speaker"] == data["speaker_a"] else "assistant",
                    parts=(TextPart(text),),
                    id=turn["dia_id"],
                    position=len(messages) + 1,
                    created_at=start + timedelta(minutes=minute),
                    tokens=count(text),
                )
            )
        number += 1
    return messages, data["qa"]


def session_time(text: str) -> datetime:
    match = _SESSION_TIME.search(text)
    if match is None:
        raise ValueError(f"not a session time: {text!r}")
    hour, minute, half, day, month, year = match.groups()
    found = parse_day(f"{day} {month} {year}")
    assert found is not None
    clock = int(hour) % 12 + (12 if half == "pm" else 0)
    return datetime(found.year, found.month, found.day, clock, int(minute), tzinfo=UTC)


def simulate(
    messages: Sequence[Message], most: int, reflect_at: int, count: Callable[[str], int]
) -> Context:
    """Run the observe/reflect cycle over a conversation, through the real prompts and parsers."""
    model, context = ExtractiveModel(count=count), Context()
    began = time.perf_counter()
    size = 0
    for message in messages:
        context.window.append(message)
        size += message.tokens or 0
        if size >= most:
            _observe(model, context, size, count)
            size = 0
            if count(context.log) >= reflect_at:
                _reflect(model, context, reflect_at, count)
    context.seconds = time.perf_counter() - began
    return context


def _observe(
    model: ExtractiveModel, context: Context, size: int, count: Callable[[str], int]
) -> None:
    task = ObserverInput(messages=tuple(context.window), previous=context.log)
    prompt = build_observer_prompt(task, count)
    answer = parse_observer_answer(
        model.generate(
            ModelRequest(purpose="observe", system=prompt.system, prompt=prompt.prompt, task=task)
        ).text,
        task,
    )
    assert answer.verdict.sound, answer.detail
    context.log = join_texts([context.log, answer.observations])
    context.observations += 1
    context.observed_tokens += size
    context.noted_tokens += count(answer.observations)
    context.window = []


def _reflect(
    model: ExtractiveModel, context: Context, target: int, count: Callable[[str], int]
) -> None:
    size = count(context.log)
    attempts: list[Attempt] = []
    for level in levels(1):
        task = ReflectorInput(log=context.log, log_tokens=size, target_tokens=target, level=level)
        prompt = build_reflector_prompt(task)
        request = ModelRequest(
            purpose="reflect", system=prompt.system, prompt=prompt.prompt, task=task
        )
        answer = parse_reflector_answer(model.generate(request).text, task)
        assert answer.verdict is Verdict.OK, answer.detail
        context.reflector_calls += 1
        attempts.append(Attempt(level, answer, count(answer.observations)))
        if good(attempts[-1], target):
            break
    kept = best(attempts, size)
    if kept is not None:
        context.log = kept.answer.observations
        context.reflections += 1


def last_messages(messages: Sequence[Message], tokens: int) -> list[Message]:
    """Return the baseline: the newest messages of as many tokens as our context has."""
    kept: list[Message] = []
    for message in reversed(messages):
        tokens -= message.tokens or 0
        if tokens < 0:
            break
        kept.append(message)
    return kept[::-1]


def covered(messages: Sequence[Message], context: Context) -> set[str]:
    """Return the ids of the messages that are in the window or quoted by a line of their day."""
    found = {message.id for message in context.window}
    by_day: dict[date | None, list[set[str]]] = defaultdict(list)
    for line in parse_lines(context.log):
        text = re.sub(r"\((?:meaning|estimated) [^)]*\)$", "", line.text)
        text = re.sub(r"^(?:User asked|User|Assistant): ", "", text)
        # The model joins statements with semicolons: each of them is judged on its own.
        for part in text.split("; "):
            part = re.sub(r"^\(\d\d:\d\d\) ", "", part)
            stems = set(w.content(w.words(part)))
            if stems:
                by_day[line.day].append(stems)
    for message in messages:
        if message.id in found or message.created_at is None:
            continue
        own = set(w.content(w.words(message.text)))
        for stems in by_day[message.created_at.date()]:
            shared = len(stems & own)
            if shared >= MIN_SHARE * len(stems) and (shared >= 3 or stems <= own):
                found.add(message.id)
                break
    return found


def answer_days(answer: str) -> list[str]:
    """Return the days a LoCoMo answer may mean, as our log writes them."""
    day = parse_day(answer)
    if day is None:
        return []
    low = answer.lower()
    for number, name in enumerate(_WEEKDAYS):
        if name in low and "before" in low:
            back = (day.weekday() - number) % 7 or 7
            return [format_day(day - timedelta(days=back))]
    if "week before" in low or "weekend before" in low:
        return [format_day(day - timedelta(days=n)) for n in range(1, 9)]
    if "day before" in low:
        return [format_day(day - timedelta(days=1))]
    if not re.search(r"\b\d{1,2}\b", low):
        return []
    return [format_day(day)]


def has_answer(answer: object, text: str, stems: set[str]) -> bool:
    days = answer_days(str(answer))
    if days and any(day in text for day in days):
        return True
    wanted = set(w.content(w.words(str(answer))))
    return bool(wanted) and wanted <= stems


Tally = dict[str, dict[int, list[int]]]


def empty_tally() -> Tally:
    return {metric: defaultdict(lambda: [0, 0]) for metric in ("any", "all", "answer")}


def measure(
    messages: Sequence[Message], questions: Iterable[dict[str, Any]], context: Context
) -> Tally:
    """Count per metric and category: [hits, questions]. Category 0 is the total."""
    ids = {message.id for message in messages}
    found = covered(messages, context)
    text = context.text
    stems = set(w.content(w.words(text)))
    out = empty_tally()
    for question in questions:
        evidence = [e for raw in question.get("evidence", []) for e in re.split(r"[;\s]+", raw)]
        evidence = [e for e in evidence if e in ids]
        if not evidence:
            continue
        category = question["category"]
        hits = {"any": any(e in found for e in evidence), "all": all(e in found for e in evidence)}
        if category in (1, 2, 4) and "answer" in question:
            hits["answer"] = has_answer(question["answer"], text, stems)
        for metric, hit in hits.items():
            for key in (0, category):
                out[metric][key][0] += hit
                out[metric][key][1] += 1
    return out


def add(total: Tally, tally: Tally) -> None:
    for metric, by_category in tally.items():
        for category, (hits, number) in by_category.items():
            total[metric][category][0] += hits
            total[metric][category][1] += number


def share(tally: Tally, metric: str, category: int = 0) -> float:
    hits, number = tally[metric][category]
    return hits / number if number else 0.0


def report(files: Sequence[Path], count: Callable[[str], int]) -> None:
    print("# LoCoMo coverage of the rule-based model\n")
    print("Share of questions, ours / the newest messages of the same size. ANY, ALL: evidence in")
    print("the context; words: the answer's words in the context. M+R: ANY of the newest messages")
    print("that fill both limits, the largest context M and R allow.")
    print("* marks the files that the rules were tuned on.\n")
    print(
        "| M/R | file | tokens | log | window | compr. | obs | refl (calls) | s | ANY | x | ALL "
        "| words | M+R |"
    )
    print("|---" * 14 + "|")
    by_category: dict[tuple[int, int], tuple[Tally, Tally]] = {}
    for most, reflect_at in BUDGETS:
        ours_total, base_total, full_total = empty_tally(), empty_tally(), empty_tally()
        by_category[most, reflect_at] = ours_total, base_total
        for path in files:
            messages, questions = load(path, count)
            context = simulate(messages, most, reflect_at, count)
            log = count(context.log)
            window = sum(m.tokens or 0 for m in context.window)
            ours = measure(messages, questions, context)
            base = measure(
                messages, questions, Context(window=last_messages(messages, log + window))
            )
            add(ours_total, ours)
            add(base_total, base)
            full = measure(
                messages, questions, Context(window=last_messages(messages, most + reflect_at))
            )
            add(full_total, full)
            size = sum(m.tokens or 0 for m in messages)
            ratio = context.observed_tokens / max(1, context.noted_tokens)
            name = path.stem + ("*" if path.stem in TUNED_ON else "")
            print(
                f"| {most}/{reflect_at} | {name} | {size} | {log} | {window} | {ratio:.1f} "
                f"| {context.observations} | {context.reflections} ({context.reflector_calls}) "
                f"| {context.seconds:.1f} {_cells(ours, base, full)}"
            )
        print(
            f"| {most}/{reflect_at} | all | | | | | | | "
            f"{_cells(ours_total, base_total, full_total)}"
        )
    print("\n## By category, all files\n")
    print("| M/R | category | n | ANY | ALL | words |\n|---|---|---|---|---|---|")
    for (most, reflect_at), (ours, base) in by_category.items():
        for category, name in CATEGORIES.items():
            cells = " | ".join(
                f"{share(ours, m, category):.0%} / {share(base, m, category):.0%}"
                if ours[m][category][1]
                else "-"
                for m in ("any", "all", "answer")
            )
            print(f"| {most}/{reflect_at} | {name} | {ours['any'][category][1]} | {cells} |")


def _cells(ours: Tally, base: Tally, full: Tally) -> str:
    pairs = {m: (share(ours, m), share(base, m)) for m in ("any", "all", "answer")}
    times = pairs["any"][0] / pairs["any"][1] if pairs["any"][1] else float("inf")
    cells = {m: f"{a:.0%} / {b:.0%}" for m, (a, b) in pairs.items()}
    return (
        f"| {cells['any']} | {times:.2f} | {cells['all']} | {cells['answer']} "
        f"| {share(full, 'any'):.0%} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT.parent / "shared/data/locomo")
    parser.add_argument("--files", nargs="*", help="names without .json; all by default")
    options = parser.parse_args()
    files = sorted(options.root.glob("*.json")) if options.root.is_dir() else []
    if options.files:
        files = [path for path in files if path.stem in options.files]
    if not files:
        print(f"Skipped: no LoCoMo files in {options.root} (give their folder with --root).")
        return 0
    report(files, default_counter().count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
