"""Which returns are matched by an earlier purchase, and what does not fit about each.

A return is *matched* when for each of its lines the same customer bought the same stock code at the same unit
price earlier, in sufficient quantity not yet taken by an earlier matched return: all its lines or none.
This is how the sentence is read here; for the files of the issue each other reading gives other figures or the same:

- *Earlier* means strictly before the return's time. A purchase in the same minute does not count
  (with it, 148 of the 384 returns would match and not 147).
- Returns are taken in order of date, then number, as text. The date of a return is the earliest among its lines.
- Each row counts, repeated ones too: two equal order lines are twice the quantity, and lines of one return that
  name the same article ask for the sum of their quantities.
- What is not goods can match like anything else: postage that was paid may be paid back (without it, 144 would
  match). It is shown to the person all the same.
- Prices are compared as numbers (2.1 is 2.10), customers without the ".0" at their end, stock codes as they are.
- A line without a customer matches nothing.
- A return that does not match takes nothing, so it is never in the way of a later one.

Since returns are taken in order of time, what can be taken is always "bought so far less taken so far": which of
several purchases covers a line makes no difference to any later return.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from agents.examples.retail import Article, Line, Purchase, Return, is_whole_cents, money

LARGE = Decimal("500.00")

NOT_GOODS = {
    "AMAZONFEE": "Amazon's fee",
    "B": "bad debt",
    "BANK CHARGES": "bank charges",
    "C2": "carriage",
    "CRUK": "charity commission",
    "D": "discount",
    "DOT": "postage",
    "M": "manual entry",
    "POST": "postage",
    "S": "samples",
}
"""The shop's stock codes for what is not goods, compared without regard to case."""


@dataclass(frozen=True)
class Case:
    """A return with what the files say about it. `misfits` are sentences for the person who decides."""

    found: Return
    matched: bool
    misfits: tuple[str, ...]


def amount_of(lines: Iterable[Line]) -> Decimal:
    """What a return of these lines is worth: exact, with at least two decimals, never rounded."""
    return money(-sum((line.quantity * line.unit_price for line in lines), Decimal(0)))


def match(returns: Sequence[Return], purchases: Iterable[Purchase]) -> tuple[Case, ...]:
    """Decide each return, in order of date and number, by the purchases before it."""
    coming = sorted(purchases, key=lambda purchase: purchase.bought_at, reverse=True)
    left: Counter[Article] = Counter()
    cases = []
    for found in sorted(returns, key=lambda found: (found.returned_at, found.invoice)):
        while coming and coming[-1].bought_at < found.returned_at:
            purchase = coming.pop()
            left[purchase.article] += purchase.quantity
        asked: Counter[Article] = Counter()
        for line in found.lines:
            asked[line.article] -= line.quantity
        missing = {
            article: left[article]
            for article, quantity in asked.items()
            if not article.customer or left[article] < quantity
        }
        if not missing:
            left.subtract(asked)
        cases.append(Case(found, not missing, _misfits(found, asked, missing)))
    return tuple(cases)


def _misfits(found: Return, asked: Counter[Article], missing: dict[Article, int]) -> tuple[str, ...]:
    customers = {line.customer for line in found.lines}
    codes = dict.fromkeys(line.stock_code for line in found.lines)
    amount = amount_of(found.lines)
    misfits = []
    if "" in customers:
        misfits.append("no customer")
    if len(customers - {""}) > 1:
        misfits.append(f"more than one customer: {', '.join(sorted(customers - {''}))}")
    misfits += [f"not goods: {code} ({NOT_GOODS[code.upper()]})" for code in codes if code.upper() in NOT_GOODS]
    misfits += [_no_purchase(article, asked[article], had) for article, had in missing.items() if article.customer]
    if amount > LARGE:
        misfits.append(f"above {LARGE}")
    if not is_whole_cents(amount):
        misfits.append("not a whole number of cents")
    return tuple(misfits)


def _no_purchase(article: Article, asked: int, had: int) -> str:
    sentence = f"no purchase found: {asked} of {article.stock_code} at {article.unit_price}"
    return f"{sentence}, only {had} bought earlier and not yet returned" if had else sentence
