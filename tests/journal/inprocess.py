"""Executing runs in the test's own process: the engine's real claims and replays, without Celery around them."""

from __future__ import annotations

import os

from django.conf import settings

from journal import leases, registry, statements, sweeping
from journal.models import Run, Worker
from journal.runner import execute_claimed


class TestHolder:
    """A worker of one slot that works when it is told to."""

    __test__ = False

    def __init__(self, fingerprint: str = "code-a") -> None:
        self.draining = False
        self.replays_every_step: bool = settings.SIGNOFF_REPLAY_EVERY_STEP
        self.fingerprint = fingerprint
        me = leases.Process.mine()
        self.row = Worker.objects.create(
            pid=os.getpid(),
            host=me.host,
            machine=me.machine,
            process_started=me.started,
            capabilities=registry.capabilities(),
            fingerprint=fingerprint,
        )

    def check_alive(self) -> None:
        """Its life is the test's."""

    def claim(self, *, idle: bool = True) -> tuple[str, int] | None:
        """The best ready run, claimed and not yet executed: its id and epoch. Not `idle`: as if it held another."""
        params = {"capabilities": registry.capabilities(), "fingerprint": self.fingerprint, "worker": self.row.pk}
        params |= {"idle": idle, "suspect": leases.SUSPECT_AFTER}
        found = statements.rows(statements.CLAIM, params)
        return (found[0][0], found[0][1]) if found else None

    def work(self) -> int:
        """Executes until nothing is ready or due; how many claims there were."""
        count = 0
        while True:
            sweeping.wake_due()
            claim = self.claim()
            if claim is None:
                return count
            execute_claimed(*claim, self)
            count += 1


def finished(run_id: str) -> Run:
    """The run's row, which must have ended."""
    run = Run.objects.get(pk=run_id)
    assert run.status in ("completed", "failed"), (run.status, run.blocked, list(run.waits.all()))
    return run
