"""verify_journal against somebody who can write to the database and does not hold the key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from journal import Retry, leases, runs, sleep, step, wait_for_signal, workflow
from journal.errors import UnknownRun
from journal.models import Event, Message, Payload, Run
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


@pytest.fixture
def waiting() -> dict[str, str]:
    """Runs that wait for a signal, for time and for a retry, one that failed and one that is blocked."""

    @step(retry=Retry(max_attempts=2, first=3_600))
    def flaky() -> None:
        raise ValueError("no")

    @workflow
    def signalled() -> object:
        return wait_for_signal("go", timeout=3_600)

    @workflow
    def timed() -> None:
        sleep(3_600)

    @workflow
    def retried() -> None:
        flaky()

    @workflow
    def fails() -> None:
        raise KeyError("missing \0 \ud800")

    changed = [False]

    @workflow
    def changes() -> None:
        if not changed[0]:
            wait_for_signal("go")
        sleep(0)

    made = {flow.name: runs.start(flow).id for flow in (signalled, timed, retried, fails, changes)}
    TestHolder().work()
    changed[0] = True
    runs.signal(made["changes"], "go")
    TestHolder().work()
    statuses = {name: Run.objects.get(pk=run_id).status for name, run_id in made.items()}
    assert statuses == {
        "signalled": "waiting", "timed": "waiting", "retried": "waiting", "fails": "failed", "changes": "blocked",
    }  # fmt: skip
    assert findings() == {}
    return made


@pytest.mark.parametrize(
    "change",
    [
        "error = NULL", "error = jsonb_set(error, '{message}', '\"fine\"')",
        "error = jsonb_set(error, '{path}', '\"1\"')", "created_at = 'infinity'",
        "error = jsonb_set(error, '{type}', '\"Other\"')", "created_at = created_at - interval '1 day'",
    ],
)  # fmt: skip
def test_the_error_and_the_start_of_a_run(waiting: dict[str, str], change: str) -> None:
    attack(f"UPDATE journal_run SET {change} WHERE id = %s", waiting["fails"])
    assert list(findings()) == [waiting["fails"]]


def test_an_error_that_no_event_tells_of(run_id: str) -> None:
    attack('UPDATE journal_run SET error = \'{"type": "X"}\' WHERE id = %s', run_id)
    assert list(findings()) == [run_id]


@pytest.mark.parametrize("name", ["signalled", "timed", "retried"])
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM journal_wait WHERE run_id = %s",
        "UPDATE journal_wait SET path = '9' WHERE run_id = %s",
        "UPDATE journal_wait SET generation = 1 WHERE run_id = %s",
        "UPDATE journal_wait SET kind = 'approval' WHERE run_id = %s",
        "UPDATE journal_wait SET name = 'other' WHERE run_id = %s",
        "UPDATE journal_wait SET due_at = due_at + interval '10 years' WHERE run_id = %s",
        "UPDATE journal_wait SET due_at = 'infinity' WHERE run_id = %s",
        "UPDATE journal_wait SET due_at = NULL WHERE run_id = %s",
        """UPDATE journal_run SET status = 'blocked', blocked = '{"reason": "x", "path": ""}' WHERE id = %s""",
    ],
)
def test_a_wait_that_is_gone_or_altered(waiting: dict[str, str], name: str, change: str) -> None:
    attack(change, waiting[name])
    assert list(findings()) == [waiting[name]]


def test_a_run_that_is_set_to_wait_or_to_be_blocked(waiting: dict[str, str]) -> None:
    @workflow
    def fresh() -> None: ...

    run = runs.start(fresh)
    attack("UPDATE journal_run SET status = 'waiting' WHERE id = %s", run.id)
    assert list(findings()) == [run.id]
    attack(
        "UPDATE journal_run SET status = 'blocked', blocked = %s::jsonb WHERE id = %s",
        '{"reason": "x", "path": "1", "asked": null}', run.id,
    )  # fmt: skip
    assert list(findings()) == [run.id]
    attack("UPDATE journal_run SET blocked = jsonb_set(blocked, '{reason}', '\"x\"') WHERE id = %s", waiting["changes"])
    assert set(findings()) == {run.id, waiting["changes"]}


def test_a_run_that_kills_its_workers_is_blocked_without_an_event_and_fits() -> None:
    @workflow
    def kills() -> None: ...

    run = runs.start(kills)
    for _ in range(leases.SUSPECT_AFTER + leases.POISONED_AFTER):
        holder = TestHolder()
        assert holder.claim() is not None
        leases.declare_dead(holder.row.pk, "proved")
    assert Run.objects.get(pk=run.id).status == "blocked"
    assert findings() == {}


def test_a_run_that_was_woken_keeps_its_waits_until_it_is_claimed_and_fits(waiting: dict[str, str]) -> None:
    runs.signal(waiting["signalled"], "go")
    assert Run.objects.get(pk=waiting["signalled"]).status == "ready"
    assert findings() == {}


FORGED = """
INSERT INTO journal_message (run_id, kind, name, payload, actor_name, sent_at, mac)
VALUES (%s, 'signal', 'go', '"forged"', '', now(), sha256('x'))
"""


def test_a_signal_that_nobody_sent(waiting: dict[str, str]) -> None:
    attack(FORGED, waiting["signalled"])
    assert list(findings()) == [waiting["signalled"]]


@pytest.mark.parametrize(
    "change",
    [
        "name = 'other'", "key = 'other'", "payload = '1'", "actor_name = 'lead'", "run_id = '7KQ2-M9XD-4T0B'",
        "sent_at = sent_at - interval '1 day'", "kind = 'decision', generation = 0, branch = 0, path = '1'", "id = -1",
        "payload = 'ä'",
    ],
)  # fmt: skip
def test_each_column_of_a_message(waiting: dict[str, str], change: str) -> None:
    runs.signal(waiting["timed"], "more", "x", key="k", actor="clerk")
    assert findings() == {}
    attack(f"UPDATE journal_message SET {change} WHERE run_id = %s", waiting["timed"])
    found = findings()
    assert waiting["timed"] in found
    assert set(found) <= {waiting["timed"], "7KQ2-M9XD-4T0B"}


def test_a_message_that_is_copied_or_deleted(waiting: dict[str, str]) -> None:
    """A signal sent once must not count twice, and one that came must not be lost."""
    columns = ", ".join(str(field.column) for field in Message._meta.concrete_fields if field.name != "id")
    runs.signal(waiting["timed"], "more", "x")
    attack(f"INSERT INTO journal_message ({columns}) SELECT {columns} FROM journal_message WHERE name = %s", "more")
    assert list(findings()) == [waiting["timed"]]
    attack("DELETE FROM journal_message WHERE name = %s", "more")
    assert list(findings()) == [waiting["timed"]]


def test_a_signal_that_was_taken_and_then_removed() -> None:
    @workflow
    def waits() -> object:
        return wait_for_signal("go")

    run = runs.start(waits)
    runs.signal(run.id, "go")
    TestHolder().work()
    assert findings() == {}
    attack("DELETE FROM journal_message WHERE run_id = %s", run.id)
    attack("UPDATE journal_run SET inbox_count = 0 WHERE id = %s", run.id)
    assert list(findings()) == [run.id]


def test_messages_and_waits_of_a_run_that_is_not_there(waiting: dict[str, str]) -> None:
    runs.signal(waiting["timed"], "more")
    for table in ("journal_event", "journal_payload"):
        with attacker(), connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {table} WHERE run_id = %s", [waiting["timed"]])
    attack("DELETE FROM journal_run WHERE id = %s", waiting["timed"])
    assert list(findings()) == [waiting["timed"]]


@pytest.mark.parametrize("seq", [1, 2, 5])
@pytest.mark.parametrize(
    "change", ["at = 'infinity'", "data = NULL", "data = 'ä'", "data = '{'", "data = '[]'", "args = 'ä'", "data = '{}'"]
)
def test_what_cannot_be_read_is_a_finding_and_the_others_are_checked(run_id: str, seq: int, change: str) -> None:
    other = Run.objects.exclude(pk=run_id).get().pk
    attack("UPDATE journal_run SET owner = 'x' WHERE id = %s", other)
    attack(f"UPDATE journal_event SET {change} WHERE run_id = %s AND seq = %s", run_id, seq)
    assert set(findings()) == {run_id, other}


def test_verifying_a_run_that_cannot_be() -> None:
    for odd in ("\ud800", "a\0b", "x" * 5_000):
        with pytest.raises(UnknownRun):
            list(verify(odd))


def test_a_forged_message_is_not_taken_but_blocks_the_run() -> None:
    """A row put into the inbox by SQL is no signal, also when it copies one that was sent."""

    @workflow
    def sleeps() -> object:
        return wait_for_signal("go")

    run, other = runs.start(sleeps), runs.start(sleeps)
    holder = TestHolder()
    holder.work()
    runs.signal(other.id, "go", "real")
    attack(
        "INSERT INTO journal_message (id, run_id, kind, name, payload, actor_name, sent_at, mac, arrived_at)"
        " SELECT id + 1000, %s, kind, name, payload, actor_name, sent_at, mac, arrived_at FROM journal_message",
        run.id,
    )
    Run.objects.filter(pk=run.id).update(status="ready", inbox_count=1)
    holder.work()
    assert Run.objects.get(pk=other.id).status == "completed"
    assert Run.objects.get(pk=run.id).status == "blocked"
