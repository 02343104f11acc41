"""Refunds that a test can hold still, for workers that are killed, stopped or asked to leave in the middle of one.

A gate is a folder. A step writes `<place>.<n>` into it when it gets to a place for the n-th time, its process id
as the content, and goes on when a file `<place>.go` is there: places without a gate are not waited at. A test
waits for the first and writes the second. What was executed how often is the number of those files.

Loaded by a worker whose SIGNOFF_WORKFLOWS names this module.
"""

from __future__ import annotations

import ctypes
import os
import time
from decimal import Decimal
from pathlib import Path

from agents.examples import ledger
from approvals import Rejected, requires_approval
from journal import current_step, step, workflow

PLACES = ("before", "inside", "after")
_LIMIT = 120.0


def hold(gates: str, place: str, *, waits: bool) -> None:
    """Write down that this place was reached; wait for its gate to open if the test wants that."""
    folder = Path(gates)
    for count in range(1, 1000):
        try:
            with (folder / f"{place}.{count}").open("x") as mark:
                mark.write(str(os.getpid()))
            break
        except FileExistsError:
            continue
    give_up = time.monotonic() + _LIMIT
    while waits and not (folder / f"{place}.go").exists():
        if time.monotonic() > give_up:
            raise TimeoutError(f"nobody opened {place} in {_LIMIT:.0f} s")
        time.sleep(0.02)


def marks(gates: Path, place: str) -> list[int]:
    """The process ids that reached a place, in order."""
    found = sorted(gates.glob(f"{place}.[0-9]*"), key=lambda path: int(path.suffix[1:]))
    return [int(path.read_text() or 0) for path in found]


def open_gate(gates: Path, place: str) -> None:
    """Let whoever waits at a place go on, and all who come later."""
    (gates / f"{place}.go").touch()


@step
def slow_lookup(gates: str) -> str:
    """A step before the one that is held: it must not be executed a second time."""
    hold(gates, "lookup", waits=False)
    return "looked up"


def _call(invoice: str, amount: Decimal, gates: str, held: str) -> ledger.Receipt:
    """`held` is where it waits: before the call, inside (the ledger has paid, the answer is not back), or after."""
    hold(gates, "before", waits=held == "before")
    receipt = ledger.refund(key=current_step().idempotency_key, invoice=invoice, amount=amount)
    hold(gates, "inside", waits=held == "inside")
    return receipt


@step
def slow_refund(invoice: str, amount: Decimal, gates: str, held: str) -> ledger.Receipt:
    """Pays with nobody asked."""
    return _call(invoice, amount, gates, held)


@requires_approval(policy="refunds", summary=lambda invoice, amount, **_: f"Refund {amount} for {invoice}, slowly")
@step
def slow_approved_refund(invoice: str, amount: Decimal, matched: bool, gates: str, held: str) -> ledger.Receipt:
    """Pays after the policy "refunds" let it."""
    return _call(invoice, amount, gates, held)


@step
def slow_close(gates: str, held: str) -> None:
    """A step after the refund: once it has begun, the refund is in the journal."""
    hold(gates, "after", waits=held == "after")


@workflow
def slow_return(invoice: str, amount: str, gates: str, held: str = "") -> str:
    """Look up, refund, close; held at one of PLACES or, with "", nowhere."""
    slow_lookup(gates)
    receipt = slow_refund(invoice, Decimal(amount), gates, held)
    slow_close(gates, held)
    return receipt.number


@workflow(owner="support-lead")
def slow_approved_return(invoice: str, amount: str, matched: bool, gates: str, held: str = "") -> str:
    """The same with a refund that needs an approval."""
    slow_lookup(gates)
    try:
        receipt = slow_approved_refund(invoice, Decimal(amount), matched, gates, held)
    except Rejected as no:
        return f"not refunded: {no.reason}"
    slow_close(gates, held)
    return receipt.number


@step
def stubborn(gates: str, seconds: float) -> str:
    """Holds the interpreter's lock: no other thread of the worker runs, its heartbeat neither."""
    hold(gates, "stubborn", waits=False)
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return "done"


@workflow
def stubborn_run(gates: str, seconds: float) -> str:
    """One step that holds the interpreter's lock for some seconds."""
    return stubborn(gates, seconds)
