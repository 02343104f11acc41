"""Deadlocks and serialization failures: done again inside where the call owns its transaction, and nowhere else.

Each is a real one, of two sessions. A26; tests/approvals/test_races.py has those of decisions and deadlines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, SerializationFailure

from journal import leases, runs, wait_for_signal, workflow
from journal.clock import db_now
from journal.loading import load
from journal.locking import lock_run
from journal.models import Event, Message, Run, Wait, Worker
from journal.runner import execute_claimed, hand_back
from journal.states import EventKind
from journal.writer import Draft
from tests.approvals.scene import Racer
from tests.journal.colliding import Job, deadlocked, overtaken
from tests.journal.inprocess import TestHolder

pytestmark = pytest.mark.django_db(transaction=True)


@workflow(name="collisions.waits_for_go")
def waits_for_go() -> object:
    return wait_for_signal("go")


@workflow(name="collisions.returns")
def returns() -> str:
    return "done"


@dataclass(frozen=True)
class Clash:
    """A call, and what another session does to it."""

    call: Job
    hold: Job
    """For a deadlock: what the other gets first, and the call waits for."""
    cross: Job
    """What the other wants then, and the call has got."""
    change: Job
    """For a serialization failure: what the other changes while the call waits for it, and commits."""
    is_done: Callable[[Any], bool]
    """Whether all is as it should be, given what the call returned."""


def touch(run_id: str) -> None:
    Run.objects.filter(pk=run_id).update(progress="touched")


def lock(found: Any) -> None:
    assert list(found.select_for_update())


def claimed(workflow: Any, holder: TestHolder) -> tuple[str, int]:
    runs.start(workflow)
    claim = holder.claim()
    assert claim is not None
    return claim


def starting() -> Clash:
    people = get_user_model()._default_manager
    kim = people.create_user("kim")
    return Clash(
        call=lambda: runs.start(waits_for_go, key="k", actor=kim),
        hold=lambda: lock(people.filter(pk=kim.pk)),
        cross=lambda: runs.start(waits_for_go, key="k"),
        change=lambda: runs.start(waits_for_go, key="k"),
        is_done=lambda run: run.id == Run.objects.get(key="k").pk == Event.objects.get().run_id,
    )


def signalling() -> Clash:
    run = runs.start(waits_for_go)
    return Clash(
        call=lambda: runs.signal(run.id, "go", "mine", key="k"),
        hold=lambda: lock_run(run.id),
        cross=lambda: runs.signal(run.id, "go", "the other's", key="k"),
        change=lambda: touch(run.id),
        is_done=lambda _: Message.objects.get().payload == '"mine"' and Run.objects.get().inbox_count == 1,
    )


def claiming() -> Clash:
    holder = TestHolder()
    run = runs.start(waits_for_go)
    holder.work()
    runs.signal(run.id, "go")
    return Clash(
        call=holder.claim,
        hold=lambda: lock(Wait.objects.all()),
        cross=lambda: lock_run(run.id),
        change=lambda: Wait.objects.update(detail="touched"),
        # The row may still be locked when the claim is done again: then it takes nothing, and the next one does.
        is_done=lambda claim: (claim or holder.claim()) == (run.id, 2),
    )


def appending() -> Clash:
    holder = TestHolder()
    claim = claimed(waits_for_go, holder)
    runs.signal(claim[0], "go")
    writer = load(*claim, holder).writer
    message = Message.objects.get()
    draft = Draft(EventKind.STEP_COMPLETED, "1", "done", 1, "{}", True, '{"result":1}')
    return Clash(
        call=lambda: writer.append(draft, takes=[message.pk]),
        hold=lambda: lock(Message.objects.all()),
        cross=lambda: lock_run(claim[0]),
        change=lambda: touch(claim[0]),
        is_done=lambda _: Event.objects.get(name="done").seq == Message.objects.get().taken_seq == 2,
    )


def suspending() -> Clash:
    holder = TestHolder()
    claim = claimed(waits_for_go, holder)
    row = {"run_id": claim[0], "generation": 0, "branch": 0, "path": "1", "kind": "signal", "name": "go"}
    return Clash(
        call=lambda: execute_claimed(*claim, holder),
        hold=lambda: Wait.objects.create(**row, since=db_now()),
        cross=lambda: lock_run(claim[0]),
        change=lambda: touch(claim[0]),
        is_done=lambda _: Run.objects.get().status == "waiting" and Wait.objects.count() == 1,
    )


def ending() -> Clash:
    holder = TestHolder()
    claim = claimed(returns, holder)
    runs.signal(claim[0], "unwanted")
    return Clash(
        call=lambda: execute_claimed(*claim, holder),
        hold=lambda: lock(Message.objects.all()),
        cross=lambda: lock_run(claim[0]),
        change=lambda: touch(claim[0]),
        is_done=lambda _: runs.result(claim[0], timeout=0) == "done" and Message.objects.get().fate == "run_ended",
    )


CLASHES = [starting, signalling, claiming, appending, suspending, ending]


@pytest.mark.parametrize("clash", CLASHES)
def test_a_deadlock_is_nobody_s_business(clash: Callable[[], Clash], caplog: pytest.LogCaptureFixture) -> None:
    made = clash()
    with caplog.at_level(logging.WARNING, logger="journal.reconnecting"):
        outcome = deadlocked(made.call, hold=made.hold, cross=made.cross)
    assert "deadlock detected" in caplog.text, "nothing collided"
    assert not isinstance(outcome, Exception), outcome
    assert made.is_done(outcome)


@pytest.mark.parametrize("clash", CLASHES)
def test_a_serialization_failure_is_nobody_s_business(
    clash: Callable[[], Clash], caplog: pytest.LogCaptureFixture
) -> None:
    made = clash()
    with caplog.at_level(logging.WARNING, logger="journal.reconnecting"):
        outcome = overtaken(made.call, change=made.change)
    assert "could not serialize access" in caplog.text, "nothing collided"
    assert not isinstance(outcome, Exception), outcome
    assert made.is_done(outcome)


def test_what_holds_no_second_lock_has_serialization_failures_only(caplog: pytest.LogCaptureFixture) -> None:
    """A worker's death and its handing back: one row each, so that no deadlock can come about."""
    holder = TestHolder()
    claim = claimed(waits_for_go, holder)
    worker = Worker.objects.filter(pk=holder.row.pk)
    with caplog.at_level(logging.WARNING, logger="journal.reconnecting"):
        overtaken(lambda: hand_back(*claim), change=lambda: touch(claim[0]))
        overtaken(lambda: leases.declare_dead(holder.row.pk, "stale"), change=lambda: worker.update(pid=1))
    assert caplog.text.count("could not serialize access") == 2
    assert (Run.objects.get().status, worker.get().death) == ("ready", "stale")


# ---------------------------------------------------------------- the caller's own transaction


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is done again."""
    yield
    assert "done again" not in caplog.text


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("what", ["start", "signal"])
def test_a_deadlock_inside_the_caller_s_transaction_is_the_caller_s(what: str) -> None:
    """The whole of it was rolled back, and only the caller can do that again."""
    run = runs.start(waits_for_go)
    calls: dict[str, Callable[[str], Any]] = {
        "start": lambda key: runs.start(waits_for_go, key=key),
        "signal": lambda key: runs.signal(run.id, "go", key=key),
    }
    call = calls[what]

    def both() -> None:
        with transaction.atomic():
            call("mine")
            call("the other's")

    outcome = deadlocked(both, hold=lambda: call("the other's"), cross=lambda: call("mine"))
    assert isinstance(outcome, OperationalError)
    assert isinstance(outcome.__cause__, DeadlockDetected), "not the error of a try in a transaction that was over"
    assert (Run.objects.count(), Message.objects.count()) == (1, 0)


@pytest.mark.usefixtures("quiet")
def test_a_deadlock_of_the_delivery_at_the_caller_s_commit_is_the_caller_s() -> None:
    run = runs.start(waits_for_go)

    def sends() -> None:
        with transaction.atomic():
            runs.signal(run.id, "go", key="k")

    outcome = deadlocked(sends, hold=lambda: lock_run(run.id), cross=lambda: runs.signal(run.id, "go", key="k"))
    assert isinstance(outcome.__cause__, DeadlockDetected)
    assert Message.objects.count() == 0


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("what", ["start", "signal"])
def test_a_serialization_failure_inside_the_caller_s_transaction_is_the_caller_s(what: str) -> None:
    """A caller may use a stricter isolation than ours."""
    run = runs.start(waits_for_go)

    def calls() -> None:
        with transaction.atomic():
            if what == "start":
                runs.start(waits_for_go, key="k")
            else:
                runs.signal(run.id, "go", key="k")

    def change() -> None:
        runs.start(waits_for_go, key="k")
        touch(run.id)

    outcome = overtaken(calls, change=change)
    assert isinstance(outcome, OperationalError)
    assert isinstance(outcome.__cause__, SerializationFailure)
    assert Message.objects.count() == 0


def test_a_session_that_was_cut_off_while_it_idled_fails_nobody() -> None:
    """A27, in the web process: a proxy or the server has ended it, and the pool does not know yet."""
    assert isinstance(Racer(lambda: runs.start(returns)).outcome(), runs.Run)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone()[0] > 0
    for _ in range(20):
        assert isinstance(Racer(lambda: runs.start(returns)).outcome(), runs.Run)


def test_what_the_role_says_of_isolation_does_not_reach_us() -> None:
    """Our sessions are READ COMMITTED, in transactions and outside, whatever the database says."""

    def isolation() -> list[str]:
        found = [_show("transaction_isolation")]
        with transaction.atomic():
            return [*found, _show("transaction_isolation")]

    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'")
    try:
        with psycopg.connect(**_address(), options="-c geqo=on") as plain:
            assert plain.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]
        assert isolation() == ["read committed", "read committed"]
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'ALTER DATABASE "{name}" RESET default_transaction_isolation')


def _address() -> dict[str, Any]:
    params = connection.get_connection_params()
    return {name: params[name] for name in ("host", "port", "dbname", "user", "password") if params.get(name)}


def _show(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])
