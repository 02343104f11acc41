"""What a person reads when code and history do not fit: recorded, asked for, where, and by which code."""

from __future__ import annotations

import inspect
import traceback
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from journal import codec
from journal.history import Asked

if TYPE_CHECKING:
    from journal.execution import Execution

ENGINE_PACKAGES = ("journal", "approvals")
PREVIEW = 2_000
"""Characters of arguments that a difference shows."""


def difference(execution: Execution, reason: str, path: str, asked: Asked | None = None) -> dict[str, Any]:
    """As it is stored on the run's row and in the event run_blocked."""
    recorded = execution.history.at(path) or execution.history.unreached
    return {
        "reason": reason,
        "path": path,
        "recorded": recorded
        and {
            "path": recorded.path,
            "kind": str(recorded.call_kind),
            "name": recorded.first.name,
            "args": _preview(recorded.first.args),
        },
        "asked": asked and {"path": path, "kind": str(asked.kind), "name": asked.name, "args": _preview(asked.text)},
        "line": _author_line(inspect.currentframe()),
        "code": {"recorded": execution.loaded.recorded_by, "at_hand": execution.holder.fingerprint},
    }


def line_of_body(execution: Execution, trace: TracebackType | None) -> str:
    """Where the workflow's body was left: the line that raised, or the function itself."""
    code = execution.workflow.fn.__code__
    lines = [frame.lineno for frame in traceback.extract_tb(trace) if frame.filename == code.co_filename]
    return f"{code.co_filename}:{lines[-1] if lines else code.co_firstlineno}"


def _author_line(frame: FrameType | None) -> str:
    """The nearest line that is not the engine's."""
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ENGINE_PACKAGES:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _preview(text: str | None) -> Any:
    if text is None:
        return None
    return codec.plain(text) if len(text) <= PREVIEW else f"({len(text):,} characters)"
