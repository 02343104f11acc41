"""Doorbells: the Celery message "there is work". Losing or doubling one changes nothing.

Ringing never holds up whoever rings: a thread of its own publishes, and many rings in a row are one. A broker
that is down, or accepts and never answers, holds up that thread and nobody else.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time

from celery import current_app
from django.db import transaction

log = logging.getLogger("journal.bells")

BELL = "journal.bell"
QUEUE = "signoff"
REST_AFTER_FAILURE = 2.0
"""Seconds for which a broker that failed is left alone."""
FLUSH = 0.5
"""Seconds that a process which ends gives its last bell to get out."""


class Ringer:
    """Publishes bells from a thread that is started with the first ring."""

    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ring(self) -> None:
        with self._lock:
            self._idle.clear()
            self._wanted.set()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._publish_for_ever, name="signoff-bells", daemon=True)
                self._thread.start()

    def flush(self, timeout: float) -> None:
        """Gives the last bell of a short-lived process `timeout` seconds to get out."""
        self._idle.wait(timeout)

    def _publish_for_ever(self) -> None:
        failing = False
        while True:
            self._wanted.wait()
            self._wanted.clear()
            try:
                current_app.send_task(BELL, queue=QUEUE, ignore_result=True, retry=False)
                failing = False
            except Exception as error:  # noqa: BLE001 - each transport has errors of its own
                if not failing:
                    log.warning("the doorbell does not ring (%s); workers look for work twice a second", error)
                failing = True
            with self._lock:
                if not self._wanted.is_set():
                    self._idle.set()
            if failing:
                time.sleep(REST_AFTER_FAILURE)


_ringer = Ringer()


def ring() -> None:
    """Says now that there is work."""
    _ringer.ring()


@atexit.register
def flush() -> None:
    """Lets the last bell get out, for at most FLUSH seconds."""
    _ringer.flush(FLUSH)


def ring_after_commit() -> None:
    """Says so once the transaction at hand is committed; not at all if it is rolled back."""
    transaction.on_commit(ring, robust=True)
