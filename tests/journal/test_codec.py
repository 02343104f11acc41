"""Values come back as they were, typed; what cannot be stored says where it is."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from journal import codec
from journal.errors import TooLarge, Undecodable, Unstorable


class Colour(enum.Enum):
    RED = "red"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True, slots=True)
class Line:
    code: str
    amount: Decimal


@dataclass
class Order:
    lines: list[Line]
    note: str | None = None
    tags: set[str] = field(default_factory=set)


class Model(BaseModel):
    at: datetime
    order: Order | None = None


def same(one: Any, other: Any) -> bool:
    """Equal, of one type, and NaN equal to itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (one != one and other != other)
    if isinstance(one, Decimal):
        return str(one) == str(other)
    if isinstance(one, datetime):
        return (one.replace(tzinfo=None), one.utcoffset(), one.fold) == (
            other.replace(tzinfo=None), other.utcoffset(), other.fold,
        )  # fmt: skip
    if is_dataclass(one):
        return all(same(getattr(one, item.name), getattr(other, item.name)) for item in fields(one))
    return bool(one == other)


zones = st.sampled_from(
    [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), timezone(timedelta(hours=5, minutes=45))]
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(min_value=10**300, max_value=10**320),
    st.floats(), st.decimals(), st.text(st.characters()), st.text(st.sampled_from("a\0\ud83d\ude00\ud800😀$")),
    st.binary(max_size=50), st.uuids(), st.dates(), st.times(), st.timedeltas(), st.datetimes(timezones=zones),
    st.just(Colour.RED), st.just(Rights.READ | Rights.WRITE), st.just(Rights(0)),
)  # fmt: skip
hashable = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.uuids(), st.dates())
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple), st.sets(hashable, max_size=4),
        st.frozensets(hashable, max_size=4), st.dictionaries(st.text(max_size=5) | st.just("$"), inner, max_size=4),
        st.dictionaries(hashable, inner, max_size=4),
        st.builds(Order, st.lists(st.builds(Line, st.text(), st.decimals()), max_size=2), st.none() | st.text()),
        st.builds(Model, at=st.datetimes(timezones=st.just(UTC)), order=st.none()),
    ),
    max_leaves=12,
)  # fmt: skip


@given(values)
def test_values_round_trip(value: object) -> None:
    text = codec.encode(value)
    assert text.isascii()
    assert same(codec.decode(text), value)
    codec.plain(text)


def test_a_set_has_one_text_whatever_its_order() -> None:
    assert codec.encode({"b", "a", "c"}) == codec.encode({"c", "b", "a"})


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1, object()]}, "value.a[1]"),
        (Order([Line("x", object())]), "value.lines[0].amount"),  # type: ignore[arg-type]
        (datetime(2026, 1, 1), "value"),  # noqa: DTZ001 - naive is the point
        ({1: {2: lambda: None}}, "value"),
    ],
)
def test_what_cannot_be_stored_names_its_place(value: object, where: str) -> None:
    with pytest.raises(Unstorable) as caught:
        codec.encode(value)
    assert caught.value.path.startswith(where)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(Unstorable, match="contains itself"):
        codec.encode(loop)


def test_the_limit_holds_for_one_text_and_for_many() -> None:
    codec.encode("x" * (codec.LIMIT - 2))
    with pytest.raises(TooLarge, match=r"16\.0 MiB, the limit is 16 MiB"):
        codec.encode(["x" * codec.LIMIT])
    with pytest.raises(TooLarge):
        codec.encode(["x" * 1_000_000] * 17)


def test_a_record_gets_the_defaults_of_new_fields_and_misses_needed_ones() -> None:
    stored = codec.encode(Line("A", Decimal("1.10")))
    with pytest.raises(Undecodable, match="has no code"):
        codec.decode(stored.replace('["code","A"],', ""))
    assert codec.decode('{"$":"record","t":"tests.journal.test_codec:Order","v":[["lines",[]]]}') == Order([])


def test_nothing_is_imported_or_called_for_a_stored_value() -> None:
    for text in (
        '{"$":"record","t":"subprocess:Popen","v":[["args","true"]]}',
        '{"$":"enum","t":"os:system","v":"true"}',
        '{"$":"record","t":"antigravity:fly","v":[]}',
        '{"$":"other","v":1}',
    ):
        with pytest.raises(Undecodable):
            codec.decode(text)


def test_plain_is_for_people_and_needs_no_classes() -> None:
    text = codec.encode(
        {"amount": Decimal("420.00"), "at": datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
         "day": date(2026, 1, 2), "hour": time(1, 2), "id": UUID(int=1), "order": Order([Line("A", Decimal("1.10"))]),
         "nan": float("nan"), "big": 10**30, "pair": (1, 2)}
    )  # fmt: skip
    assert codec.plain(text.replace("tests.journal.test_codec", "gone.module")) == {
        "amount": "420.00", "at": "2026-03-29T02:30:00+01:00", "day": "2026-01-02", "hour": "01:02:00",
        "id": "00000000-0000-0000-0000-000000000001",
        "order": {"lines": [{"code": "A", "amount": "1.10"}], "note": None, "tags": []},
        "nan": "NaN", "big": 10**30, "pair": [1, 2],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({1: Decimal(90000), "1": Decimal(5)}, [[1, "90000"], ["1", "5"]]),
        ({1: "a", 2: "b"}, [[1, "a"], [2, "b"]]),
        ({None: 1, "null": 2}, [[None, 1], ["null", 2]]),
        ({Decimal(1): 1, "1": 2}, [["1", 1], ["1", 2]]),
        ({date(2026, 1, 2): 1, "2026-01-02": 2}, [["2026-01-02", 1], ["2026-01-02", 2]]),
        ({date(2026, 1, 2): 1}, {"2026-01-02": 1}),
        ({(1, 2): {3: 4}}, [[[1, 2], [[3, 4]]]]),
        ({"\ud800": 1, "a": 2}, {"\ud800": 1, "a": 2}),
        ({"$": 1, "a": 2}, {"$": 1, "a": 2}),
    ],
)
def test_plain_keeps_every_entry_of_a_dict(value: dict[Any, Any], shown: Any) -> None:
    """Keys that are not all text, or read alike, come as pairs: two of them never become one."""
    assert codec.plain(codec.encode(value)) == shown


@given(st.dictionaries(hashable, st.integers(), max_size=5))
def test_plain_loses_no_entry_whatever_the_keys_are(value: dict[Any, int]) -> None:
    assert len(codec.plain(codec.encode(value))) == len(value)
