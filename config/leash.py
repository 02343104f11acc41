"""Children of `up` end when `up` is gone, however it went.

A supervisor that is killed cannot tell its children. Each looks once a second whether its parent is
still the one that started it, and otherwise asks itself to stop, as SIGTERM does.
"""

from __future__ import annotations

import os
import signal
import threading
import time

VARIABLE = "SIGNOFF_SUPERVISOR"  # the supervisor's process id, set by `up` for its children
INTERVAL = 1.0  # seconds


def follow_supervisor() -> None:
    """Starts the watch where `up` itself is our parent; elsewhere nothing."""
    if os.environ.get(VARIABLE) == str(os.getppid()):
        threading.Thread(target=_watch, args=(os.getppid(),), name="leash", daemon=True).start()


def _watch(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(INTERVAL)
    os.kill(os.getpid(), signal.SIGTERM)
