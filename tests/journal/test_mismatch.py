"""Changed code: what does not fit the history blocks, with the difference; harmless changes do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from journal import registry, runs, step, sweeping, uuid4, wait_for_signal, workflow
from journal.describing import describe_run
from journal.errors import AlreadyRegistered
from journal.loading import load
from journal.models import Run
from journal.runner import execute_claimed
from journal.states import EventKind
from journal.workflows import Workflow
from journal.writer import Draft
from tests.journal.inprocess import TestHolder

pytestmark = pytest.mark.django_db(transaction=True)

executed: list[str] = []


def _steps() -> tuple[Any, Any, Any]:
    @step
    def one(n: int = 1) -> str:
        executed.append("one")
        return "1"

    @step
    def two(n: int = 1) -> str:
        executed.append("two")
        return "2"

    @step
    def three(n: int = 1) -> str:
        executed.append("three")
        return "3"

    return one, two, three


def recorded(body: Callable[[], object]) -> tuple[str, Workflow[..., Any]]:
    """A run of `body` that waits for its signal "go"."""
    executed.clear()
    made = workflow(name="changing")(body)
    run = runs.start(made)
    TestHolder("code-a").work()
    assert Run.objects.get(pk=run.id).status == "waiting"
    return run.id, made


def deploy(body: Callable[[], object]) -> None:
    """Loads other code under the same name and version, as a restart would."""
    registry._workflows.pop("changing", None)
    workflow(name="changing")(body)


def go_on(run_id: str, fingerprint: str) -> Run:
    """Lets a worker with that code have the run."""
    runs.signal(run_id, "go")
    TestHolder(fingerprint).work()
    return Run.objects.get(pk=run_id)


def _original() -> Callable[[], object]:
    one, two, _ = _steps()

    def body() -> object:
        one()
        two()
        wait_for_signal("go")
        return "done"

    return body


def _removed() -> Callable[[], object]:
    _, two, _ = _steps()

    def body() -> object:
        two()
        wait_for_signal("go")
        return "done"

    return body


def _swapped() -> Callable[[], object]:
    one, two, _ = _steps()

    def body() -> object:
        two()
        one()
        wait_for_signal("go")
        return "done"

    return body


def _inserted() -> Callable[[], object]:
    one, two, three = _steps()

    def body() -> object:
        one()
        two()
        three()
        wait_for_signal("go")
        return "done"

    return body


def _inserted_value() -> Callable[[], object]:
    one, two, _ = _steps()

    def body() -> object:
        uuid4()
        one()
        two()
        wait_for_signal("go")
        return "done"

    return body


def _ends_early() -> Callable[[], object]:
    one, _, _ = _steps()

    def body() -> object:
        one()
        return "done"

    return body


def _fails_early() -> Callable[[], object]:
    one, _, _ = _steps()

    def body() -> object:
        one()
        raise ValueError("not yet")

    return body


def _other_arguments() -> Callable[[], object]:
    one, two, _ = _steps()

    def body() -> object:
        one(2)
        two()
        wait_for_signal("go")
        return "done"

    return body


@pytest.mark.parametrize(
    "change", [_removed, _swapped, _inserted, _inserted_value, _ends_early, _fails_early, _other_arguments]
)
def test_changed_code_blocks_executes_nothing_and_goes_on_when_it_is_put_back(
    change: Callable[[], Callable[[], object]],
) -> None:
    original = _original()
    run_id, _ = recorded(original)
    executed.clear()
    deploy(change())
    run = go_on(run_id, "code-b")
    assert run.status == "blocked"
    assert executed == [], "a run that does not fit executed something"
    assert run.blocked is not None
    assert run.blocked["line"].rpartition(":")[0].endswith("test_mismatch.py")
    assert run.blocked["code"] == {"recorded": "code-a", "at_hand": "code-b"}
    assert run.blocked["recorded"] or run.blocked["asked"]
    shown = describe_run(run)
    assert shown["error"]["type"] == "Blocked"
    assert shown["events"][-1]["kind"] == "run_blocked"

    sweeping.unblock(registry.capabilities(), "code-b")
    assert TestHolder("code-b").work() == 0, "the same code tries again"
    deploy(original)
    sweeping.unblock(registry.capabilities(), "code-a")
    assert TestHolder("code-a").work() == 1
    run.refresh_from_db()
    assert (run.status, run.blocked, run.blocked_by) == ("completed", None, [])
    assert runs.result(run_id, timeout=0) == "done"


def test_each_code_tries_a_blocked_run_once() -> None:
    original = _original()
    run_id, _ = recorded(original)
    deploy(_swapped())
    go_on(run_id, "code-b")
    for fingerprint in ("code-c", "code-b", "code-c"):
        sweeping.unblock(registry.capabilities(), fingerprint)
        TestHolder(fingerprint).work()
    run = Run.objects.get(pk=run_id)
    assert run.status == "blocked"
    assert run.blocked_by == ["code-b", "code-c"]
    assert run.epoch == 3, "claimed for the start, by code-b and by code-c, and by nobody twice"


@dataclass
class OldOrder:
    code: str
    amount: Decimal


@dataclass
class NewOrder:
    code: str
    amount: Decimal
    note: str = ""


@dataclass
class StrictOrder:
    code: str
    amount: Decimal
    needed: int


for _kind in (OldOrder, NewOrder, StrictOrder):
    _kind.__qualname__ = "Order"  # one class, as three deploys define it


def test_harmless_changes_do_not_block() -> None:
    """A renamed local, keywords in another order, keys in another order, new optional fields and parameters."""

    @step(name="ship")
    def ship_before(order: OldOrder, options: dict[str, int]) -> str:
        return order.code

    def before() -> object:
        order = OldOrder("A", Decimal("1.50"))
        ship_before(order=order, options={"a": 1, "b": 2})
        wait_for_signal("go")
        return "done"

    run_id, _ = recorded(before)
    registry._steps.pop("ship")

    @step(name="ship")
    def ship_after(order: NewOrder, options: dict[str, int], fast: bool = False) -> str:
        return order.code

    def after() -> object:
        renamed = NewOrder("A", Decimal("1.5"))
        ship_after(options={"b": 2, "a": 1}, order=renamed)
        wait_for_signal("go")
        return "done"

    deploy(after)
    run = go_on(run_id, "code-b")
    assert run.status == "completed", run.blocked


def test_a_new_value_is_not_harmless() -> None:
    @step(name="pay")
    def pay(amount: Decimal) -> str:
        return str(amount)

    run_id, _ = recorded(lambda: (pay(Decimal("1.5")), wait_for_signal("go")))
    deploy(lambda: (pay(Decimal("1.51")), wait_for_signal("go")))
    assert go_on(run_id, "code-b").status == "blocked"


def test_a_call_before_what_is_recorded_is_never_executed() -> None:
    """History that goes on behind a position without an event: whatever is asked for there, it has not been reached."""
    one, _, _ = _steps()

    def one_call() -> object:
        return one()

    run = runs.start(workflow(name="gap")(one_call))
    holder = TestHolder()
    claim = holder.claim()
    assert claim is not None
    writer = load(*claim, holder).writer
    writer.append(Draft(EventKind.STEP_COMPLETED, "2", "two", 1, "{}", True, '{"result":"2"}'))
    executed.clear()
    execute_claimed(*claim, holder)
    assert executed == []
    blocked = Run.objects.get(pk=run.id).blocked
    assert blocked is not None
    assert blocked["reason"] == "the code asks for a call that is not recorded here"


def test_one_step_name_for_two_functions_is_refused_at_load() -> None:
    @step(name="charge")
    def charge() -> None: ...

    with pytest.raises(AlreadyRegistered, match="two functions are called step charge"):

        @step(name="charge")
        def charge_again() -> None: ...


def test_a_result_that_today_s_code_cannot_read_blocks() -> None:
    @step
    def make() -> OldOrder:
        return OldOrder("A", Decimal(1))

    def body() -> object:
        made = make()
        wait_for_signal("go")
        return made.code

    run_id, _ = recorded(body)
    registry._steps.pop("make")

    @step(name="make")
    def make_other() -> StrictOrder: ...  # type: ignore[empty-body]

    def changed() -> object:
        made = make_other()
        wait_for_signal("go")
        return made.code

    deploy(changed)
    run = go_on(run_id, "code-b")
    assert run.status == "blocked"
    assert run.blocked is not None
    assert "has no needed" in run.blocked["reason"]
