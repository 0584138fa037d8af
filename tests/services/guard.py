"""A watchdog: what a test run started does not outlive it, however it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# It waits until the pipe closes, which happens when its owner exits, crashes or is killed.
_WATCH = """
import os, shutil, signal, sys, time
pid_file, directory, name = sys.argv[1:4]
sys.stdin.buffer.read()
try:
    pid = int(open(pid_file).readline())
except (OSError, ValueError):
    pid = 0
try:
    command = open(f"/proc/{pid}/cmdline", "rb").read().decode("utf-8", "replace")
except OSError:
    # No /proc (macOS): the pid file alone must do.
    command = name if pid and not os.path.isdir("/proc/self") else ""
if pid and name in command:
    for number in (signal.SIGQUIT, signal.SIGKILL):
        try:
            os.kill(pid, number)
            for _ in range(100):
                time.sleep(0.05)
                os.kill(pid, 0)
        except OSError:
            break
if directory:
    shutil.rmtree(directory, ignore_errors=True)
"""


def guard(pid_file: Path, name: str, *, remove: Path | None = None) -> None:
    """End a server when this process has ended, and remove its directory.

    Arguments:
        pid_file: The file whose first line is the server's process id.
        name: A part of the server's command line; another process of that id is left alone.
        remove: The directory to remove.
    """
    command = [sys.executable, "-c", _WATCH, str(pid_file), str(remove or ""), name]
    # In a session of its own: Ctrl-C in the terminal must not end it first. Its pipe is kept open
    # by this process alone, and is never closed by hand.
    watchdog = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _WATCHDOGS.append(watchdog)


_WATCHDOGS: list[subprocess.Popen[bytes]] = []
