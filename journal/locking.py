"""Taking a run's lock: the first lock of every transaction that takes several."""

from __future__ import annotations

from journal.errors import UnknownRun
from journal.models import Run


def lock_run(run_id: str) -> Run:
    """The run's row, locked against its holder, other deciders and the delivery of messages.

    NO KEY: foreign keys to the run (a signal being sent) are not held up. Raises UnknownRun."""
    run = Run.objects.select_for_update(no_key=True).filter(pk=run_id).first()
    if run is None:
        raise UnknownRun(run_id)
    return run
