"""Exceptions in the journal: type, message, data and traceback text, and how they are raised again.

They are built without their `__init__` (whose parameters the journal cannot know) from the class of the
recorded name, if it is loaded and an Exception. What cannot be built again is a StepFailed, on the first run
as on a replay: it is decided when it is recorded.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from journal import codec
from journal.errors import StepFailed, Unstorable

TRACEBACK_LIMIT = 20_000
"""Characters of a traceback that are kept, from its end."""
DATA_LIMIT = 64_000
"""Characters of an attribute, of the arguments and of the message that are kept."""


def record(error: BaseException) -> dict[str, Any]:
    """What is stored of `error`. Local variables are not: they hold secrets."""
    recorded: dict[str, Any] = {
        "type": type(error).__name__,
        "class": f"{type(error).__module__}:{type(error).__qualname__}",
        "message": _message(error),
        "args": _storable_args(error),
        "data": _storable_attributes(error),
        "traceback": "".join(traceback.format_exception(error))[-TRACEBACK_LIMIT:],
    }
    recorded["rebuilds"] = _build(recorded) is not None
    return recorded


def rebuild(recorded: dict[str, Any]) -> Exception:
    """The exception to raise in the workflow."""
    built = _build(recorded) if recorded["rebuilds"] else None
    if built is not None:
        return built
    return StepFailed(f"{recorded['type']}: {recorded['message']}", type_name=recorded["class"])


def describe(recorded: dict[str, Any], path: str | None) -> dict[str, Any]:
    """The `error` of a run, as commands and pages show it."""
    return {"type": recorded["type"], "message": recorded["message"], "path": path}


def _message(error: BaseException) -> str:
    try:
        return str(error)[:DATA_LIMIT]
    except Exception as broken:  # noqa: BLE001 - its __str__ is the author's
        return f"(its text cannot be read: {type(broken).__name__})"


def _storable_args(error: BaseException) -> list[Any]:
    return list(error.args) if _is_storable(list(error.args)) else [_message(error)]


def _storable_attributes(error: BaseException) -> dict[str, Any]:
    public = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {name: value for name, value in public.items() if _is_storable(value)}


def _is_storable(value: Any) -> bool:
    try:
        return len(codec.encode(value)) <= DATA_LIMIT
    except Unstorable:
        return False


def _find_class(recorded: dict[str, Any]) -> type[Exception] | None:
    module, _, qualified = recorded["class"].partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _build(recorded: dict[str, Any]) -> Exception | None:
    kind = _find_class(recorded)
    if kind is None:
        return None
    args = recorded["args"]
    try:
        if kind.__module__ == "builtins":  # known constructors; some (UnicodeDecodeError) are hollow without it
            built = kind(*args)
        else:
            built = kind.__new__(kind, *args)
            built.args = tuple(args)
        vars(built).update(recorded["data"])
        return built if isinstance(built, Exception) and str(built) == recorded["message"] else None
    except Exception:  # noqa: BLE001 - its class is the author's
        return None
