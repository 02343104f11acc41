"""An independent computation of what the returns example must do. Imports nothing of the project.

Money is counted in whole thousandths, times are compared as text, each purchase is a lot of its own, and a
return takes from the *newest* lots first and gives them back if one of its lines finds too little: another road
to the same figures.

As a program: `python tests/oracles/returns_oracle.py RETURNS ORDERS` prints the totals as JSON.
"""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

RULE_LIMIT = 25_000


@dataclass(frozen=True)
class Verdict:
    """What must become of one invoice; the amount is in thousandths."""

    matched: bool
    thousandths: int

    @property
    def by_rule(self) -> bool:
        """Whether no person is asked."""
        return self.matched and self.thousandths <= RULE_LIMIT

    @property
    def amount(self) -> Decimal:
        """The amount as a decimal."""
        return Decimal(self.thousandths) / 1000


@dataclass(frozen=True)
class Totals:
    """The figures over all invoices; money as text with two or three decimals."""

    invoices: int
    matched: int
    by_rule: int
    by_rule_amount: str
    amount: str


def verdicts(returns: Path, orders: Path) -> dict[str, Verdict]:
    """The verdict on each invoice number."""
    shelves: dict[str, list[tuple[str, list[int]]]] = {}
    for row in _rows(orders):
        shelves.setdefault(_shelf(row), []).append((row["InvoiceDate"], [int(row["Quantity"])]))
    for lots in shelves.values():
        lots.sort(key=lambda lot: lot[0], reverse=True)

    grouped: dict[str, list[dict[str, str]]] = {}
    for row in _rows(returns):
        grouped.setdefault(row["InvoiceNo"], []).append(row)
    dated = sorted((min(row["InvoiceDate"] for row in rows), number) for number, rows in grouped.items())

    found = {}
    for date, number in dated:
        rows = grouped[number]
        worth = sum(-int(row["Quantity"]) * _thousandths(row["UnitPrice"]) for row in rows)
        found[number] = Verdict(_take_all(rows, shelves, date), worth)
    return found


def totals(of: dict[str, Verdict]) -> Totals:
    """The sums over all verdicts."""
    ruled = [verdict for verdict in of.values() if verdict.by_rule]
    return Totals(
        invoices=len(of),
        matched=sum(verdict.matched for verdict in of.values()),
        by_rule=len(ruled),
        by_rule_amount=money(sum(verdict.thousandths for verdict in ruled)),
        amount=money(sum(verdict.thousandths for verdict in of.values())),
    )


def money(thousandths: int) -> str:
    """Thousandths as text, with a third decimal only where it is not 0."""
    text = f"{thousandths // 1000}.{thousandths % 1000:03d}"
    return text.removesuffix("0")


def _take_all(rows: list[dict[str, str]], shelves: dict[str, list[tuple[str, list[int]]]], date: str) -> bool:
    taken: list[tuple[list[int], int]] = []
    for row in rows:
        wanted = -int(row["Quantity"])
        lots = shelves.get(_shelf(row), []) if row["CustomerID"] else []
        for bought, rest in lots:
            if bought < date and wanted:
                part = min(wanted, rest[0])
                rest[0] -= part
                wanted -= part
                taken.append((rest, part))
        if wanted:
            for rest, part in taken:
                rest[0] += part
            return False
    return True


def _shelf(row: dict[str, str]) -> str:
    return "\x1f".join((row["CustomerID"].removesuffix(".0"), row["StockCode"], str(_thousandths(row["UnitPrice"]))))


def _thousandths(price: str) -> int:
    whole, _, part = price.partition(".")
    if len(part) > 3:
        raise ValueError(price)
    return int(whole) * 1000 + int(part.ljust(3, "0"))


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    print(json.dumps(asdict(totals(verdicts(Path(sys.argv[1]), Path(sys.argv[2]))))))
