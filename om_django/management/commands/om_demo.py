"""``manage.py om_demo``: a long conversation goes in, a bounded context comes out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import NoReverseMatch, reverse
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from om_django.conf import memory_settings
from om_django.core.config import ConfigError, MemoryConfig, parse_config
from om_django.demo import report
from om_django.demo.player import DemoClock, Happening, OtherConversation, Played, Player, totals
from om_django.demo.plot import draw
from om_django.demo.readers import BadInput, Conversation, read_conversation
from om_django.demo.svg import render
from om_django.demo.terminal import make_console
from om_django.exceptions import InvalidMessage
from om_django.models import Thread
from om_django.observational import ObservationalMemory, memories

MEMORY = "demo"
MODEL = "offline/extractive"
MESSAGE_TOKENS, OBSERVATION_TOKENS = 6_000, 4_000
ADMIN = "admin"


class Command(BaseCommand):
    help = (
        "Plays a conversation through a memory, message by message, and shows what becomes of it. "
        "Without --file it is one that comes with the package."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--file",
            type=Path,
            help="A LoCoMo JSON, or JSON lines of messages: this package's own or OpenAI's.",
        )
        parser.add_argument(
            "--message-tokens",
            type=_positive,
            help=f"Messages are observed at this size (default {MESSAGE_TOKENS}).",
        )
        parser.add_argument(
            "--observation-tokens",
            type=_positive,
            help=f"The log is rewritten at this size (default {OBSERVATION_TOKENS}).",
        )
        parser.add_argument(
            "--memory", default=MEMORY, help=f"Name of the memory (default {MEMORY})."
        )
        parser.add_argument(
            "--thread", help="Id of the thread; one that exists is continued. Default: a new one."
        )
        parser.add_argument(
            "--svg",
            default="demo/sawtooth.svg",
            help='Where the picture goes (default demo/sawtooth.svg); "" for none.',
        )
        parser.add_argument("--limit", type=_positive, help="Play only the first messages.")
        parser.add_argument("--quiet", action="store_true", help="Print only the summary.")
        parser.add_argument("--full", action="store_true", help="Print the whole final context.")
        parser.add_argument(
            "--create-admin",
            action="store_true",
            help=f"Create the superuser {ADMIN} with password {ADMIN}; only with DEBUG.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        color = False if options["no_color"] else True if options["force_color"] else None
        console = make_console(self.stdout, color=color)
        if options["create_admin"]:
            console.print(create_admin(), style="yellow")
        try:
            conversation = read_conversation(options["file"])
        except BadInput as error:
            raise CommandError(str(error)) from error
        if options["limit"]:
            conversation = replace(conversation, messages=conversation.messages[: options["limit"]])
        clock = DemoClock()
        memory = _memory(options, clock)
        thread = options["thread"] or _fresh_thread(conversation.name)
        played = self._play(console, memory, thread, clock, conversation, quiet=options["quiet"])
        self._close(console, memory, played, conversation, options)
        if not played.bounded:
            raise CommandError(
                f"The largest context had {played.largest_context:,} tokens: more than both "
                f"thresholds and the largest single message together ({played.bound:,})."
            )

    def _play(
        self,
        console: Console,
        memory: ObservationalMemory,
        thread: str,
        clock: DemoClock,
        conversation: Conversation,
        *,
        quiet: bool,
    ) -> Played:
        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        task = progress.add_task("messages", total=len(conversation.messages))

        def show(happening: Happening) -> None:
            for line in report.happening(happening):
                console.print(line, no_wrap=line.no_wrap, overflow=line.overflow)

        player = Player(
            memory,
            thread,
            clock,
            on_message=lambda: progress.advance(task),
            on_happening=(lambda happening: None) if quiet else show,
        )
        if not quiet:
            console.print(
                f"Playing {len(conversation.messages):,} messages into thread {thread!r} of memory "
                f"{memory.name!r}\nobserved at {player.played.message_threshold:,} tokens, "
                f"reflected at {player.played.log_threshold:,}, by {_model_name(memory.config)}\n",
                markup=False,
            )
        try:
            with nullcontext() if quiet else progress:
                return player.play(conversation.messages)
        except (OtherConversation, InvalidMessage) as error:
            raise CommandError(str(error)) from error

    def _close(
        self,
        console: Console,
        memory: ObservationalMemory,
        played: Played,
        conversation: Conversation,
        options: Mapping[str, Any],
    ) -> None:
        stored = totals(memory.name, played.thread)
        console.print()
        if played.skipped:
            console.print(
                f"{played.skipped:,} messages were in the thread already and were not played again."
            )
        if played.final is not None and (options["full"] or not options["quiet"]):
            report.context(console, played.final, full=options["full"])
        console.print(report.summary(played, stored))
        if not options["quiet"] and played.samples:
            console.print("Tokens in the context, message by message", style="bold")
            for line in draw(played, console.width):
                console.print(line, soft_wrap=True)
            console.print()
        if options["svg"] and played.samples:
            subtitle = (
                f"{stored.messages:,} messages, {stored.tokens:,} tokens in total; "
                f"{played.count('observation')} observations, "
                f"{played.count('reflection')} reflections; "
                f"the largest context had {played.largest_context:,} tokens"
            )
            path = _write(
                Path(options["svg"]),
                render(
                    played,
                    title="The context stays bounded while the conversation grows",
                    subtitle=subtitle,
                ),
            )
            console.print(f"Picture: {path}", markup=False, soft_wrap=True)
        if not options["quiet"]:
            console.print()
            report.where_next(console, _next_lines(played.thread))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be above 0, not {number}")
    return number


def _memory(options: Mapping[str, Any], clock: DemoClock) -> ObservationalMemory:
    """Return the memory to play through: that of the settings, with the sizes asked for."""
    name = options["memory"]
    try:
        given = memory_settings()
        if name in given:
            config = memories[name].config
        elif name == MEMORY:
            config = parse_config({"model": MODEL})
        else:
            raise CommandError(f"There is no memory {name!r}, only {', '.join(map(repr, given))}.")
    except (ImproperlyConfigured, ConfigError) as error:
        raise CommandError(str(error)) from error
    chosen = given.get(name, {})
    messages = options["message_tokens"] or _default(
        chosen, "observation", "message_tokens", MESSAGE_TOKENS, config
    )
    observations = options["observation_tokens"] or _default(
        chosen, "reflection", "observation_tokens", OBSERVATION_TOKENS, config
    )
    memory = ObservationalMemory(name, clock=clock)
    memory.config = replace(
        config,
        observation=replace(config.observation, message_tokens=messages),
        reflection=replace(config.reflection, observation_tokens=observations),
    )
    return memory


def _default(chosen: Any, section: str, name: str, default: int, config: MemoryConfig) -> int:
    """Return a size of the settings where they give one; a dotted path always does."""
    given = not isinstance(chosen, Mapping) or name in (chosen.get(section) or {})
    return int(getattr(getattr(config, section), name)) if given else default


def _model_name(config: MemoryConfig) -> str:
    models = [config.observer_model, config.reflector_model]
    names = dict.fromkeys(m if isinstance(m, str) else getattr(m, "name", str(m)) for m in models)
    return " and ".join(names)


def _fresh_thread(name: str) -> str:
    taken = set(Thread.objects.filter(key__startswith=name).values_list("key", flat=True))
    number, key = 1, name
    while key in taken:
        number += 1
        key = f"{name}-{number}"
    return key


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def _next_lines(thread: str) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    try:
        admin = reverse("admin:om_django_thread_changelist")
    except (NoReverseMatch, AttributeError):
        pass  # no admin, or no ROOT_URLCONF at all
    else:
        login = f", login {ADMIN} / {ADMIN}" if _has_demo_admin() else ""
        lines.append(("python manage.py runserver", f"the admin{login}:"))
        lines.append((f"  http://127.0.0.1:8000{admin}?q={thread}", ""))
    lines.append(("python manage.py om_demo --file chat.jsonl", "a conversation of yours"))
    lines.append((f"python manage.py om_demo --thread {thread}", "go on with this thread"))
    return lines


def _has_demo_admin() -> bool:
    if not settings.DEBUG or not apps.is_installed("django.contrib.auth"):
        return False
    model = get_user_model()
    user = model._default_manager.filter(**{model.USERNAME_FIELD: ADMIN}).first()
    return user is not None and user.check_password(ADMIN)


def create_admin() -> str:
    """Create the demo's superuser and return what to say about it.

    Raises ``CommandError`` without DEBUG: its password is known to everybody.
    """
    if not settings.DEBUG:
        raise CommandError(
            f"--create-admin makes a superuser {ADMIN} with password {ADMIN}: DEBUG must be True"
        )
    if not apps.is_installed("django.contrib.auth"):
        raise CommandError("--create-admin needs django.contrib.auth in INSTALLED_APPS")
    model = get_user_model()
    if model._default_manager.filter(**{model.USERNAME_FIELD: ADMIN}).exists():
        return f"There is a user {ADMIN} already; nothing was changed.\n"
    model._default_manager.create_superuser(
        **{model.USERNAME_FIELD: ADMIN, "email": "admin@example.com", "password": ADMIN}
    )
    return (
        f"Created the superuser {ADMIN} with password {ADMIN}: for this demo on your own machine, "
        "never for a server.\n"
    )
