"""Options of a memory: names, defaults and allowed values.

Names are those of the reference in snake_case; where an option is not in the reference its
docstring says so. Every fault is found at start-up, and all of them are reported together.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from .text import JSON

DEFAULT_MODEL = "google/gemini-2.5-flash"
DEFAULT_MAX_OUTPUT_TOKENS = 100_000
DEFAULT_OBSERVER_OPTIONS: Mapping[str, Any] = {"google": {"thinking_budget": 215}}
DEFAULT_REFLECTOR_OPTIONS: Mapping[str, Any] = {"google": {"thinking_budget": 1024}}


class ConfigError(ValueError):
    """Options that cannot be used. ``problems`` has one line for each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """``temperature`` 0 to 2 or ``None``; ``max_output_tokens`` or ``None`` for the model's own."""

    temperature: float | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationConfig:
    """When and how messages become observations. Sizes are in tokens."""

    #: What observes: ``provider/model``, an object with ``generate``, ``ModelByInputTokens``, a
    #: list to fall back along, or ``None`` (see ``model``).
    model: Any = None
    #: Added to the Observer's system prompt.
    instruction: str = ""
    #: The Observer proposes a title for the thread.
    thread_title: bool = False
    #: Attachments sent to the Observer beside their placeholders: all, none, by the model's
    #: abilities (``auto``), or those of these media types.
    observe_attachments: bool | Literal["auto"] | tuple[str, ...] = True
    #: Unobserved messages from which on they are observed.
    message_tokens: int = 30_000
    #: Earlier observations shown to the Observer: newest and important first; ``None`` all, 0 none.
    previous_observer_tokens: int | None = 2_000
    model_settings: ModelSettings = ModelSettings(temperature=0.3)
    provider_options: Mapping[str, Any] = field(
        default_factory=lambda: dict(DEFAULT_OBSERVER_OPTIONS)
    )
    #: The sections current-task and suggested-response.
    continuation_hints: bool = True
    #: Messages given to one call at most; a longer stretch is observed in pieces, oldest first.
    #: Not in the reference.
    max_input_tokens: int = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionConfig:
    """When and how the log is rewritten. Sizes are in tokens."""

    #: What reflects, see ``observation.model``.
    model: Any = None
    #: Added to the Reflector's system prompt.
    instruction: str = ""
    #: Size of the log from which on it is rewritten.
    observation_tokens: int = 40_000
    model_settings: ModelSettings = ModelSettings(temperature=0.0)
    provider_options: Mapping[str, Any] = field(
        default_factory=lambda: dict(DEFAULT_REFLECTOR_OPTIONS)
    )
    continuation_hints: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """All options of one memory."""

    #: ``False``: messages are stored and sent whole, and no memory model is ever called.
    enabled: bool = True
    #: Model of both agents; not together with ``observation.model`` or ``reflection.model``.
    model: Any = None
    observation: ObservationConfig = ObservationConfig()
    reflection: ReflectionConfig = ReflectionConfig()
    #: Functions called around observing and reflecting, see :mod:`om_django.engine.hooks`.
    hooks: Mapping[str, Any] = field(default_factory=dict)
    #: Language of the log, for example "English"; "" keeps that of the chat. Not in the reference.
    language: str = ""
    #: IANA name of the zone in which days and times are written; "" is Django's TIME_ZONE.
    #: Not in the reference.
    time_zone: str = ""
    #: Seconds a turn waits for memory models in one step at most. Not in the reference.
    blocking_timeout: float = 60.0

    @property
    def observer_model(self) -> Any:
        """Own, shared, the other agent's, the default, in this order. Source: reference."""
        return _first(self.observation.model, self.model, self.reflection.model)

    @property
    def reflector_model(self) -> Any:
        """Own, shared, the other agent's, the default, in this order. Source: reference."""
        return _first(self.reflection.model, self.model, self.observation.model)

    @property
    def observer_settings(self) -> ModelSettings:
        return _with_default_output(
            self.observation.model_settings,
            self._default_selection or _by_size(self.observer_model),
        )

    @property
    def reflector_settings(self) -> ModelSettings:
        return _with_default_output(
            self.reflection.model_settings,
            self._default_selection or _by_size(self.reflector_model),
        )

    @property
    def _default_selection(self) -> bool:
        chosen = (self.model, self.observation.model, self.reflection.model)
        return all(model in (None, "default") for model in chosen)

    def snapshot(self) -> dict[str, JSON]:
        """Return what events and operations keep of the options."""
        return {
            "messageTokens": self.observation.message_tokens,
            "observationTokens": self.reflection.observation_tokens,
            "scope": "thread",
        }


def _first(*models: Any) -> Any:
    model = next((m for m in models if m is not None), DEFAULT_MODEL)
    return DEFAULT_MODEL if model == "default" else model


def _by_size(model: Any) -> bool:
    return callable(getattr(model, "get_thresholds", None))


def _with_default_output(settings: ModelSettings, default_selection: bool) -> ModelSettings:
    if settings.max_output_tokens is not None or not default_selection:
        return settings
    return ModelSettings(
        temperature=settings.temperature, max_output_tokens=DEFAULT_MAX_OUTPUT_TOKENS
    )


T = TypeVar("T")


def parse_config(options: Mapping[str, Any]) -> MemoryConfig:
    """Return the configuration that ``options`` describe.

    Raises :class:`ConfigError` with every problem: unknown names (with the nearest known one),
    values of the wrong kind or out of range, and options that exclude each other.
    """
    problems: list[str] = []
    config = _build(MemoryConfig, options, "", problems)
    if config is not None:
        problems.extend(_conflicts(config))
    if config is None or problems:
        raise ConfigError(problems)
    return config


def _build(cls: type[T], options: Any, path: str, problems: list[str]) -> T | None:
    if not isinstance(options, Mapping):
        problems.append(f"{path.rstrip('.') or 'the memory'} must be a dict of options")
        return None
    known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f", did you mean {near[0]}?" if near else f": use one of {', '.join(known)}"
            problems.append(f"{path}{name} is not an option{hint}")
            continue
        if (section := _SECTIONS.get(name)) is not None:
            values[name] = _section(section, value, f"{path}{name}.", problems, cls, name)
            continue
        problem = _RULES[name](value)
        if problem:
            problems.append(f"{path}{name} {problem}, not {value!r}")
        else:
            values[name] = _normal(name, value)
    return cls(**{k: v for k, v in values.items() if v is not None or k in _NULLABLE})


def _section(
    section: type[Any], value: Any, path: str, problems: list[str], owner: type[Any], name: str
) -> Any:
    built = _build(section, value, path, problems)
    if built is None or section is not ModelSettings or not isinstance(value, Mapping):
        return built
    # Settings that are not given keep the default of this agent.
    default = next(f.default for f in fields(owner) if f.name == name)
    given = {f.name: getattr(built, f.name) for f in fields(section) if f.name in value}
    return ModelSettings(**{**{f.name: getattr(default, f.name) for f in fields(section)}, **given})


def _conflicts(config: MemoryConfig) -> Iterator[str]:
    if config.model is not None:
        for name in ("observation", "reflection"):
            if getattr(config, name).model is not None:
                yield (
                    f"model and {name}.model are both set: set the one for both agents, "
                    "or one for each"
                )


Rule = Callable[[Any], str]


def _boolean(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be True or False"


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else "must be a string"


def _options(value: Any) -> str:
    return "" if isinstance(value, Mapping) else "must be a dict"


def _positive_int(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return ""
    return "must be a whole number above 0"


def _budget(value: Any) -> str:
    if value is False or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return ""
    return "must be False (no limit) or a whole number from 0 up"


def _seconds(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if number and math.isfinite(value) and value > 0 else "must be seconds above 0"


def _temperature(value: Any) -> str:
    if value is None:
        return ""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if number and 0 <= value <= 2 else "must be between 0 and 2"


def _model(value: Any) -> str:
    if isinstance(value, str):
        good = value == "default" or "/" in value.strip("/")
    elif isinstance(value, list | tuple):
        good = bool(value) and not any(_model(getattr(item, "model", item)) for item in value)
    else:
        good = value is None or any(
            callable(getattr(value, name, None)) for name in ("generate", "get_thresholds")
        )
    if good:
        return ""
    return (
        "must be 'provider/model', 'default', an object with generate(), ModelByInputTokens, or a "
        "list of models to fall back along"
    )


def _attachments(value: Any) -> str:
    if isinstance(value, bool) or value == "auto":
        return ""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ""
    return "must be True, False, 'auto' or a list of media types such as 'image/*'"


HOOKS = (
    "on_observation_start",
    "on_observation_end",
    "on_reflection_start",
    "on_reflection_end",
    "before_observation",
    "after_observation",
    "before_reflection",
    "after_reflection",
)


def _hooks(value: Any) -> str:
    if not isinstance(value, Mapping) or not all(map(callable, value.values())):
        return f"must be a dict of functions: {', '.join(HOOKS)}"
    unknown = next((name for name in value if name not in HOOKS), None)
    return "" if unknown is None else f"has no hook {unknown!r}: use one of {', '.join(HOOKS)}"


def _zone(value: Any) -> str:
    from zoneinfo import ZoneInfo

    if not isinstance(value, str):
        return "must be a string"
    try:
        if value:
            ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        return "must be an IANA time zone such as Europe/Berlin"
    return ""


_SECTIONS: dict[str, type[Any]] = {
    "observation": ObservationConfig,
    "reflection": ReflectionConfig,
    "model_settings": ModelSettings,
}
_NULLABLE = {"previous_observer_tokens", "temperature"}
_RULES: dict[str, Rule] = {
    "enabled": _boolean,
    "model": _model,
    "hooks": _hooks,
    "language": _text,
    "time_zone": _zone,
    "blocking_timeout": _seconds,
    "instruction": _text,
    "thread_title": _boolean,
    "observe_attachments": _attachments,
    "message_tokens": _positive_int,
    "observation_tokens": _positive_int,
    "previous_observer_tokens": _budget,
    "max_input_tokens": _positive_int,
    "provider_options": _options,
    "continuation_hints": _boolean,
    "temperature": _temperature,
    "max_output_tokens": _positive_int,
}


def _normal(name: str, value: Any) -> Any:
    if name == "previous_observer_tokens" and value is False:
        return None
    return tuple(value) if isinstance(value, list) and name == "observe_attachments" else value
