"""Which classes a function's annotations speak of: how stored records are found again (journal.codec)."""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel


def types_named(function: Callable[..., Any], *, returns: bool) -> dict[str, type]:
    """The records and enums in the annotations of the parameters, or of the return value.

    An annotation that cannot be evaluated is passed over: its class is then looked for among loaded modules."""
    hints = _hints(function)
    chosen = [hint for name, hint in hints.items() if (name == "return") == returns]
    found: dict[str, type] = {}
    for hint in chosen:
        _collect(hint, found)
    return found


def _hints(target: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(target)
    except Exception:  # noqa: BLE001 - evaluating an annotation runs the author's code
        return {name: hint for name, hint in inspect.get_annotations(target).items() if not isinstance(hint, str)}


def _collect(hint: Any, found: dict[str, type]) -> None:
    for argument in typing.get_args(hint):
        _collect(argument, found)
    if not isinstance(hint, type) or hint in found.values():
        return
    if issubclass(hint, enum.Enum):
        _add(hint, found)
    elif is_dataclass(hint) or issubclass(hint, BaseModel):
        _add(hint, found)
        for field in _hints(hint).values():
            _collect(field, found)


def _add(kind: type, found: dict[str, type]) -> None:
    found[f"{kind.__module__}:{kind.__qualname__}"] = kind
    found.setdefault(kind.__qualname__, kind)
