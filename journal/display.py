"""What a stored value looks like to a person: as text in which nothing hides, and never more than fits.

Pages, lists and messages show data only through this module. It returns plain text and where to mark it;
templates escape it (journal/templatetags/signoff.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from journal import codec
from journal.characters import count_hidden
from journal.errors import Undecodable

INLINE_LIMIT = 4000
"""The most characters of one value that a page shows; the rest is a download."""

WHOLE_LIMIT = 64 * 1024
"""What somebody is asked to agree to is shown to its end, up to so many characters of stored text."""

FOLD_ABOVE = 400
"""Longer text is folded, and says how long it is."""

_READABLE = 16 * 1024
"""Longer structures are shown as they are stored: laying them out would take longer than anyone reads."""

_COLUMNS = 8
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, Undecodable)
"""What reading a stored text that is not, or no longer, the codec's can end with."""


@dataclass(frozen=True)
class Shown:
    """A value as a page shows it: its beginning, and what there is of it."""

    text: str
    """Never longer than the limit that was asked for."""
    kind: str
    """`text`, `amount`, `table`, `record`, `items`, `code`, or `nothing` for an empty value."""
    rule: str
    """Its type and extent, in words."""
    length: int
    """Characters of the whole."""
    hidden: int
    """Characters of `text` that are drawn as code points."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    """Of a `table` (a list of like records), a `record` (names and values) or `items`: all of its cells, as text."""

    @property
    def is_cut(self) -> bool:
        return self.length > len(self.text)

    @property
    def is_long(self) -> bool:
        return self.kind == "text" and len(self.text) > FOLD_ABOVE

    @property
    def opening(self) -> str:
        """The first line or so, for the fold's closed state."""
        return self.text[:160]


def fields_of(stored: str, limit: int = INLINE_LIMIT) -> list[tuple[str, Shown]]:
    """The named values of a stored mapping, such as a step's arguments, in their order."""
    try:
        found = json.loads(stored)
        named = found.items() if isinstance(found, dict) and "$" not in found else [("arguments", found)]
        return [(name, shown(value, limit)) for name, value in named]
    except _UNREADABLE:
        return [("arguments", _cut(stored, "code", "as stored", limit))]


def shown(found: Any, limit: int = INLINE_LIMIT) -> Shown:
    """One value of a parsed stored text (typed JSON) for a page: up to `limit` characters of it, and all of a value
    whose stored text is not longer."""
    try:
        return _shown(found, limit)
    except _UNREADABLE:
        return _cut(_dumped(found), "code", "as stored", limit)


def _shown(found: Any, limit: int) -> Shown:
    tag = found.get("$") if isinstance(found, dict) else None
    if tag in ("decimal", "int"):
        number = str(found["v"]) if tag == "decimal" else str(int(found["v"], 16))
        return _cut(number, "amount", "decimal" if tag == "decimal" else "number", limit)
    if tag in ("date", "time", "uuid", "datetime", "float"):
        return _cut(_simple(found), "text", "date and time" if tag == "datetime" else str(tag), limit)
    if tag == "timedelta":
        return _cut(str(timedelta(*found["v"])), "text", "length of time", limit)
    if tag == "text":
        return _text_shown(str(codec.plain(json.dumps(found))), limit)
    if found is None:
        return Shown("none", "nothing", "empty", 4, 0)
    if isinstance(found, bool):
        return Shown("yes" if found else "no", "text", "yes / no", 3 if found else 2, 0)
    if isinstance(found, int | float):
        return _cut(str(found), "amount", "number", limit)
    if isinstance(found, str):
        return _text_shown(found, limit)
    return _structure(found, limit)


def _text_shown(text: str, limit: int) -> Shown:
    if not text:
        return Shown("", "nothing", "empty text", 0, 0)
    return _cut(text, "text", "text" if len(text) < 40 else f"text, {len(text):,} characters", limit)


def _simple(found: dict[str, Any]) -> str:
    value = found.get("v")
    return f"{value} {found['z']}" if "z" in found else str(value)


def _structure(found: Any, limit: int) -> Shown:
    held = found["v"] if isinstance(found, dict) and "$" in found else found
    if isinstance(held, str):  # bytes, an enum's name
        return _text_shown(held, limit)
    rule = f"list of {len(held):,}"
    if isinstance(found, dict) and found.get("$") in (None, "dict", "record"):
        rule = f"{len(held):,} fields" if len(held) != 1 else "1 field"
    if not held:
        return Shown("", "nothing", f"empty, {rule}", 0, 0)
    stored = _dumped(found)
    return _table(stored, rule) or _cut(_laid_out_within(stored, limit), "code", rule, limit)


def _table(stored: str, rule: str) -> Shown | None:
    """A small list of plain values or of like records, or one small record, in rows; None for anything else."""
    if len(stored) > INLINE_LIMIT:
        return None
    plain = codec.plain(stored)
    columns: tuple[str, ...] = ()
    if isinstance(plain, dict):
        kind, records = "record", [[name, value] for name, value in plain.items()]
    elif not isinstance(plain, list):
        return None
    elif not any(isinstance(item, dict | list) for item in plain):
        kind, records = "items", [[item] for item in plain]
    elif all(isinstance(item, dict) and item and item.keys() == plain[0].keys() for item in plain):
        kind, columns, records = "table", tuple(plain[0]), [[item[name] for name in plain[0]] for item in plain]
    else:
        return None
    if len(columns) > _COLUMNS or any(isinstance(cell, dict | list) for record in records for cell in record):
        return None
    rows = tuple(tuple(brief(cell) for cell in record) for record in records)
    text = "".join(cell for row in rows for cell in row)
    hidden = sum(count_hidden(cell) for row in (columns, *rows) for cell in row)
    return Shown(text, kind, rule, len(text), hidden, columns, rows)


def _dumped(found: Any) -> str:
    """As it is stored: not longer than what it was read from."""
    return json.dumps(found, ensure_ascii=True, separators=(",", ":"))


def _cut(text: str, kind: str, rule: str, limit: int) -> Shown:
    head = text[:limit]
    return Shown(head, kind, rule, len(text), count_hidden(head))


def preview(stored: str, length: int | None = None, limit: int = INLINE_LIMIT) -> Shown:
    """The beginning of a stored text; `length` is that of the whole if only a part of it was read."""
    whole = len(stored) if length is None else length
    if whole > len(stored):
        return Shown(stored[:limit], "code", size(whole), whole, 0)
    text = _laid_out_within(stored, limit)
    return Shown(text[:limit], "code", size(whole), len(text), 0)


def _laid_out_within(stored: str, limit: int) -> str:
    """Laid out, unless that alone would cut it."""
    text = laid_out(stored)
    return stored if len(stored) <= limit < len(text) else text


def laid_out(stored: str) -> str:
    """A stored text as plain JSON, indented if it is long, with every character beyond ASCII as its code.

    Of an outcome that holds its result and nothing else, what is in it."""
    if len(stored) > _READABLE:
        return stored
    try:
        plain = codec.plain(stored)
        if isinstance(plain, dict) and list(plain) == ["result"]:
            plain = plain["result"]
        compact = json.dumps(plain, ensure_ascii=True)
        return compact if len(compact) <= 72 else json.dumps(plain, indent=2, ensure_ascii=True)
    except _UNREADABLE:
        return stored


def one_line(stored: str, limit: int = 120) -> str:
    """A stored text in a table's cell: names and values without the punctuation, cut to `limit` characters."""
    try:
        found = codec.plain(stored)
    except _UNREADABLE:
        return _clipped(stored, limit)
    return _line(found, limit)


def _line(found: Any, limit: int) -> str:
    if not isinstance(found, dict):
        return _clipped(brief(found), limit)
    parts = [f"{name} {brief(value)}" for name, value in list(found.items())[:3]]
    more = f", +{len(found) - 3}" if len(found) > 3 else ""
    return _clipped(", ".join(parts), limit - len(more)) + more


def event_line(stored: str, limit: int = 120) -> str:
    """What an event says, in one line: its error, its result, or all of it."""
    try:
        found = codec.plain(stored)
    except _UNREADABLE:
        return _clipped(stored, limit)
    if isinstance(found, dict) and isinstance(found.get("error"), dict):
        again = ", tried again" if found.get("retry_at") else ""
        return _clipped(_error(found["error"]), limit - len(again)) + again
    if isinstance(found, dict) and list(found) == ["result"]:
        found = found["result"]
    return _line(found, limit)


def error_line(stored: str, limit: int = 2000) -> str:
    """The error in an event's data, as type and message; its beginning is enough."""
    try:
        return _clipped(_error(codec.plain(stored)["error"]), limit)
    except _UNREADABLE:
        return _clipped(stored, limit)


def _error(error: dict[str, Any]) -> str:
    return f"{error.get('type')}: {error.get('message')}"


def short(digest: str) -> str:
    """Enough of a digest to tell two apart by eye."""
    return f"{digest[:8]}…{digest[-4:]}"


def brief(value: Any) -> str:
    """A plain value in a word or two; of what is inside others, only how much it is."""
    if isinstance(value, dict):
        return f"{{{len(value)}}}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def clipped(text: str, limit: int) -> str:
    """The text, or its beginning and how long it is."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def size(length: int) -> str:
    """A length in characters of stored text (ASCII: bytes) for people."""
    if length < 1000:
        return f"{length} B"
    if length < 1_000_000:
        return f"{length / 1000:.1f} kB"
    return f"{length / 1_000_000:.1f} MB"
