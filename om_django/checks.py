"""System checks: bad settings fail at start-up, each with what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

from .conf import memory_settings
from .core.config import ConfigError
from .observational import build_memory


def check_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check the memories (E001, E002) and the database settings (W001)."""
    return [*_check_memories(), *_check_sqlite()]


def _check_memories() -> list[CheckMessage]:
    try:
        memories = memory_settings()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="om_django.E001")]
    found: list[CheckMessage] = []
    for name, options in memories.items():
        place = f"OM_DJANGO['MEMORIES'][{name!r}]"
        try:
            build_memory(name, options)
        except ConfigError as error:
            found.extend(
                Error(f"{place}: {problem}.", id="om_django.E002") for problem in error.problems
            )
        except ImproperlyConfigured as error:
            found.append(Error(f"{place}: {error}.", id="om_django.E002"))
    return found


def _check_sqlite() -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for alias, database in settings.DATABASES.items():
        if database.get("ENGINE") != "django.db.backends.sqlite3":
            continue
        options = database.get("OPTIONS") or {}
        if str(options.get("transaction_mode", "")).upper() != "IMMEDIATE":
            found.append(
                Warning(
                    f"SQLite database {alias!r} may answer 'database is locked' when several "
                    "threads or processes write.",
                    hint="Set DATABASES[...]['OPTIONS'] = {'transaction_mode': 'IMMEDIATE', "
                    "'timeout': 20, 'init_command': 'PRAGMA journal_mode=WAL;'}.",
                    id="om_django.W001",
                )
            )
    return found
