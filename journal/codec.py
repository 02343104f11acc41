"""Values as typed JSON text: what the journal stores, and how it comes back.

Plain JSON values are themselves. Everything else is an object with the key "$" that names its type:
`{"$": "decimal", "v": "420.00"}`. A dict that has a key "$" of its own, or keys that are not text, is
written as pairs. Records (dataclasses, pydantic models, enums) are found again among the classes that the
caller's annotations name, then among loaded modules: nothing is imported or called on behalf of a stored value.
"""

from __future__ import annotations

import base64
import enum
import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from journal.errors import TooLarge, Undecodable, Unstorable

LIMIT = 16 * 1024 * 1024
"""The largest value, in bytes of its stored text."""

Types = Mapping[str, type]
"""Classes by their qualified name, collected from annotations (journal.annotations)."""

_INT_LIMIT = 2**63  # beyond it as hexadecimal: Python limits the digits of decimal conversions


class _Refused(Exception):
    """Why a value inside a larger one cannot be stored; grows its path on the way out."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.steps: list[str] = []
        self.too_large = False


def encode(value: object, *, name: str = "value") -> str:
    """The stored text of `value`. Raises Unstorable with the path of what does not fit; `name` begins it."""
    try:
        packed = _pack(value)
        text = json.dumps(packed, separators=(",", ":"), allow_nan=False, check_circular=False)
    except _Refused as refused:
        path = name + "".join(reversed(refused.steps))
        kind = TooLarge if refused.too_large else Unstorable
        raise kind(path, refused.reason) from None
    except RecursionError:
        raise Unstorable(name, "it is nested too deeply, or contains itself") from None
    if len(text) > LIMIT:
        raise TooLarge(name, _size_reason(len(text)))
    return text


def decode(text: str, types: Types | None = None) -> Any:
    """The value of a stored text. Raises Undecodable if a record's class is gone or does not fit."""
    return json.loads(text, object_hook=lambda found: _unpack(found, types or {}))


def plain(text: str) -> Any:
    """A stored text as plain JSON for people and programs outside; needs none of the classes."""
    return json.loads(text, object_hook=_flatten)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("ascii")).digest()


def _size_reason(size: int) -> str:
    return f"it takes {size / 1048576:.1f} MiB, the limit is {LIMIT // 1048576} MiB"


# ---------------------------------------------------------------- packing


def _pack(value: Any) -> Any:
    packer = _PACKERS.get(type(value))
    if packer is not None:
        return packer(value)
    return _pack_object(value)


def _same(value: Any) -> Any:
    return value


def _pack_str(value: str) -> Any:
    if len(value) > LIMIT:
        raise _too_large(len(value))
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates: two of them side by side would come back as one character
        return {"$": "text", "v": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")}
    return value


def _pack_int(value: int) -> Any:
    return value if -_INT_LIMIT < value < _INT_LIMIT else {"$": "int", "v": hex(value)}


def _pack_float(value: float) -> Any:
    return value if math.isfinite(value) else {"$": "float", "v": repr(value)}


def _pack_list(value: list[Any]) -> Any:
    return _pack_items(value)


def _pack_items(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    at = 0
    packed = []
    try:
        for at, item in enumerate(value):  # noqa: B007 - read in the except clause
            packed.append(_pack(item))
    except _Refused as refused:
        refused.steps.append(f"[{at}]")
        raise
    return packed


def _pack_dict(value: dict[Any, Any]) -> Any:
    if "$" in value or not all(type(key) is str for key in value):
        return {"$": "dict", "v": _pack_items([list(pair) for pair in value.items()])}
    key = ""
    packed = {}
    try:
        for key, item in value.items():
            if not key.isascii():
                key.encode("utf-8")
            packed[key] = _pack(item)
    except UnicodeEncodeError:
        return {"$": "dict", "v": _pack_items([list(pair) for pair in value.items()])}
    except _Refused as refused:
        refused.steps.append(f".{key}")
        raise
    return packed


def _pack_set(value: set[Any] | frozenset[Any]) -> Any:
    packed = [_pack(item) for item in value]
    packed.sort(key=json.dumps)  # the order of a set changes with PYTHONHASHSEED; the text must not
    return {"$": type(value).__name__, "v": packed}


def _pack_bytes(value: bytes) -> Any:
    if len(value) > LIMIT:
        raise _too_large(len(value))
    return {"$": "bytes", "v": base64.b64encode(value).decode("ascii")}


def _pack_datetime(value: datetime) -> Any:
    if value.utcoffset() is None:
        raise _Refused("a datetime without a time zone; give it one")
    packed: dict[str, Any]
    if isinstance(value.tzinfo, ZoneInfo) and value.tzinfo.key:
        # The wall time and its zone, not the instant: it also holds for hours that a clock change skips.
        packed = {"$": "datetime", "v": value.replace(tzinfo=None).isoformat(), "z": value.tzinfo.key}
    else:
        packed = {"$": "datetime", "v": value.isoformat()}
    return packed | {"f": 1} if value.fold else packed


def _pack_time(value: time) -> Any:
    if value.tzinfo is not None:
        raise _Refused("a time with a time zone; use a datetime")
    return {"$": "time", "v": value.isoformat()}


def _pack_timedelta(value: timedelta) -> Any:
    return {"$": "timedelta", "v": [value.days, value.seconds, value.microseconds]}


def _pack_object(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, enum.Enum):
        return {"$": "enum", "t": _class_name(kind), "v": value.name}
    if isinstance(value, BaseModel):
        content = {name: getattr(value, name) for name in kind.model_fields if name in value.__dict__}
        return {"$": "record", "t": _class_name(kind), "v": _pack_fields(content | (value.model_extra or {}))}
    if is_dataclass(value) and not isinstance(value, type):
        content = {field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)}
        return {"$": "record", "t": _class_name(kind), "v": _pack_fields(content)}
    if isinstance(value, str):  # such as Django's SafeString: its text is what counts
        return _pack_str(str.__str__(value))
    raise _Refused(f"no stored form for {_class_name(kind).replace(':', '.')}; return plain values or a dataclass")


def _pack_fields(content: dict[str, Any]) -> list[list[Any]]:
    packed: list[list[Any]] = []
    for name, item in content.items():
        try:
            packed.append([name, _pack(item)])
        except _Refused as refused:
            refused.steps.append(f".{name}")
            raise
    return packed


def _too_large(size: int) -> _Refused:
    refused = _Refused(_size_reason(size))
    refused.too_large = True
    return refused


def _class_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


_PACKERS: dict[type, Callable[[Any], Any]] = {
    str: _pack_str,
    int: _pack_int,
    bool: _same,
    type(None): _same,
    float: _pack_float,
    list: _pack_list,
    dict: _pack_dict,
    tuple: lambda value: {"$": "tuple", "v": _pack_items(value)},
    set: _pack_set,
    frozenset: _pack_set,
    bytes: _pack_bytes,
    Decimal: lambda value: {"$": "decimal", "v": str(value)},
    UUID: lambda value: {"$": "uuid", "v": value.hex},
    datetime: _pack_datetime,
    date: lambda value: {"$": "date", "v": value.isoformat()},
    time: _pack_time,
    timedelta: _pack_timedelta,
}


# ---------------------------------------------------------------- unpacking


def _unpack(found: dict[str, Any], types: Types) -> Any:
    tag = found.get("$")
    if tag is None:
        return found
    if tag == "enum":
        return _build_enum(found, types)
    if tag == "record":
        return _build_record(found, types)
    reader = _READERS.get(tag)
    if reader is None:
        raise Undecodable(f"unknown type {tag!r} in a stored value")
    return reader(found)


def _read_datetime(found: dict[str, Any]) -> datetime:
    moment = datetime.fromisoformat(found["v"]).replace(fold=found.get("f", 0))
    if "z" in found:
        return moment.replace(tzinfo=_zone(found["z"]))
    return moment.replace(tzinfo=UTC) if moment.utcoffset() == timedelta() else moment


def _zone(key: str) -> tzinfo:
    try:
        return ZoneInfo(key)
    except (KeyError, ValueError):
        raise Undecodable(f"this machine has no time zone {key!r}") from None


_READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dict": lambda found: {pair[0]: pair[1] for pair in found["v"]},
    "tuple": lambda found: tuple(found["v"]),
    "set": lambda found: set(found["v"]),
    "frozenset": lambda found: frozenset(found["v"]),
    "int": lambda found: int(found["v"], 16),
    "float": lambda found: float(found["v"]),
    "text": lambda found: base64.b64decode(found["v"]).decode("utf-8", "surrogatepass"),
    "bytes": lambda found: base64.b64decode(found["v"]),
    "decimal": lambda found: Decimal(found["v"]),
    "uuid": lambda found: UUID(found["v"]),
    "datetime": _read_datetime,
    "date": lambda found: date.fromisoformat(found["v"]),
    "time": lambda found: time.fromisoformat(found["v"]),
    "timedelta": lambda found: timedelta(*found["v"]),
}


def _find_class(name: str, types: Types) -> type:
    module, _, qualified = name.partition(":")
    known = types.get(name) or types.get(qualified)
    if known is not None:
        return known
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type):
        return found
    raise Undecodable(f"the class {module}.{qualified} of a stored value is not loaded")


def _build_enum(found: dict[str, Any], types: Types) -> Any:
    kind = _find_class(found["t"], types)
    if not issubclass(kind, enum.Enum):
        raise Undecodable(f"{found['t']} is no longer an enum")
    try:
        return kind[found["v"]]
    except KeyError:
        pass
    if issubclass(kind, enum.Flag):  # a combination of flags has a name like "A|B"
        members = [kind[name] for name in (found["v"] or "").split("|") if name in kind.__members__]
        combined = kind(0)
        for member in members:
            combined |= member
        return combined
    raise Undecodable(f"{found['t']} no longer has {found['v']!r}")


def _build_record(found: dict[str, Any], types: Types) -> Any:
    kind = _find_class(found["t"], types)
    content = {pair[0]: pair[1] for pair in found["v"]}
    if issubclass(kind, BaseModel):
        missing = [name for name, field in kind.model_fields.items() if field.is_required() and name not in content]
        if missing:
            raise Undecodable(f"a stored {kind.__qualname__} has no {', '.join(missing)}")
        return _build_model(kind, content)
    if is_dataclass(kind):
        return _build_dataclass(kind, content)
    raise Undecodable(f"{found['t']} is neither a dataclass nor a pydantic model any more")


def _build_model(kind: type[BaseModel], content: dict[str, Any]) -> BaseModel:
    """Without validation: what was valid when it was stored must come back the same."""
    model = kind.__new__(kind)
    values = {
        name: content[name] if name in content else field.get_default(call_default_factory=True, validated_data={})
        for name, field in kind.model_fields.items()
    }
    extra = {name: item for name, item in content.items() if name not in kind.model_fields}
    object.__setattr__(model, "__dict__", values)
    object.__setattr__(model, "__pydantic_fields_set__", {name for name in content if name in kind.model_fields})
    object.__setattr__(model, "__pydantic_extra__", extra if kind.model_config.get("extra") == "allow" else None)
    object.__setattr__(model, "__pydantic_private__", None)
    if kind.__pydantic_post_init__:
        model.model_post_init(None)
    return model


def _build_dataclass(kind: Any, content: dict[str, Any]) -> Any:
    """Without __init__ and __post_init__, for the same reason."""
    record = object.__new__(kind)
    for field in fields(kind):
        if field.name in content:
            item = content[field.name]
        elif field.default is not MISSING:
            item = field.default
        elif field.default_factory is not MISSING:
            item = field.default_factory()
        else:
            raise Undecodable(f"a stored {kind.__qualname__} has no {field.name}")
        object.__setattr__(record, field.name, item)
    return record


# ---------------------------------------------------------------- for people


def _flatten(found: dict[str, Any]) -> Any:
    tag = found.get("$")
    if tag is None:
        return found
    value = found.get("v")
    if tag == "record":
        return {pair[0]: pair[1] for pair in value or []}
    if tag == "dict":
        return _flatten_pairs(value or [])
    if tag == "datetime":
        return _read_datetime(found).isoformat()
    if tag == "uuid":
        return str(UUID(value))
    if tag == "timedelta":
        return timedelta(*(value or [])).total_seconds()
    if tag in ("int", "text"):
        return _READERS[tag](found)
    if tag == "float":
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value


def _flatten_pairs(pairs: list[list[Any]]) -> Any:
    """An object, if its keys are text by now and differ; else the pairs, so that no entry hides another."""
    if all(isinstance(key, str) for key, _ in pairs):
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
    return pairs
