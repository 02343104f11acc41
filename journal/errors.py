"""What can go wrong, for authors and callers.

    JournalError
    ├── Unstorable            a value that the journal cannot hold
    │   └── TooLarge          … because of its size
    ├── Undecodable           a stored value that today's code cannot read
    ├── NotInWorkflow         a durable call outside a workflow's own frame
    ├── InWorkflow            a call that a workflow's body may not make
    ├── WaitTimeout           a wait came to the end of its time
    ├── StepFailed            a step failed with an error that cannot be built again
    ├── TransactionLeftOpen   a step came back with a transaction open
    ├── KeyConflict           the key belongs to a run with another workflow or input
    ├── UnknownRun            there is no such run
    ├── UnknownWorkflow       no workflow of that name is loaded
    ├── RunEnded              the run has ended; it takes no more messages
    ├── RunFailed             runs.result of a run that did not complete
    ├── ResultTimeout         runs.result waited long enough; the run goes on
    ├── AlreadyRegistered     two functions claim one name
    ├── AuthorsModuleBroken   a module that SIGNOFF_WORKFLOWS names does not load
    ├── Tampered              a stored row does not fit its digest
    └── LeaseLost             another worker holds the run now

The first line of each docstring is its default message. Public attributes survive the journal.
"""

from __future__ import annotations


class JournalError(Exception):
    """The engine refused."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])


class Unstorable(JournalError):
    """This value cannot be stored in the journal."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be stored in the journal: {reason}")
        self.path = path
        self.reason = reason


class TooLarge(Unstorable):
    """This value is larger than the journal stores."""


class Undecodable(JournalError):
    """A stored value cannot be read by the code at hand."""


class NotInWorkflow(JournalError):
    """This call works only in a workflow's own frame."""


class InWorkflow(JournalError):
    """A workflow's body may not do this; a step may."""


class WaitTimeout(JournalError):
    """The wait came to the end of its time."""


class StepFailed(JournalError):
    """The step failed."""

    def __init__(self, message: str | None = None, *, type_name: str = "") -> None:
        super().__init__(message)
        self.type_name = type_name


class TransactionLeftOpen(JournalError):
    """The step left a transaction open; what it wrote in it is rolled back."""


class KeyConflict(JournalError):
    """This key belongs to a run with another workflow or input."""

    def __init__(self, key: str, run_id: str) -> None:
        super().__init__(f"key {key!r} belongs to run {run_id}, which has another workflow or other input")
        self.key = key
        self.run_id = run_id


class UnknownRun(JournalError):
    """There is no such run."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"there is no run {run_id}")
        self.run_id = run_id


class UnknownWorkflow(JournalError):
    """No workflow of that name is loaded."""


class RunEnded(JournalError):
    """The run has ended; it takes no more messages."""

    def __init__(self, run_id: str, status: str) -> None:
        super().__init__(f"run {run_id} has ended ({status}); it takes no more messages")
        self.run_id = run_id
        self.status = status


class RunFailed(JournalError):
    """The run failed."""

    def __init__(self, message: str, *, type_name: str, path: str | None) -> None:
        super().__init__(message)
        self.type_name = type_name
        self.path = path


class ResultTimeout(JournalError):
    """The run has not ended in the given time; it goes on."""


class AlreadyRegistered(JournalError):
    """Two functions claim one name."""


class AuthorsModuleBroken(JournalError):
    """A module that SIGNOFF_WORKFLOWS names does not load."""

    def __init__(self, module: str, reason: str) -> None:
        super().__init__(f"SIGNOFF_WORKFLOWS: module {module} does not load: {reason}")
        self.module = module
        self.reason = reason


class Tampered(JournalError):
    """A stored row does not fit its digest."""


class LeaseLost(JournalError):
    """Another worker holds this run now."""
