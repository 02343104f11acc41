"""The refund ledger of the returns example: the outside world, inside this service.

It behaves as a payment provider does. A call brings an idempotency key; the first call with a key pays, every
further one gets the first one's receipt and pays nothing. It counts all calls, so that a test, or a person with
`manage.py returns_ledger`, can see how often the outside was touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.db import connection, transaction

from agents.errors import LedgerRefused
from agents.examples.retail import money
from agents.models import LedgerRefund

SMALLEST = Decimal("0.001")
"""Amounts are kept exactly, in multiples of this: prices have at most three decimals, and nothing is rounded."""


@dataclass(frozen=True)
class Receipt:
    """What the ledger answers: the same for each call with one key."""

    number: str
    invoice: str
    amount: Decimal


# One statement, so that two calls with one key at the same moment are one row and two calls. The row that
# comes back holds what the *first* call said. The ORM cannot count in its conflict clause.
_CALL = """
    INSERT INTO agents_ledgerrefund AS refund (key, invoice, amount, calls)
    VALUES (%s, %s, %s, 1)
    ON CONFLICT (key) DO UPDATE SET calls = refund.calls + 1, last_call_at = statement_timestamp()
    RETURNING id, invoice, amount
"""


def refund(*, key: str, invoice: str, amount: Decimal) -> Receipt:
    """Pay a refund, once per key. Raises LedgerRefused for no key, for an amount that cannot be paid, and for a
    key that came before with another invoice or amount (that call is counted and pays nothing).

    Commits by itself; inside a caller's transaction it refuses (RuntimeError), as a provider could not be rolled back.
    """
    if not key or not amount.is_finite() or amount < 0 or amount != amount.quantize(SMALLEST):
        raise LedgerRefused(f"no refund of {amount} for {invoice}: it takes a key, and an amount from 0 up")
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(_CALL, [key, invoice, amount])
        ((number, paid_invoice, paid),) = cursor.fetchall()
    if (paid_invoice, paid) != (invoice, amount):
        raise LedgerRefused(f"key {key} came before with {money(paid)} for {paid_invoice}: no {amount} for {invoice}")
    return Receipt(f"R{number:06d}", invoice, money(paid))


def entries() -> list[dict[str, object]]:
    """All refunds in the order of their first call, as `returns_ledger` prints them."""
    return [
        {"key": row.key, "invoice": row.invoice, "amount": str(money(row.amount)), "calls": row.calls}
        for row in LedgerRefund.objects.order_by("pk")
    ]
