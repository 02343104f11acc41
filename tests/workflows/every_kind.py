"""Workflows that write every kind of event, for the test that dies at each append.

Each execution of a step leaves a row: `effects(run, key, path, step)` in a table of the test's own, written and
committed apart from the journal, as an outside system would keep it.
"""

from __future__ import annotations

from decimal import Decimal

from django.db import connection

from approvals import Rejected, require_approval, requires_approval
from journal import (
    Retry,
    current_run,
    current_step,
    now,
    progress,
    random,
    set_labels,
    sleep,
    step,
    uuid4,
    wait_for_signal,
    workflow,
)
from journal.errors import StepFailed, WaitTimeout

CREATE = "CREATE TABLE IF NOT EXISTS effects (id bigserial, run text, key text, path text, step text)"


def effect() -> None:
    """Something happens outside."""
    info = current_step()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO effects (run, key, path, step) VALUES (%s, %s, %s, %s)",
            [info.run_id, info.idempotency_key, info.path, current_run().workflow],
        )


class Hopeless(Exception):
    """Cannot be built again: it takes an argument that is not stored."""

    def __init__(self, *, thing: object) -> None:
        super().__init__(f"hopeless {type(thing).__name__}")


@step(name="every_kind.plain")
def plain(amount: Decimal) -> Decimal:
    effect()
    return amount * 2


@step(name="every_kind.large")
def large() -> str:
    effect()
    return "x" * 5_000


@step(name="every_kind.flaky", retry=Retry(max_attempts=3, first=0.01))
def flaky() -> int:
    effect()
    if current_step().attempt < 3:
        raise ConnectionError("not yet")
    return current_step().attempt


@step(name="every_kind.hopeless", retry=Retry(max_attempts=1))
def hopeless() -> None:
    effect()
    raise Hopeless(thing=object())


@requires_approval(policy="refunds", summary=lambda amount, matched: f"Refund {amount}")
@step(name="every_kind.approved_refund")
def approved_refund(amount: Decimal, matched: bool) -> Decimal:
    effect()
    return amount


@step(name="every_kind.bare_refund")
def bare_refund(amount: Decimal) -> Decimal:
    effect()
    return amount


@workflow(owner="lead")
def every_kind(amount: Decimal) -> list[str]:
    said = [str(plain(amount)), str(len(large()))]
    set_labels(stage="drawn")
    drawn = (now(), uuid4(), random().random())
    progress("half of it")
    sleep(0.01)
    said.append(str(flaky()))
    try:
        hopeless()
    except StepFailed as error:
        said.append(str(error))
    try:
        wait_for_signal("never", timeout=0.01)
    except WaitTimeout:
        said.append("timed out")
    said.append(str(wait_for_signal("go")))
    said.append(str(approved_refund(Decimal("5.00"), True)))
    for asked in (Decimal("50.00"), Decimal("66.00")):
        try:
            said.append(str(approved_refund(asked, False)))
        except Rejected as no:
            said.append(f"rejected: {no.reason}")
    permit = require_approval(bare_refund.call(Decimal("70.00")), policy="refunds", summary="Refund 70.00")
    said.append(str(permit.run()))
    assert len(drawn) == 3
    return said


@workflow(owner="lead")
def fails_at_the_end(amount: Decimal) -> None:
    plain(amount)
    approved_refund(Decimal("50.00"), False)
    raise ValueError("as it should")
