"""Copies of the returns example's two files with rows changed at random, the same for the same seed.

Imports nothing of the project. Each copy stays valid: quantities keep their sign, prices have two decimals.
Rows of orders are taken from those that a return could be about, since a change elsewhere shows nothing.

As a program: `python tests/oracles/mutate.py FOLDER TARGET SEED [ROWS]` writes TARGET/returns.csv and orders.csv.
"""

from __future__ import annotations

import csv
import sys
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

Row = dict[str, str]

CHANGES = ("no customer", "quantity", "price", "customer", "code", "date", "removed", "repeated")
_TIME = "%Y-%m-%d %H:%M:%S"


def mutate(source: Path, target: Path, seed: int, rows: int = 20) -> list[str]:
    """Write changed copies of both files into `target`; returns what was changed, one sentence per row."""
    chance = Random(seed)
    returns, orders = _read(source / "returns.csv"), _read(source / "orders.csv")
    wanted = {(row["CustomerID"], row["StockCode"]) for row in returns}
    near = [row for row in orders if (row["CustomerID"], row["StockCode"]) in wanted]
    of_returns = sum(chance.random() < 0.5 for _ in range(rows))
    changed = [_change(row, returns, CHANGES, chance) for row in chance.sample(returns, of_returns)]
    changed += [_change(row, orders, CHANGES[1:], chance) for row in chance.sample(near, rows - of_returns)]
    target.mkdir(parents=True, exist_ok=True)
    _write(target / "returns.csv", returns)
    _write(target / "orders.csv", orders)
    return changed


def _change(row: Row, table: list[Row], kinds: tuple[str, ...], chance: Random) -> str:
    kind, before, other = chance.choice(kinds), dict(row), chance.choice(table)
    if kind == "quantity":
        size = max(1, abs(int(row["Quantity"])) + chance.choice((-5, -1, 1, 5, 100)))
        row["Quantity"] = str(-size if row["Quantity"].startswith("-") else size)
    elif kind == "price":
        cents = max(0, round(float(row["UnitPrice"]) * 100) + chance.choice((-50, -1, 1, 50, 10_000)))
        row["UnitPrice"] = f"{cents // 100}.{cents % 100:02d}"
    elif kind == "customer":
        row["CustomerID"] = other["CustomerID"]
    elif kind == "no customer":
        row["CustomerID"] = ""
    elif kind == "code":
        row["StockCode"] = other["StockCode"]
    elif kind == "date":
        moved = datetime.fromisoformat(row["InvoiceDate"]) + timedelta(days=chance.randint(-10, 10))
        row["InvoiceDate"] = moved.strftime(_TIME)
    elif kind == "removed":
        del table[_place(row, table)]
    else:
        table.insert(_place(row, table), dict(row))
    return f"{kind}: {before} -> {row}"


def _place(row: Row, table: list[Row]) -> int:
    return next(place for place, candidate in enumerate(table) if candidate is row)


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: list[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    folder, copy, number = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    print("\n".join(mutate(folder, copy, number, int(sys.argv[4]) if len(sys.argv) > 4 else 20)))
