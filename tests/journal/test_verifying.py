"""verify_journal against somebody who can write to the database and does not hold the key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from journal import runs, step, wait_for_signal, workflow
from journal.models import Event, Payload, Run
from journal.verifying import verify
from tests.journal.inprocess import TestHolder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run_id() -> str:
    """A run with small and large values that has completed, beside one that waits."""

    @step
    def makes(n: int) -> str:
        return "x" * n

    @workflow(owner="lead")
    def makes_three() -> int:
        return len(makes(10)) + len(makes(5_000)) + len(makes(20))

    @workflow
    def sleeps() -> None:
        wait_for_signal("go")

    run = runs.start(makes_three, key="k", actor="service:x")
    runs.start(sleeps)
    TestHolder().work()
    assert findings() == {}
    return run.id


def findings() -> dict[str, list[str]]:
    return {run_id: found for run_id, found in verify() if found}


@contextmanager
def attacker() -> Iterator[None]:
    """Past the triggers that keep the tables append-only, and past the constraints."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        try:
            yield
        finally:
            cursor.execute("SET session_replication_role = DEFAULT")


def attack(sql: str, *params: str | int) -> None:
    with attacker(), connection.cursor() as cursor:
        cursor.execute(sql, params)
        assert cursor.rowcount > 0, f"changed nothing: {sql}"


@pytest.mark.parametrize(
    "change",
    [
        "generation = 1", "branch = 1", "path = '9'", "attempt = 7", "kind = 'timer_fired'", "name = 'other'",
        "args = '{\"n\":11}'", "args_digest = sha256('x')", "data = '{\"result\":\"y\"}'", "data_hash = sha256('x')",
        "at = at + interval '1 second'", "digest = sha256('x')", "args = NULL", "data = NULL",
    ],
)  # fmt: skip
def test_each_column_of_an_event(run_id: str, change: str) -> None:
    attack(f"UPDATE journal_event SET {change} WHERE run_id = %s AND seq = 2", run_id)
    assert list(findings()) == [run_id]


@pytest.mark.parametrize(
    "change",
    [
        "workflow = 'other'", "version = 2", "code = 'other@1'", "key = 'other'", "key = NULL", "owner = 'other'",
        "actor_name = 'other'", "input_hash = sha256('x')", "seq = 4", "head = sha256('x')", "status = 'failed'",
        "status = 'ready', ended_at = NULL",
    ],
)  # fmt: skip
def test_the_run_s_identity_count_head_and_end(run_id: str, change: str) -> None:
    attack(f"UPDATE journal_run SET {change} WHERE id = %s", run_id)
    assert list(findings()) == [run_id]


@pytest.mark.parametrize("seq", [1, 3, 5])
def test_a_deleted_event_also_the_last_with_the_row_put_back(run_id: str, seq: int) -> None:
    attack("DELETE FROM journal_event WHERE run_id = %s AND seq = %s", run_id, seq)
    if seq == 5:  # all that somebody without the key can put back
        attack(
            "UPDATE journal_run r SET seq = 4, head = e.digest, status = 'ready', ended_at = NULL"
            " FROM journal_event e WHERE e.run_id = r.id AND e.seq = 4 AND r.id = %s",
            run_id,
        )
    assert list(findings()) == [run_id]


def test_two_swapped_events(run_id: str) -> None:
    attack("UPDATE journal_event SET seq = -seq WHERE run_id = %s AND seq IN (2, 4)", run_id)
    attack("UPDATE journal_event SET seq = CASE seq WHEN -2 THEN 4 ELSE 2 END WHERE run_id = %s AND seq < 0", run_id)
    assert list(findings()) == [run_id]


def test_payloads_changed_deleted_and_added(run_id: str) -> None:
    attack("UPDATE journal_payload SET body = '\"z\"' WHERE run_id = %s", run_id)
    assert list(findings()) == [run_id]
    attack("DELETE FROM journal_payload WHERE run_id = %s", run_id)
    assert list(findings()) == [run_id]
    other = Run.objects.exclude(pk=run_id).get()
    Payload.objects.create(run=other, hash=b"x" * 32, body="1")
    assert set(findings()) == {run_id, other.pk}


def test_a_whole_run_deleted_leaves_its_events(run_id: str) -> None:
    attack("DELETE FROM journal_run WHERE id = %s", run_id)
    assert list(findings()) == [run_id]


def test_the_tables_refuse_changes_by_themselves(run_id: str) -> None:
    with pytest.raises(Exception, match="append-only"):
        Event.objects.filter(run_id=run_id).update(name="other")
    with pytest.raises(Exception, match="append-only"):
        Event.objects.filter(run_id=run_id).delete()


def test_a_tampered_run_is_not_executed_but_blocked() -> None:
    @workflow
    def sleeps() -> None:
        wait_for_signal("go")

    run = runs.start(sleeps)
    holder = TestHolder()
    holder.work()
    attack("DELETE FROM journal_event WHERE run_id = %s AND seq = 2", run.id)
    runs.signal(run.id, "go")
    holder.work()
    blocked = Run.objects.get(pk=run.id)
    assert blocked.status == "blocked"
    assert blocked.blocked is not None
    assert "does not end where its row says" in blocked.blocked["reason"]
