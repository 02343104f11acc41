"""Exceptions in the journal: type, message, data and traceback text, and how they are raised again.

They are built without their `__init__` (whose parameters the journal cannot know) from the class of the
recorded name, if it is loaded and an Exception. What cannot be built again is a StepFailed, on the first run
as on a replay: it is decided when it is recorded.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from journal import codec
from journal.errors import StepFailed, Undecodable, Unstorable

T = TypeVar("T")

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
        "args": _safely(lambda: _storable_args(error), []),
        "data": _safely(lambda: _storable_attributes(error), dict[str, Any]()),
        "traceback": _safely(lambda: "".join(traceback.format_exception(error))[-TRACEBACK_LIMIT:], ""),
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
    return str(_safely(lambda: str(error)[:DATA_LIMIT], "(its text cannot be read)"))


def _safely(read: Callable[[], T], otherwise: T) -> T:
    """Recording an error must not fail, whatever its class does when it is looked at."""
    try:
        return read()
    except BaseException:  # noqa: BLE001 - the author's __str__, properties and the like
        return otherwise


def _storable_args(error: BaseException) -> list[Any]:
    if isinstance(error, OSError) and error.filename is not None:
        args = [error.errno, error.strerror, str(error.filename)]  # `args` leaves the name out
    else:
        args = list(error.args)
    return args if _is_storable(args) else [_message(error)]


def _storable_attributes(error: BaseException) -> dict[str, Any]:
    public = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {name: value for name, value in public.items() if _is_storable(value)}


def _is_storable(value: Any) -> bool:
    """Whether it can be written, and read again."""
    try:
        text = codec.encode(value)
        codec.decode(text)
    except (Unstorable, Undecodable):
        return False
    return len(text) <= DATA_LIMIT


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
    except BaseException:  # noqa: BLE001 - its class is the author's
        return None
