"""Who is dead, by which sign, and when that is believed."""

from __future__ import annotations

import os

import pytest
from django.db import connection
from django.db.models.functions import Now

from journal import leases
from journal.models import Worker
from tests.journal.colliding import Other, Session
from tests.journal.inprocess import TestHolder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> int:
    started(monkeypatch, "1 day")  # the tests' own server has only just started
    return TestHolder().row.pk


def started(monkeypatch: pytest.MonkeyPatch, ago: str) -> None:
    """Takes the server to have been started that long ago."""
    monkeypatch.undo()
    overdue = leases.OVERDUE.replace("pg_postmaster_start_time()", f"(clock_timestamp() - interval '{ago}')")
    monkeypatch.setattr(leases, "OVERDUE", overdue)


def worker(**columns: object) -> Worker:
    """A worker on another machine, that nobody can look at."""
    facts = {"pid": 1, "host": "elsewhere", "machine": "elsewhere", "process_started": 1, "capabilities": []}
    return Worker.objects.create(**facts, fingerprint="x", **columns)


def moved(row: Worker, column: str, seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE journal_worker SET {column} = clock_timestamp() - %s * interval '1 second' WHERE id = %s",
            [seconds, row.pk],
        )


def death_of(row: Worker) -> str | None:
    row.refresh_from_db()
    return row.death


def test_a_lost_session_is_a_suspicion_and_a_death_only_after_the_grace(judge: int) -> None:
    row = worker()
    for _ in range(3):
        leases.sweep_dead(judge, may_suspect=True)
        assert death_of(row) is None
        assert row.session_lost_at is not None
    moved(row, "session_lost_at", leases.GRACE + 1)
    leases.sweep_dead(judge, may_suspect=False)
    assert death_of(row) is None, "judged by a worker that was deaf itself"
    leases.sweep_dead(judge, may_suspect=True)
    assert death_of(row) == "suspected"


def test_a_session_that_came_back_clears_the_suspicion(judge: int) -> None:
    row = worker()
    leases.sweep_dead(judge, may_suspect=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", [leases.LOCK_SPACE, row.pk])
        try:
            moved(row, "session_lost_at", leases.GRACE + 1)
            leases.sweep_dead(judge, may_suspect=True)
            assert death_of(row) is None
            assert row.session_lost_at is None
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [leases.LOCK_SPACE, row.pk])


def test_a_session_that_says_nothing_makes_nobody_suspect_its_worker(judge: int) -> None:
    """As behind a pooler."""
    row = worker(is_watched=False)
    leases.sweep_dead(judge, may_suspect=True)
    row.refresh_from_db()
    assert row.session_lost_at is None


def test_no_heartbeat_for_the_lease_is_stale(judge: int) -> None:
    row = worker()
    moved(row, "heartbeat_at", leases.LEASE - 3)
    leases.sweep_dead(judge, may_suspect=True)
    assert death_of(row) is None
    moved(row, "heartbeat_at", leases.LEASE + 1)
    leases.sweep_dead(judge, may_suspect=True)
    assert death_of(row) == "stale"


def test_after_a_restart_of_the_server_nobody_is_dead_yet(judge: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sessions are gone and all heartbeats are old; the graces count from the server's start."""
    silent, lost = worker(), worker()
    moved(silent, "heartbeat_at", 3600)
    leases.sweep_dead(judge, may_suspect=False)
    moved(lost, "session_lost_at", 3600)
    started(monkeypatch, "1 second")
    leases.sweep_dead(judge, may_suspect=True)
    assert death_of(silent) is None
    assert death_of(lost) is None


def test_a_pid_that_is_gone_or_another_process_s_is_a_proof_on_the_same_machine(judge: int) -> None:
    me = leases.Process.mine()
    same = {"machine": me.machine, "process_started": me.started}
    alive = Worker.objects.create(pid=os.getpid(), host="x", capabilities=[], fingerprint="x", **same)
    reused = Worker.objects.create(
        pid=os.getpid(), host="x", capabilities=[], fingerprint="x", machine=me.machine, process_started=me.started - 1
    )
    elsewhere = worker()
    leases.sweep_dead(judge, may_suspect=False)
    assert death_of(alive) is None
    assert death_of(reused) == "proved"
    assert death_of(elsewhere) is None
    leases.prove_dead(pid=os.getpid())
    assert death_of(alive) == "proved"


def test_a_process_that_cannot_be_looked_at_is_not_proved_dead(judge: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc nothing is proved by looking."""
    monkeypatch.setattr(leases, "HAS_PROC", False)
    row = Worker.objects.create(
        pid=1, host="x", machine=leases.Process.mine().machine, process_started=1, capabilities=[], fingerprint="x"
    )
    leases.sweep_dead(judge, may_suspect=False)
    assert death_of(row) is None


def test_a_worker_that_beats_while_it_is_judged_lives(judge: int) -> None:
    """Its beat holds the row; the judge waits for it, and looks again at what it finds then."""
    row = worker()
    moved(row, "session_lost_at", leases.GRACE + 1)
    beats = Other(lambda: Worker.objects.filter(pk=row.pk).update(heartbeat_at=Now(), session_lost_at=None))
    judging = Session(lambda: leases.sweep_dead(judge, may_suspect=True))
    beats.go_on(when_waiting=1)
    assert judging.outcome() is None
    assert death_of(row) is None
