"""The refund ledger: one refund per key, every call counted."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from agents.errors import LedgerRefused
from agents.examples import ledger

AMOUNT = Decimal("12.40")


@pytest.mark.django_db
def test_a_second_call_with_the_key_gets_the_first_receipt_and_is_counted() -> None:
    first = ledger.refund(key="k1", invoice="C1", amount=AMOUNT)
    assert ledger.refund(key="k1", invoice="C1", amount=Decimal("12.4")) == first
    assert ledger.entries() == [{"key": "k1", "invoice": "C1", "amount": "12.40", "calls": 2}]


@pytest.mark.django_db
def test_another_key_is_another_refund_even_for_the_same_invoice() -> None:
    first = ledger.refund(key="k1", invoice="C1", amount=AMOUNT)
    assert ledger.refund(key="k2", invoice="C1", amount=AMOUNT).number != first.number
    assert [entry["calls"] for entry in ledger.entries()] == [1, 1]


@pytest.mark.django_db
@pytest.mark.parametrize(("invoice", "amount"), [("C2", AMOUNT), ("C1", Decimal("12.41"))])
def test_a_key_with_another_invoice_or_amount_is_refused_counted_and_pays_nothing(
    invoice: str, amount: Decimal
) -> None:
    ledger.refund(key="k1", invoice="C1", amount=AMOUNT)
    with pytest.raises(LedgerRefused, match=r"key k1 came before with 12\.40 for C1"):
        ledger.refund(key="k1", invoice=invoice, amount=amount)
    assert ledger.entries() == [{"key": "k1", "invoice": "C1", "amount": "12.40", "calls": 2}]


@pytest.mark.django_db
@pytest.mark.parametrize("amount", ["-0.01", "NaN", "Infinity", "0.0001"])
def test_an_amount_that_cannot_be_paid_is_refused(amount: str) -> None:
    with pytest.raises(LedgerRefused, match="an amount from 0 up"):
        ledger.refund(key="k1", invoice="C1", amount=Decimal(amount))
    assert ledger.entries() == []


@pytest.mark.django_db
def test_a_call_without_a_key_is_refused() -> None:
    with pytest.raises(LedgerRefused):
        ledger.refund(key="", invoice="C1", amount=AMOUNT)


@pytest.mark.django_db(transaction=True)
def test_two_calls_with_one_key_at_the_same_moment_are_one_refund_and_two_calls() -> None:
    def call(_: int) -> ledger.Receipt:
        try:
            return ledger.refund(key="k1", invoice="C1", amount=AMOUNT)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        receipts = set(pool.map(call, range(40)))
    assert len(receipts) == 1
    assert [entry["calls"] for entry in ledger.entries()] == [40]


@pytest.mark.django_db(transaction=True)
def test_the_ledger_cannot_be_part_of_a_callers_transaction() -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        ledger.refund(key="k1", invoice="C1", amount=AMOUNT)
    assert ledger.entries() == []


@pytest.mark.django_db
def test_the_command_prints_one_json_array_or_lines_for_people() -> None:
    ledger.refund(key="k1", invoice="C1", amount=AMOUNT)
    out = StringIO()
    call_command("returns_ledger", "--json", stdout=out)
    assert json.loads(out.getvalue()) == [{"key": "k1", "invoice": "C1", "amount": "12.40", "calls": 1}]
    out = StringIO()
    call_command("returns_ledger", stdout=out)
    first, last = out.getvalue().splitlines()
    assert first.split() == ["C1", "12.40", "1x", "k1"]
    assert last == "1 refund"
