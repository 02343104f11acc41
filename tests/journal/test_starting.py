"""runs.start and runs.signal inside the caller's own transaction: all or nothing, and in nobody's way."""

from __future__ import annotations

import inspect
import random as chance
import threading
import time
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
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
    try:
        began = time.monotonic()
        runs.start(greets, "Cy", key="cy")
        assert holder.work() == 2, "the run that was signalled is executed meanwhile, and the new one"
        assert Run.objects.get(pk=asked.id).status == "waiting", "it does not see what is not committed"
        assert time.monotonic() - began < 2
        same_key: list[str] = []
        same = in_thread(lambda: same_key.append(runs.start(greets, "Bob", key="bob").id))
        wait_for(lambda: _lock_waits() == 1, what="the same key waits for the slow caller")
    finally:
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


def test_defaults_are_part_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default that is changed later changes no open run, and a key means the same with and without it."""
    seen: list[object] = []

    def body(name: str, times: int = 1, tags: list[str] = ["a"]) -> None:  # noqa: B006 - shared by all calls, by intent
        tags.append("touched")
        seen.append((name, times, tags))
        wait_for_signal("go")

    flow = workflow(name="defaulted")(body)
    first = runs.start(flow, "x", key="d")
    assert runs.start(flow, "x", 1, ["a"], key="d").id == first.id
    assert runs.start(flow, name="x", tags=["a"], key="d").id == first.id
    holder = TestHolder()
    holder.work()
    monkeypatch.setattr(body, "__defaults__", (5, ["b"]))
    flow.signature = inspect.signature(body)
    runs.start(flow, "y")
    runs.signal(first.id, "go")
    holder.work()
    assert seen.count(("x", 1, ["a", "touched"])) == 2
    assert seen.count(("y", 5, ["b", "touched"])) == 1
    assert len(seen) == 3


def test_a_parameter_that_is_new_has_its_default_and_one_per_run() -> None:
    seen: list[object] = []

    def before(name: str) -> None:
        wait_for_signal("go")

    flow = workflow(name="grows")(before)
    old = [runs.start(flow, name, key=name).id for name in "xy"]

    def after(name: str, tags: list[str] = []) -> None:  # noqa: B006 - shared by all calls, by intent
        tags.append(name)
        seen.append(tags)
        wait_for_signal("go")

    flow.fn = after
    flow.signature = inspect.signature(after)
    TestHolder().work()
    assert seen == [["x"], ["y"]]
    assert runs.start(flow, "x", key="x").id == old[0], "the same call is the same run, also after the deployment"
    with pytest.raises(KeyConflict):
        runs.start(flow, "x", ["other"], key="x")


def test_a_workflow_may_have_a_parameter_of_that_name() -> None:
    @workflow
    def about(workflow: str) -> str:
        return workflow

    run = runs.start(about, workflow="x")
    TestHolder().work()
    assert runs.result(run.id, timeout=0) == "x"


class Nobody:
    pk = 1


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"key": "k" * 501}, ValueError),
        ({"key": "".join(map(chr, range(0x4E00, 0x4E00 + 5_000)))}, ValueError),
        ({"key": "a\0b"}, ValueError),
        ({"key": "\ud800"}, ValueError),
        ({"key": 5}, TypeError),
        ({"actor": "a\0b"}, ValueError),
        ({"actor": "\ud800"}, ValueError),
        ({"actor": 5}, TypeError),
        ({"actor": Nobody()}, TypeError),
        ({"labels": {"a\0b": 1}}, ValueError),
        ({"labels": {"\ud800": 1}}, ValueError),
        ({"labels": {"a": "\0"}}, ValueError),
        ({"labels": {5: 1}}, TypeError),
        ({"labels": {"a": 1.5}}, TypeError),
        ({"labels": ["a"]}, TypeError),
        ({"priority": True}, TypeError),
        ({"priority": 1.5}, TypeError),
        ({"priority": "1"}, TypeError),
        ({"priority": 101}, ValueError),
    ],
)
def test_what_a_run_cannot_have_is_refused_and_the_transaction_goes_on(
    more: dict[str, Any], kind: type[Exception]
) -> None:
    with transaction.atomic():
        with pytest.raises((TypeError, ValueError)) as refused:
            runs.start(greets, "Ada", **more)
        assert type(refused.value) is kind
        runs.start(greets, "Bob")
    assert Run.objects.count() == 1


def test_the_longest_keys_and_names_fit() -> None:
    """Incompressible, and of four bytes a character: that is what an index entry has no room for."""
    source = chance.Random(1)
    key, other = ("".join(chr(source.randrange(0x20000, 0x2A000)) for _ in range(500)) for _ in range(2))
    name = "".join(chr(source.randrange(0x20000, 0x2A000)) for _ in range(100))
    run = runs.start(greets, "Ada", key=key)
    assert runs.start(greets, "Ada", key=key).id == run.id
    for _ in range(2):
        runs.signal(run.id, name, key=other)
    assert Message.objects.get().name == name


@pytest.mark.parametrize(
    ("name", "more", "kind"),
    [
        ("go", {"key": "k" * 501}, ValueError),
        ("go", {"key": "a\0b"}, ValueError),
        ("go", {"key": 5}, TypeError),
        ("go", {"actor": "\ud800"}, ValueError),
        ("go", {"actor": "a\0b"}, ValueError),
        ("go", {"actor": 5}, TypeError),
        ("a\0b", {}, ValueError),
        ("n" * 101, {}, ValueError),
        ("", {}, ValueError),
        (None, {}, TypeError),
    ],
)
def test_what_a_signal_cannot_have_is_refused_and_the_transaction_goes_on(
    name: str, more: dict[str, Any], kind: type[Exception]
) -> None:
    run = runs.start(greets, "Ada")
    with transaction.atomic():
        with pytest.raises((TypeError, ValueError)) as refused:
            runs.signal(run.id, name, **more)
        assert type(refused.value) is kind
        runs.signal(run.id, "go")
    assert Message.objects.count() == 1


@pytest.mark.parametrize("odd", ["a\0b", "\ud800", "x" * 5_000, "", None, 5])
def test_an_id_that_cannot_be_one_is_unknown_and_the_transaction_goes_on(odd: Any) -> None:
    calls = (lambda: runs.signal(odd, "go"), lambda: runs.get(odd), lambda: runs.input_text(odd))
    with transaction.atomic():
        for call in calls:
            with pytest.raises(UnknownRun):
                call()
        runs.start(greets, "Ada")
    with pytest.raises(UnknownRun):
        runs.result(odd, timeout=0)


@pytest.mark.parametrize(
    "more", [{"key": "a\0b"}, {"workflow": "\ud800"}, {"status": "\0"}, {"labels": {"a": "\0"}}, {"labels": {"\0": 1}}]
)
def test_looking_for_what_no_run_can_have(more: dict[str, Any]) -> None:
    with transaction.atomic():
        with pytest.raises(ValueError, match="cannot be stored"):
            runs.find(**more).exists()
        assert not runs.find(workflow="greets", labels={"a": 1}).exists()


@pytest.mark.parametrize(
    "command",
    [
        ("show_run", "\udcff"), ("signal_run", "\udcff", "go"), ("verify_journal", "\udcff"),
        ("start_run", "greets", "--input", '["x"]', "--key", "\udcff"), ("start_run", "greets", "--as", "\udcff"),
        ("start_run", "greets", "--input", '{"name": "x", "labels": 5}'),
        ("start_run", "greets", "--input", '{"name": "x", "priority": 5}'),
    ],
)  # fmt: skip
def test_the_commands_answer_odd_arguments_in_one_line(command: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        call_command(*command)
    assert Run.objects.count() == 0
