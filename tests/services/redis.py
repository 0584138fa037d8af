"""A Redis server for the suite, started on first use and gone when the run has ended."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from tests.services.guard import guard

#: Set by the process that started the server; workers of pytest-xdist inherit it.
URL = "OM_TEST_REDIS_URL"
START_SECONDS = 10.0


class RedisMissing(RuntimeError):
    """There is no redis-server on this machine."""


@cache
def redis_url() -> str:
    """Return the address of the server, starting it if need be. Raises :class:`RedisMissing`."""
    if url := os.environ.get(URL):
        return url
    url = f"redis://127.0.0.1:{_start()}/0"
    os.environ[URL] = url
    return url


def _start() -> int:
    program = shutil.which("redis-server")
    if program is None:
        raise RedisMissing("redis-server is not installed: `apt-get install redis-server`")
    directory = Path(tempfile.mkdtemp(prefix="om-redis-", dir="/tmp"))
    for _attempt in range(5):
        port = _free_port()
        server = subprocess.Popen(
            [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
             str(directory), "--appendonly", "no", "--daemonize", "no"],
            stdin=subprocess.DEVNULL,
            stdout=(directory / "log").open("ab"),
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the test run; the watchdog ends the server after it.
            start_new_session=True,
        )  # fmt: skip
        if _answers(server, port):
            (directory / "pid").write_text(f"{server.pid}\n")
            guard(directory / "pid", "redis-server", remove=directory)
            return port
        server.kill()
        server.wait()
    raise RuntimeError(f"redis-server did not start: see {directory / 'log'}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(server: subprocess.Popen[bytes], port: int) -> bool:
    """Tell whether this server answers; it ends when another process took the port."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as link:
                link.sendall(b"PING\r\n")
                if link.recv(16).startswith(b"+PONG"):
                    return server.poll() is None
        except OSError:
            pass
        time.sleep(0.02)
    return False
