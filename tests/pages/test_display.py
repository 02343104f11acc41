"""Values for people's eyes: nothing hides, nothing is endless."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from html import unescape

import pytest

from journal import characters, codec, display, times
from journal.templatetags import signoff


def drawn(text: str) -> list[str]:
    """The marks in the order in which a reader sees them."""
    return [piece.mark for piece in characters.pieces(text) if piece.mark]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("pay\u202egpj.exe", ["U+202E"]),
        ("note\u200bworthy", ["U+200B"]),
        ("a\u2066b\u2069", ["U+2066", "U+2069"]),
        ("x\u200b\u200b\u200by", ["U+200B × 3"]),
        ("\x1b[31mred", ["U+001B"]),
        ("null\x00", ["U+0000"]),
        ("half \ud800", ["U+D800"]),
        ("tag \U000e0041", ["U+E0041"]),
        ("no\u00a0break", ["U+00A0"]),
        ("❤\ufe0f", ["U+FE0F"]),
        ("\u3164", ["U+3164"]),
        ("p\u0430ypal", ["U+0430"]),
        ("\u0440\u0430\u0443\u0440\u0430\u04cf", ["U+0440", "U+0430", "U+0443", "U+0440", "U+0430", "U+04CF"]),
        (" 10482", ["U+0020"]),
        ("10482 ", ["U+0020"]),
        ("a" + "\n" * 301 + "b", ["300 blank lines"]),
        ("tab\there", ["U+0009"]),
    ],
)
def test_what_a_reader_would_not_see_is_drawn(text: str, marks: list[str]) -> None:
    """C25."""
    assert drawn(text) == marks
    assert "".join(piece.text for piece in characters.pieces(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "Visa ending 4417",
        "Grüße aus Köln",
        "Привет, мир",
        "日本語のテキスト",
        "two\n\nparagraphs",
        "```*_~`",
        "5 €, 12 µg",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert drawn(text) == []


def test_marked_text_is_inert_and_isolated() -> None:
    """F1, C25."""
    html = signoff.marked('<script>alert(1)</script>\u202e" onload=x')
    assert html.startswith('<bdi class="data" hx-disable>')
    assert "<script" not in html
    assert "\u202e" not in html
    assert unescape(html).count("<script>") == 1
    assert '<span class="codepoint">U+202E</span>' in html


def test_long_text_says_how_long_it_is_and_nothing_longer_is_shown() -> None:
    """C24: 150 harmless characters hide nothing; 5 kB is cut where everybody sees it."""
    harmless = display.fields_of(codec.encode({"note": "x" * 150 + " then the harm"}))[0][1]
    assert harmless.text.endswith("then the harm")
    assert not harmless.is_long
    folded = display.fields_of(codec.encode({"note": "y" * 3000}))[0][1]
    assert folded.is_long
    assert folded.rule == "text, 3,000 characters"
    assert len(folded.text) == 3000
    cut = display.fields_of(codec.encode({"note": "z" * 5_000_000}))[0][1]
    assert cut.is_cut
    assert cut.length == 5_000_000
    assert len(cut.text) == display.INLINE_LIMIT


def test_each_field_is_shown_with_its_type() -> None:
    """A22: the amount on the card is the amount that runs, to the last digit."""
    values = {
        "amount": Decimal("0.1") * 3,
        "big": 2**80,
        "yes": True,
        "none": None,
        "empty": "",
        "list": [],
        "deep": {"a": {"b": [1]}},
        "lines": [{"code": "D", "price": Decimal("27.50")}, {"code": "M", "price": Decimal("1.00")}],
        "when": datetime(2026, 1, 1, tzinfo=UTC),
    }
    shown = dict(display.fields_of(codec.encode(values)))
    assert (shown["amount"].text, shown["amount"].rule) == ("0.3", "decimal")
    assert shown["big"].text == str(2**80)
    assert (shown["yes"].text, shown["yes"].rule) == ("yes", "yes / no")
    assert shown["none"].kind == shown["empty"].kind == shown["list"].kind == "nothing"
    assert shown["deep"].kind == "code"
    assert shown["lines"].columns == ("code", "price")
    assert shown["lines"].rows == (("D", "27.50"), ("M", "1.00"))
    assert shown["when"].text == "2026-01-01T00:00:00+00:00"


def test_a_dict_shows_every_entry_whatever_its_keys_are() -> None:
    """AUTHORITY 3: two keys that read alike are two entries."""
    shown = dict(display.fields_of(codec.encode({"amounts": {1: Decimal("90000.0"), "1": Decimal("5.0")}})))["amounts"]
    assert shown.rule == "2 fields"
    assert '[1, "90000.0"]' in shown.text
    assert '["1", "5.0"]' in shown.text


def test_a_table_puts_each_value_under_its_own_name() -> None:
    """AUTHORITY 3: like records may hold their fields in another order."""
    lines = [{"code": "D", "price": "1"}, {"price": "2", "code": "M"}]
    shown = dict(display.fields_of(codec.encode({"lines": lines})))["lines"]
    assert shown.columns == ("code", "price")
    assert shown.rows == (("D", "1"), ("M", "2"))


@pytest.mark.parametrize("value", [timedelta(days=3, microseconds=1), [timedelta(1)], {"a": timedelta(1)}])
def test_a_length_of_time_can_be_shown(value: object) -> None:
    assert display.shown(json.loads(codec.encode(value))).text


@pytest.mark.parametrize(
    "value",
    [
        "z" * 60_000 + "END",
        [0] * 20_000 + ["END"],
        {"rows": [[[[number]]] for number in range(5_000)], "last": "END"},
        {str(number): number for number in range(4_000)} | {"last": "END"},
        {number: number for number in range(4_000)} | {"last": "END"},
    ],
)
def test_with_room_for_it_a_value_is_shown_to_its_end(value: object) -> None:
    """AUTHORITY 3: what a person is asked to approve, they can read on the page."""
    stored = codec.encode({"value": value})
    assert len(stored) <= display.WHOLE_LIMIT
    for whole in (
        display.fields_of(stored, display.WHOLE_LIMIT)[0][1],
        display.preview(stored, limit=display.WHOLE_LIMIT),
    ):
        assert not whole.is_cut
        assert "END" in whole.text
        assert len(whole.text) <= display.WHOLE_LIMIT
    assert display.fields_of(stored)[0][1].is_cut


@pytest.mark.parametrize("size", [10, 100_000])
def test_many_keys_and_much_depth_are_bounded(size: int) -> None:
    """F4."""
    deep: list[object] = []
    for _ in range(150):
        deep = [deep]
    values = {"keys": {str(number): number for number in range(size)}, "deep": deep}
    for _name, value in display.fields_of(codec.encode(values)):
        assert len(value.text) <= display.INLINE_LIMIT


@pytest.mark.parametrize("stored", ['{"broken', "[" * 100_000, '{"$": "nonsense", "v": 1}', "null", '"text"'])
def test_a_stored_text_that_cannot_be_read_is_shown_as_it_is(stored: str) -> None:
    assert display.fields_of(stored)
    assert display.preview(stored).text
    assert display.one_line(stored)
    assert display.event_line(stored)
    assert display.error_line(stored)


# ---------------------------------------------------------------- times


NOW = datetime(2026, 11, 30, 14, 48, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (38 * 60, "38 min"),
        (7800, "2 h 10 min"),
        (3660, "1 h 01 min"),
        (7200, "2 h"),
        (42 * 3600, "1 d 18 h"),
        (86400, "1 d"),
        (86400 + 30 * 60, "1 d"),
        (-17996, "0 s"),
    ],
)
def test_lengths_in_words(seconds: int, words: str) -> None:
    """F7: a clock that is behind never gives "-17996 s ago"."""
    assert times.length(timedelta(seconds=seconds)) == words


def test_times_name_their_zone_and_day() -> None:
    """F7."""
    assert times.clock(NOW, NOW) == "14:48 UTC"
    assert times.clock(NOW + timedelta(days=1), NOW) == "Tue 14:48 UTC"
    assert times.clock(NOW + timedelta(days=30), NOW) == "30 Dec 14:48 UTC"
    assert times.clock(NOW + timedelta(days=60), NOW) == "29 Jan 2027 14:48 UTC"
    elsewhere = NOW.astimezone(timezone(timedelta(hours=13)))
    assert times.clock(elsewhere, NOW) == "14:48 UTC"
    assert times.stamp(elsewhere) == "2026-11-30T14:48:20.000Z"
    assert times.until(NOW + timedelta(minutes=42), NOW) == "in 42 min"
    assert times.until(NOW - timedelta(minutes=42), NOW) == "past"
    assert times.ago(NOW + timedelta(seconds=5), NOW) == "just now"
