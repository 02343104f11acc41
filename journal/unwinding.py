"""How a workflow's frame is left before its end.

An Unwinding is no Exception, so that `except Exception` lets it pass; and it is sticky: once one was raised, each
further durable call raises it again and does nothing, and what the body returns is thrown away. The author's
`finally` and bare `except:` may run, but nothing in them happens.
"""

from __future__ import annotations

from typing import Any

from journal.writer import Draft, OpenWait


class Unwinding(BaseException):
    """Leaves the workflow's frame; not an error."""


class Suspended(Unwinding):
    """The workflow waits. `drafts` open the wait in the journal, `wait` is its row."""

    def __init__(self, wait: OpenWait, *drafts: Draft) -> None:
        super().__init__(wait.kind, wait.path)
        self.wait = wait
        self.drafts = drafts


class HandedBack(Unwinding):
    """This worker is going down: another one takes the run from here."""


class Again(Unwinding):
    """From the top once more: in replay-every-step mode each durable call is followed by a replay."""


class Ended(Unwinding):
    """The body is through: what is left of its frames does nothing any more."""


class Broken(Unwinding):
    """The engine's own write failed for good; the author's code must not take that for its step's error."""


class Mismatched(Unwinding):
    """The code asks for something else than the journal holds."""

    def __init__(self, difference: dict[str, Any]) -> None:
        super().__init__(difference["reason"])
        self.difference = difference


class Lost(Unwinding):
    """Another worker holds the run now; nothing of this execution may be written any more."""
