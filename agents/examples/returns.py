"""Returned goods: a batch reads the files, and each return is refunded, by rule or after a person agreed.

`returns_batch` reads the shop's two files, decides by the purchases which returns are matched
(agents.examples.matching), and starts one run of `handle_return` per invoice. That run asks the model client for
a proposal, which is words for the person who decides, and then wants to refund: the policy's rule lets a matched
return of at most 25.00 pass, every other waits for a person. Whether a return is matched comes from the files and
never from a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from agents.clients import Answer
from agents.errors import AgentsError, BadFile, LedgerRefused
from agents.examples import ledger, retail
from agents.examples.matching import Case, amount_of, match
from agents.examples.proposal import proposal_for
from agents.examples.retail import Article, Line, Purchase, Return
from approvals import Expired, Rejected, requires_approval
from journal import KeyConflict, Retry, current_run, current_step, progress, runs, set_labels, step, workflow

OWNER = "support-lead"
STARTS_PER_STEP = 50


@dataclass(frozen=True)
class Batch:
    """What a batch found. `different` are invoices that already have a run with another input: left as they are."""

    invoices: int
    matched: int
    amount: Decimal
    different: tuple[str, ...]


@step(retry=Retry(never=(BadFile,)))
def read_returns(path: str) -> tuple[Return, ...]:
    """The returns in the file; every row is checked."""
    return retail.returns_in(path)


@step(retry=Retry(never=(BadFile,)))
def read_orders(path: str, wanted: frozenset[Article]) -> tuple[Purchase, ...]:
    """The purchases of these articles; the rest of the file is checked, and not kept in the journal."""
    return retail.purchases_in(path, wanted)


@step
def start_returns(cases: tuple[Case, ...]) -> tuple[str, ...]:
    """Start a run per return, for the batch's own starter. Returns the invoices whose run has another input.

    Executed again after a crash it finds the runs of the first time: the invoice number is the run's key, and the
    same key with the same input is the same run.
    """
    different = []
    starter = current_run().actor
    for case in cases:
        found = case.found
        try:
            runs.start(
                handle_return,
                found.invoice,
                found.lines,
                case.matched,
                case.misfits,
                key=found.invoice,
                actor=starter,
            )
        except KeyConflict:
            different.append(found.invoice)
    return tuple(different)


@step(retry=Retry(never=(AgentsError,)))
def propose(invoice: str, amount: Decimal, matched: bool, misfits: tuple[str, ...]) -> Answer:
    """What the model client would do with this return: words for the person who decides."""
    return proposal_for(invoice, amount, matched, misfits)


def _summary(*, invoice: str, customer: str, amount: Decimal, **_: object) -> str:
    whom = f"to customer {customer}" if customer else "to an unknown customer"
    return f"Refund {amount} {whom} for return {invoice}"


def _facts(*, misfits: tuple[str, ...], proposal: Answer, **_: object) -> dict[str, object]:
    return {"does not fit": list(misfits), f"Proposal ({proposal.written_by})": proposal.text}


@requires_approval(policy="refunds", summary=_summary, facts=_facts)
@step(retry=Retry(never=(LedgerRefused,)))
def refund(
    invoice: str,
    customer: str,
    amount: Decimal,
    matched: bool,
    misfits: tuple[str, ...],
    lines: tuple[Line, ...],
    proposal: Answer,
) -> ledger.Receipt:
    """Pay the refund. A worker that dies in the call leaves a second call with the same key, and one refund."""
    return ledger.refund(key=current_step().idempotency_key, invoice=invoice, amount=amount)


@workflow(owner=OWNER)
def returns_batch(returns: str, orders: str) -> Batch:
    """Read both files (paths as the workers see them) and start a run for each returned invoice.

    A row that cannot be read fails the batch, naming file and line, before anything is started.
    """
    found = read_returns(returns)
    wanted = frozenset(line.article for one in found for line in one.lines)
    cases = match(found, read_orders(orders, wanted))
    different: list[str] = []
    for first in range(0, len(cases), STARTS_PER_STEP):
        different += start_returns(cases[first : first + STARTS_PER_STEP])
        progress(f"{min(first + STARTS_PER_STEP, len(cases))} of {len(cases)} returns started")
    worth = retail.money(sum((amount_of(case.found.lines) for case in cases), Decimal(0)))
    return Batch(len(cases), sum(case.matched for case in cases), worth, tuple(different))


@workflow(owner=OWNER)
def handle_return(invoice: str, lines: tuple[Line, ...], matched: bool, misfits: tuple[str, ...]) -> str:
    """Refund one return, if the rule or a person agrees. Returns a sentence on what became of it."""
    amount = amount_of(lines)
    customer = ", ".join(sorted({line.customer for line in lines} - {""}))
    set_labels(customer=customer, matched=matched)
    proposal = propose(invoice, amount, matched, misfits)
    try:
        receipt = refund(invoice, customer, amount, matched, misfits, lines, proposal)
    except Rejected as no:
        return f"not refunded: {no.reason}"
    except Expired:
        return "not refunded: nobody decided in time"
    return f"refunded {receipt.amount}, receipt {receipt.number}"
