"""Taking a run's lock: the first lock of every transaction that takes several."""

from __future__ import annotations

from journal.errors import UnknownRun
from journal.models import Run


def lock_run(run_id: str) -> Run:
    """The run's row, locked against its holder, other deciders and the delivery of messages. Raises UnknownRun."""
    run = _locked(run_id)
    if run is None:
        raise UnknownRun(run_id)
    return run


def lock_run_if_free(run_id: str) -> Run | None:
    """The same for a sweep, which never waits: None if somebody else has it, or there is no such run."""
    return _locked(run_id, skip_locked=True)


def _locked(run_id: str, *, skip_locked: bool = False) -> Run | None:
    # NO KEY: foreign keys to the run (a signal being sent) are not held up.
    return Run.objects.select_for_update(no_key=True, skip_locked=skip_locked).filter(pk=run_id).first()
