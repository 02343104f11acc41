"""What is shown is what is hashed: all fields count, and only equal values of one type are equal."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.digests import action_digest, canonical
from journal.codec import encode


@dataclass(frozen=True)
class Order:
    number: str
    total: Decimal


BASE = {
    "step": "refund",
    "args": encode({"order": "10482", "amount": Decimal("420.00")}),
    "summary": "Refund 420.00",
    "facts": encode({"matched": True}),
    "risk": "medium",
    "authority": "{}",
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal(100), Decimal("100.00")),
        (Decimal("1E+2"), Decimal("100.0")),
        (Decimal(0), Decimal("-0.000")),
        ({"a": 1, "b": Decimal("1.0")}, {"b": Decimal(1), "a": 1}),
        ({1: "x", 2: "y"}, {2: "y", 1: "x"}),
        ({Decimal("1.0"), Decimal(2)}, {Decimal("2.0"), Decimal(1)}),
        ([Order("1", Decimal("1.50"))], [Order("1", Decimal("1.5"))]),
    ],
    ids=repr,
)
def test_equal_values_have_one_canonical_form(one: Any, other: Any) -> None:
    assert canonical(encode(one)) == canonical(encode(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal(100), 100),
        (100, "100"),
        (100, 100.0),
        (True, 1),
        (None, ""),
        ([1, 2], [2, 1]),
        ([1, 2], (1, 2)),
        (Decimal("0.1"), Decimal("0.10000000000000000000000000000000000000001")),
        (Decimal("1E+30"), Decimal("1E+31")),
        (Decimal(-5), Decimal(5)),
        ({"a": 1}, {"a": 1, "b": None}),
        ("a", "a\u200b"),
    ],
    ids=repr,
)
def test_values_that_differ_have_different_forms(one: Any, other: Any) -> None:
    assert canonical(encode(one)) != canonical(encode(other))


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 40))
def test_trailing_zeros_never_matter(number: Decimal, zeros: int) -> None:
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    longer = Decimal((sign, digits + (0,) * zeros, exponent - zeros))
    assert canonical(encode(number)) == canonical(encode(longer))


@pytest.mark.parametrize("part", sorted(BASE))
def test_every_part_counts(part: str) -> None:
    changed = BASE | {part: encode({"other": 1}) if part in ("args", "facts") else "other"}
    assert action_digest(**changed) != action_digest(**BASE)


def test_parts_do_not_run_into_each_other() -> None:
    assert action_digest(**(BASE | {"risk": "a", "authority": "bc"})) != action_digest(
        **(BASE | {"risk": "ab", "authority": "c"})
    )
