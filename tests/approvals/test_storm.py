"""Everything at once on the same few runs: with one order of locks nothing collides, not even to be done again. A26."""

from __future__ import annotations

import random
from contextlib import suppress
from decimal import Decimal

import pytest
from django.db import connection, transaction

from approvals.errors import Refusal
from approvals.models import Approval
from approvals.verifying import verify
from journal import leases, runs, sweeping
from journal.clock import db_now
from journal.errors import RunEnded
from tests import counts
from tests.approvals.scene import Racer, Scene
from tests.journal.inprocess import TestHolder

RUNS, THREADS = 6, 50


class Storm:
    """What each of the threads does next is chance."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.approvals = [scene.start(order=str(number)) for number in range(RUNS)]
        self.chance = random.Random(counts.SEED)
        # Decisions are few, so that some runs still wait when the last one comes.
        self.acts = [scene.work, self.goes_away, self.sweeps, self.starts, *[self.sends] * 5, self.decides]

    def blows(self) -> None:
        for _ in range(counts.of(20_000) // THREADS):
            self.chance.choice(self.acts)()
            connection.close()

    def sends(self) -> None:
        """To some of the runs in one transaction, in any order."""
        with suppress(RunEnded), transaction.atomic():
            for approval in self.chance.sample(self.approvals, 3):
                runs.signal(approval.run_id, "noise")

    def decides(self) -> None:
        approval, who = self.chance.choice(self.approvals), self.chance.choice(["mara", "tomas"])
        with suppress(Refusal):
            self.scene.decide(approval, who, self.chance.choice(["approve", "reject"]))

    def starts(self) -> None:
        runs.start(self.scene.handle, "x", Decimal(1), True, key=str(self.chance.randrange(RUNS)))

    def goes_away(self) -> None:
        worker = TestHolder()
        worker.claim()
        leases.retire(worker.row.pk)

    def sweeps(self) -> None:
        sweeping.wake_due()
        sweeping.release_forgotten(self.scene.holder.row.pk, [], db_now())
        leases.sweep_dead(self.scene.holder.row.pk, may_suspect=False)


@pytest.mark.timeout(900)
def test_fifty_threads_collide_nowhere(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    storm = Storm(scene)
    with caplog.at_level("WARNING", logger="journal.reconnecting"):
        racers = [Racer(storm.blows) for _ in range(THREADS)]
        for racer in racers:
            racer.join()
    assert [racer.outcome() for racer in racers] == [None] * THREADS
    assert "broken off" not in caplog.text
    for approval in storm.approvals:
        with suppress(Refusal):
            scene.decide(approval, "mara")
    scene.work()
    for approval in storm.approvals:
        run = scene.run(approval)
        assert (run.status, verify(run)) == ("completed", [])
    assert len(scene.calls) == Approval.objects.filter(status="approved").count()
