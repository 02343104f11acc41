"""runs.start and runs.signal inside the caller's own transaction: all or nothing, and in nobody's way."""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from unittest.mock import patch

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction

from journal import bells, runs, step, wait_for_signal, workflow
from journal.errors import InWorkflow, KeyConflict, RunEnded, UnknownRun, Unstorable
from journal.models import Event, Message, Payload, Run
from tests.journal.inprocess import TestHolder
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


class RolledBack(Exception):
    pass


@workflow(name="greets", owner="lead")
def greets(name: str, amount: Decimal = Decimal(1)) -> object:
    return wait_for_signal("go")


def in_thread(job: object) -> threading.Thread:
    """Runs `job` on a connection of its own."""

    def run() -> None:
        try:
            job()  # type: ignore[operator]
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_rolled_back_leaves_nothing_and_rings_nothing() -> None:
    """B4: a message published inside a transaction that is rolled back, or seen before its commit."""
    waiting = runs.start(greets, "Ada")
    with patch.object(bells, "ring") as ring:
        with pytest.raises(RolledBack):
            _start_and_signal_and_roll_back(waiting.id)
        assert ring.call_count == 0
        assert (Run.objects.count(), Event.objects.count(), Message.objects.count()) == (1, 1, 0)
        with transaction.atomic():
            runs.start(greets, "Bob", key="bob")
            runs.signal(waiting.id, "go")
            assert ring.call_count == 0, "rung before the commit"
        assert ring.call_count == 2
    TestHolder().work()
    assert Run.objects.get(pk=waiting.id).status == "completed"


def _start_and_signal_and_roll_back(run_id: str) -> None:
    with transaction.atomic():
        runs.start(greets, "Bob", key="bob")
        runs.signal(run_id, "go")
        raise RolledBack


def test_an_open_transaction_holds_up_only_the_same_key() -> None:
    """A slow caller has started a run and sent a signal, and has not committed."""
    asked = runs.start(greets, "Ada")
    release, sent = threading.Event(), threading.Event()

    def slow_caller() -> None:
        with transaction.atomic():
            runs.start(greets, "Bob", key="bob")
            runs.signal(asked.id, "go", "from the slow one")
            sent.set()
            release.wait(30)

    slow = in_thread(slow_caller)
    sent.wait(10)
    holder = TestHolder()
    began = time.monotonic()
    runs.start(greets, "Cy", key="cy")
    assert holder.work() == 2, "the run that was signalled is executed meanwhile, and the new one"
    assert Run.objects.get(pk=asked.id).status == "waiting", "it does not see what is not committed"
    assert time.monotonic() - began < 2
    same_key: list[str] = []
    same = in_thread(lambda: same_key.append(runs.start(greets, "Bob", key="bob").id))
    wait_for(lambda: _lock_waits() == 1, what="the same key waits for the slow caller")
    release.set()
    slow.join(10)
    same.join(10)
    assert same_key == [Run.objects.get(key="bob").pk]
    holder.work()
    assert runs.result(asked.id, timeout=0) == "from the slow one"


def _lock_waits() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def test_the_same_key_is_the_same_run_and_other_input_a_conflict() -> None:
    first = runs.start(greets, "Ada", Decimal("1.50"), key="k")
    assert runs.start(greets, name="Ada", amount=Decimal("1.5"), key="k").id == first.id
    with pytest.raises(KeyConflict, match=first.id):
        runs.start(greets, "Bob", key="k")

    @workflow(name="other")
    def other(name: str, amount: Decimal) -> None: ...

    with pytest.raises(KeyConflict):
        runs.start(other, "Ada", Decimal("1.50"), key="k")
    assert Run.objects.count() == 1


def test_a_taken_id_is_not_an_error() -> None:
    taken = runs.start(greets, "Ada")
    with patch("journal.runs.new_id", side_effect=[taken.id, "7KQ2-M9XD-4T0B"]):
        assert runs.start(greets, "Bob").id == "7KQ2-M9XD-4T0B"


def test_the_starter_and_the_owner_are_kept() -> None:
    user = get_user_model()._default_manager.create_user("kim")
    run = Run.objects.get(pk=runs.start(greets, "Ada", actor=user).id)
    assert (run.actor, run.actor_name, run.owner) == (user, "kim", "lead")
    assert runs.start(greets, "Ada", actor="webhook").actor_name == "webhook"


def test_a_body_cannot_start_or_signal_and_a_step_can() -> None:
    @step
    def starts_one() -> str:
        return runs.start(greets, "Ada", key="by a step").id

    @workflow
    def body() -> str:
        with pytest.raises(InWorkflow):
            runs.start(greets, "Ada")
        with pytest.raises(InWorkflow):
            runs.signal("x", "go")
        return starts_one()

    run = runs.start(body)
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == Run.objects.get(key="by a step").pk


def test_a_workflow_with_a_reserved_parameter_is_refused() -> None:
    with pytest.raises(TypeError, match=r"'key' is a keyword of runs\.start"):

        @workflow
        def bad(key: str) -> None: ...


def test_arguments_that_do_not_fit_or_cannot_be_stored_start_nothing() -> None:
    with pytest.raises(TypeError, match="greets: missing a required argument: 'name'"):
        runs.start(greets)
    with pytest.raises(Unstorable, match=r"input\.name"):
        runs.start(greets, object())
    assert Run.objects.count() == 0


def test_a_large_input_is_stored_once_and_comes_back() -> None:
    @workflow
    def echoes(text: str) -> str:
        return text

    run = runs.start(echoes, "x" * 100_000)
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == "x" * 100_000
    assert Payload.objects.filter(run_id=run.id).count() == 2


def test_a_signal_to_an_unknown_or_ended_run_is_refused() -> None:
    with pytest.raises(UnknownRun):
        runs.signal("7KQ2-M9XD-4T0B", "go")
    run = runs.start(greets, "Ada")
    runs.signal(run.id, "go")
    TestHolder().work()
    with pytest.raises(RunEnded, match="completed"):
        runs.signal(run.id, "go")


def test_a_signal_that_commits_after_the_end_does_not_fail_its_sender() -> None:
    """The trigger never raises for a run that has ended: it marks the message."""
    run = runs.start(greets, "Ada")
    sent, release = threading.Event(), threading.Event()

    def slow_sender() -> None:
        with transaction.atomic():
            runs.signal(run.id, "more")
            sent.set()
            release.wait(10)

    sender = in_thread(slow_sender)
    sent.wait(10)
    runs.signal(run.id, "go")
    TestHolder().work()
    assert Run.objects.get(pk=run.id).status == "completed"
    release.set()
    sender.join(10)
    assert Message.objects.get(name="more").fate == "run_ended"
