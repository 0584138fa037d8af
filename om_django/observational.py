"""The public face: :class:`ObservationalMemory` and the registry of named memories."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.connection import ConnectionProxy
from django.utils.module_loading import import_string

from .conf import memory_settings
from .core.config import MemoryConfig, parse_config
from .core.tokens import TokenCounter, default_counter
from .llm.router import resolve_model

if TYPE_CHECKING:
    from .engine.services import Services
    from .models import ObservationGroup
    from .turn import Step, Turn


class ObservationalMemory:
    """The memory of an assistant, for any number of threads.

    Arguments:
        name: The name of this memory; records in the database belong to it.
        options: Options by their names in snake_case, see
            :class:`~om_django.core.config.MemoryConfig`.
        clock: Returns the time now, with a time zone. For tests and imports.
        counter: Counts tokens; the default is tiktoken's o200k_base.

    Raises :class:`~om_django.exceptions.ConfigError` for options that cannot be used.
    """

    def __init__(
        self,
        name: str = "default",
        options: Mapping[str, Any] | None = None,
        *,
        clock: Callable[[], datetime] = timezone.now,
        counter: TokenCounter | None = None,
    ) -> None:
        self.name = name
        self.config: MemoryConfig = parse_config(options or {})
        self._clock = clock
        self._counter = counter

    def __repr__(self) -> str:
        return f"<ObservationalMemory {self.name!r}>"

    @property
    def services(self) -> Services:
        """What the engine works with. The default counter may change for a better one."""
        from .engine.services import Services

        return Services(
            memory=self.name,
            config=self.config,
            counter=self._counter or default_counter(),
            now=self._clock,
            zone=self._zone,
            resolve=resolve_model,
        )

    @cached_property
    def _zone(self) -> tzinfo:
        name = self.config.time_zone
        return ZoneInfo(name) if name else timezone.get_default_timezone()

    def turn(
        self,
        thread: str,
        resource: str | None = None,
        *,
        model: str = "",
        read_only: bool = False,
    ) -> Turn:
        """Start a turn of a thread: ``with memory.turn(...) as turn``, or ``async with``.

        Arguments:
            thread: The thread's id, 1 to 255 characters. A new one is created.
            resource: Whom the thread belongs to, for example a user's id. A thread of another
                resource is :class:`~om_django.exceptions.ThreadNotFound`.
            model: The actor's ``provider/model``; decides what an image costs.
            read_only: Load everything, store and observe nothing.
        """
        from .turn import Turn

        return Turn(self, thread, resource, model=model, read_only=read_only)

    def context(self, thread: str, resource: str | None = None) -> Step:
        """Return the context as the actor would get it now, changing nothing."""
        with self.turn(thread, resource, read_only=True) as turn:
            return turn.step()

    async def acontext(self, thread: str, resource: str | None = None) -> Step:
        """Async form of :meth:`context`."""
        return await sync_to_async(self.context)(thread, resource)

    def observe(self, thread: str, resource: str | None = None) -> bool:
        """Observe all that can be observed now, whatever its size.

        Returns whether anything was. Raises :class:`~om_django.exceptions.ObservationFailed`.
        """
        with self.turn(thread, resource) as turn:
            return turn.observe()

    async def aobserve(self, thread: str, resource: str | None = None) -> bool:
        """Async form of :meth:`observe`."""
        async with self.turn(thread, resource) as turn:
            return await turn.aobserve()

    def reflect(self, thread: str, resource: str | None = None, *, prompt: str = "") -> bool:
        """Rewrite the log now, whatever its size; ``prompt`` is a request for this time.

        Returns whether a new generation was opened. Raises
        :class:`~om_django.exceptions.ReflectionFailed`.
        """
        with self.turn(thread, resource) as turn:
            return turn.reflect(prompt)

    async def areflect(self, thread: str, resource: str | None = None, *, prompt: str = "") -> bool:
        """Async form of :meth:`reflect`."""
        async with self.turn(thread, resource) as turn:
            return await turn.areflect(prompt)

    def log(self, thread: str, resource: str | None = None) -> list[ObservationGroup]:
        """Return the active groups of the log, oldest first."""
        from .engine import store

        store.open_thread(self.name, thread, resource, create=False)
        return store.load(self.name, thread, self.services.counter).groups


def build_memory(name: str, options: Any) -> ObservationalMemory:
    """Return the memory that a setting describes: a dict of options, or a dotted path to one."""
    if isinstance(options, str):
        try:
            options = import_string(options)
        except ImportError as error:
            raise ImproperlyConfigured(str(error)) from error
    if isinstance(options, ObservationalMemory):
        if options.name != name:
            raise ImproperlyConfigured(
                f"this memory calls itself {options.name!r}: give both the same name"
            )
        return options
    return ObservationalMemory(name, options)


class Memories:
    """The memories of the settings by name; each is built on first use."""

    def __init__(self) -> None:
        self._built: dict[str, ObservationalMemory] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> ObservationalMemory:
        """Return a memory. Raises ``ImproperlyConfigured`` when there is none of that name."""
        with self._lock:
            if name not in self._built:
                options = memory_settings()
                if name not in options:
                    raise ImproperlyConfigured(
                        f"OM_DJANGO['MEMORIES'] has no memory {name!r}, only "
                        f"{', '.join(map(repr, options))}"
                    )
                self._built[name] = build_memory(name, options[name])
            return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(memory_settings())

    def reset(self) -> None:
        """Forget what was built; the settings are read again."""
        with self._lock:
            self._built.clear()


memories = Memories()
#: The memory named "default".
memory = cast(ObservationalMemory, ConnectionProxy(cast(Any, memories), "default"))


def reset_memories(*, setting: str, **kwargs: Any) -> None:
    """Read the settings again after a change (receiver of ``setting_changed``)."""
    if setting in ("OM_DJANGO", "TIME_ZONE", "USE_TZ"):
        memories.reset()
