"""What every worker does besides, twice a second: wakes what is due, and takes up what others left.

No leader: a sweeper that is stopped must not stop the world. Each statement is conditional and bounded, and
skips what another worker has locked, so any number of sweeps at once do the work once.
"""

from __future__ import annotations

import logging
from datetime import datetime

from journal import bells, hooks, statements

log = logging.getLogger("journal.sweeping")

HOOKED_DUE = """
SELECT w.run_id, w.generation, w.branch, w.path, w.kind, w.reference
FROM journal_wait w JOIN journal_run r ON r.id = w.run_id AND r.status = 'waiting'
WHERE w.due_at <= journal_clock() AND w.kind = ANY(%s) ORDER BY w.due_at LIMIT 50
-- Only a look, whose locks end with it: fifty runs that somebody keeps locked must not hide those that come after.
FOR NO KEY UPDATE OF r SKIP LOCKED
"""

# A claim whose commit this worker never heard of: leased to it, and in none of its threads. Claimed well before the
# list of those was made: a sweep that is held up must not take a list of then for one of now.
RELEASE_FORGOTTEN = """
WITH forgotten AS (
    SELECT id FROM journal_run
    WHERE worker_id = %s AND status = 'running' AND claimed_at < %s - interval '10 seconds'
      AND NOT EXISTS (SELECT 1 FROM unnest(%s::text[], %s::int[]) AS held(id, epoch)
                      WHERE held.id = journal_run.id AND held.epoch = journal_run.epoch)
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE journal_run r SET status = 'ready', worker_id = NULL, freed_by = NULL, state_at = journal_clock(),
       claim_at = journal_claim_at(priority, true)
FROM forgotten WHERE r.id = forgotten.id RETURNING r.id
"""


def wake_due() -> None:
    """Wakes the runs whose time has come; asks whoever hooked onto a kind of wait to deal with theirs."""
    if statements.rows(statements.WAKE_DUE, {"hooked": list(hooks.wait_due)}):
        bells.ring()
    if not hooks.wait_due:
        return
    for run_id, generation, branch, path, kind, reference in statements.rows(HOOKED_DUE, [list(hooks.wait_due)]):
        try:
            hooks.wait_due[kind](hooks.WaitDue(run_id, generation, branch, path, reference))
        except Exception:
            log.exception("the end of the time of %s in run %s could not be dealt with", reference, run_id)


def unblock(capabilities: list[str], fingerprint: str) -> None:
    """Lets this code try the runs that other code was blocked by."""
    freed = statements.rows(statements.UNBLOCK, {"capabilities": capabilities, "fingerprint": fingerprint})
    if freed:
        log.info("%d blocked runs are tried with the code at hand", len(freed))
        bells.ring()


def release_forgotten(worker_id: int, held: list[tuple[str, int]], since: datetime) -> None:
    """Frees what the worker was leased and does not hold; `held` has the run and the epoch of each of its claims, as
    it was at `since` or later, by the database's clock."""
    ids, epochs = [run_id for run_id, _ in held], [epoch for _, epoch in held]
    for (run_id,) in statements.rows(RELEASE_FORGOTTEN, [worker_id, since, ids, epochs]):
        log.warning("run %s was leased to this worker, which does not know it; it is ready again", run_id)
        bells.ring()
