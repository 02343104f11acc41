"""The two files of the returns example: their rows, read strictly or refused with one sentence.

Both files have the columns of the UCI "Online Retail" data set. Quantities are whole numbers: negative in a
return, positive in an order. Prices are exact decimals without a currency. The files' clock names no time zone;
only the order of times matters here, so times are read as UTC.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from agents.errors import BadFile

COLUMNS = ("InvoiceNo", "StockCode", "Description", "Quantity", "InvoiceDate", "UnitPrice", "CustomerID", "Country")

_QUANTITY = re.compile(r"-?[0-9]{1,9}")
_PRICE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
_IDENTIFIER = re.compile(r"[!-~](?:[ -~]{0,38}[!-~])?")
_WHOLE_AS_FLOAT = re.compile(r"([0-9]+)\.0")
_CENT = Decimal("0.01")

T = TypeVar("T")


@dataclass(frozen=True)
class Article:
    """What a customer bought or sends back: one stock code at one unit price."""

    customer: str
    stock_code: str
    unit_price: Decimal


@dataclass(frozen=True)
class Line:
    """One line of a return as the file has it; `quantity` is negative, `customer` empty if the file names none."""

    stock_code: str
    description: str
    quantity: int
    unit_price: Decimal
    customer: str

    @property
    def article(self) -> Article:
        """What an order must hold to cover this line."""
        return Article(self.customer, self.stock_code, self.unit_price)


@dataclass(frozen=True)
class Return:
    """A cancelled invoice; `returned_at` is the earliest time among its lines."""

    invoice: str
    returned_at: datetime
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Purchase:
    """One order line; `quantity` is positive."""

    article: Article
    quantity: int
    bought_at: datetime


def money(amount: Decimal) -> Decimal:
    """The same amount with two decimals, or with as many more as it needs: never rounded."""
    return amount.quantize(_CENT) if is_whole_cents(amount) else amount.normalize()


def is_whole_cents(amount: Decimal) -> bool:
    """Whether an amount can be paid as it is."""
    return amount.quantize(_CENT) == amount


@dataclass(frozen=True)
class _Row:
    invoice: str
    at: datetime
    line: Line


def returns_in(path: str) -> tuple[Return, ...]:
    """The returns in a file, in its order. Raises BadFile for the first row that is not a line of a return."""
    rows: dict[str, list[_Row]] = {}
    for row in _rows(path, sign=-1):
        rows.setdefault(row.invoice, []).append(row)
    return tuple(
        Return(invoice, min(row.at for row in own), tuple(row.line for row in own)) for invoice, own in rows.items()
    )


def purchases_in(path: str, wanted: frozenset[Article]) -> tuple[Purchase, ...]:
    """The order lines in a file for the wanted articles. Every row is checked, wanted or not: raises BadFile."""
    return tuple(
        Purchase(row.line.article, row.line.quantity, row.at)
        for row in _rows(path, sign=1)
        if row.line.article in wanted
    )


def _rows(path: str, *, sign: int) -> Iterator[_Row]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            records = csv.reader(file, strict=True)
            if tuple(next(records, ())) != COLUMNS:
                raise BadFile(f"{path}, line 1: the columns must be {', '.join(COLUMNS)}")
            line = 2  # of the file; a quoted field may run over several, and a record's first is named
            for record in records:
                if record:  # an empty line is no row
                    yield _row(record, sign, f"{path}, line {line}")
                line = records.line_num + 1
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadFile(f"{path}: is not UTF-8") from error
    except csv.Error as error:
        raise BadFile(f"{path}, line {records.line_num}: is not CSV: {error}") from error


def _row(record: list[str], sign: int, place: str) -> _Row:
    if len(record) != len(COLUMNS):
        raise BadFile(f"{place}: has {len(record)} fields, not {len(COLUMNS)}")
    invoice, stock_code, description, quantity, at, unit_price, customer, _country = record
    try:
        return _Row(
            _checked("InvoiceNo", invoice, _identifier),
            _checked("InvoiceDate", at, _time),
            Line(
                _checked("StockCode", stock_code, _identifier),
                description,
                _checked("Quantity", quantity, _returned if sign < 0 else _bought),
                _checked("UnitPrice", unit_price, _price),
                _checked("CustomerID", customer, _customer),
            ),
        )
    except ValueError as error:
        raise BadFile(f"{place}: {error}") from error


def _checked(column: str, text: str, reader: Callable[[str], T]) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise ValueError(f"{column} {text[:40]!r} {error}") from error


def _identifier(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError("is not 1 to 40 printable ASCII characters")
    return text


def _customer(text: str) -> str:
    """The number without the ".0" that a table program left on it; empty stays empty."""
    if not text:
        return text
    whole = _WHOLE_AS_FLOAT.fullmatch(text)
    return whole[1] if whole else _identifier(text)


def _returned(text: str) -> int:
    quantity = _whole(text)
    if quantity >= 0:
        raise ValueError("is not negative: this is no return")
    return quantity


def _bought(text: str) -> int:
    quantity = _whole(text)
    if quantity <= 0:
        raise ValueError("is not positive: this is no order")
    return quantity


def _whole(text: str) -> int:
    if not _QUANTITY.fullmatch(text):
        raise ValueError("is not a whole number")
    return int(text)


def _price(text: str) -> Decimal:
    if not _PRICE.fullmatch(text):
        raise ValueError("is not a price: digits, then at most three decimals")
    return money(Decimal(text))


def _time(text: str) -> datetime:
    if not _TIME.fullmatch(text):
        raise ValueError("is not a time like 2010-12-01 09:41:00")
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError("is not a time of the calendar") from None
