"""Who lives and who is dead, and what the dead held.

A claim lasts as long as its worker lives. Death has three grades (ENGINE.md 19): proved frees a worker's runs
at once; suspected, when its session is gone, after a grace; stale, when its heartbeat is, after the lease.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from psycopg.types.json import Jsonb

from journal import bells, statements
from journal.models import Worker
from journal.states import Death, RunStatus

log = logging.getLogger("journal.leases")

HEARTBEAT = 2.0
"""Seconds between two heartbeats."""
LEASE = 15.0
"""Seconds after which a worker without a heartbeat is stale."""
GRACE = 5.0
"""Seconds for which a worker may be without its session: it may come back, and then nothing has happened."""
SUSPECT_AFTER = 2
"""Deaths with a run after which it is claimed only by a worker that holds nothing else."""
POISONED_AFTER = 5
"""Deaths with a run alone after which it is blocked."""
POISON = {
    "reason": f"its worker died {POISONED_AFTER} times while it held this run and nothing else",
    "path": "",
    "code": {"recorded": ""},
}
LOCK_SPACE = 0x51F
"""First key of the advisory lock that each worker's session holds; the second is the worker's id."""

DECLARE = "UPDATE journal_worker SET death = %s WHERE id = %s AND death IS NULL AND stopped_at IS NULL"

# Life and death are told by clock_timestamp(), not journal_clock(): tests move that one by hours.
LOST_SESSIONS = """
UPDATE journal_worker w
SET session_lost_at =
    CASE WHEN seen.held THEN NULL ELSE coalesce(session_lost_at, clock_timestamp()) END
FROM (
    SELECT id, EXISTS (
        SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.classid = %(space)s AND l.objid = journal_worker.id AND l.objsubid = 2
    ) AS held FROM journal_worker WHERE stopped_at IS NULL AND death IS NULL
) seen
WHERE w.id = seen.id AND w.is_watched AND seen.held = (w.session_lost_at IS NOT NULL)
"""

# Both graces also count from the server's own start: after a restart no worker has a session, and none is dead.
# Judged and declared in one statement, on the row as it is then: one that beats in between lives.
OVERDUE = """
UPDATE journal_worker SET death =
    CASE WHEN heartbeat_at < clock_timestamp() - %(lease)s * interval '1 second' THEN 'stale' ELSE 'suspected' END
WHERE stopped_at IS NULL AND death IS NULL AND id <> %(me)s
  AND ((heartbeat_at < clock_timestamp() - %(lease)s * interval '1 second'
        AND pg_postmaster_start_time() < clock_timestamp() - %(lease)s * interval '1 second')
    OR (greatest(session_lost_at, pg_postmaster_start_time()) < clock_timestamp() - %(grace)s * interval '1 second'
        AND session_lost_at IS NOT NULL))
RETURNING id
"""

# Not only at the moment of death: a claim may have been committed just after the dead worker's runs were freed, or one
# of them have been locked then.
OWNED_BY_DEAD = """
SELECT DISTINCT w.id FROM journal_run r JOIN journal_worker w ON w.id = r.worker_id
WHERE r.status = 'running' AND (w.death IS NOT NULL OR w.stopped_at IS NOT NULL)
"""


@dataclass(frozen=True)
class Process:
    """Which process, on which machine: a pid means nothing without the rest."""

    pid: int
    machine: str
    started: int
    host: str

    @classmethod
    def mine(cls) -> Process:
        return cls(os.getpid(), _machine(), _process_start(os.getpid()) or 0, socket.gethostname())


HAS_PROC = Path("/proc/self/stat").exists()
"""Without it a neighbour's death cannot be proved by looking; the other grades serve."""


def _machine() -> str:
    """The boot, and the pid namespace in it: two containers on one machine have the same boot id."""
    if not HAS_PROC:
        return f"host {socket.gethostname()}"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _process_start(pid: int) -> int | None:
    """When the process started, in ticks since boot; None if it is not running (a zombie does not)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])


def prove_dead(*, pid: int) -> None:
    """Declares this machine's workers with that pid dead: the caller has reaped the process itself."""
    for worker in Worker.objects.filter(pid=pid, machine=_machine(), stopped_at=None, death=None):
        declare_dead(worker.pk, Death.PROVED)


def declare_dead(worker_id: int, grade: Death | str) -> None:
    """Writes the death down and frees what the worker held. Doing it twice changes nothing; one that has said goodbye
    has not died."""
    statements.rows(DECLARE, [grade, worker_id])
    free_runs_of(worker_id)


def free_runs_of(worker_id: int) -> None:
    """After its end was committed: what is locked now, or cut short, the next sweep frees.

    A run that keeps killing its worker while alone in it is blocked: the same code does not try it again."""
    params = {"worker": worker_id, "poisoned": POISONED_AFTER, "difference": Jsonb(POISON)}
    freed = statements.rows(statements.FREE_RUNS_OF, params)
    for run_id, status, _ in freed:
        if status == RunStatus.BLOCKED:
            log.error("run %s is blocked: %s", run_id, POISON["reason"])
    if freed:
        end = f"dead ({freed[0][2]})" if freed[0][2] else "gone"
        log.warning("worker %s is %s: it held %d runs, and holds none now", worker_id, end, len(freed))
        bells.ring()


def retire(worker_id: int) -> None:
    """A worker's own goodbye. What it could not hand back is free at once."""
    statements.rows("UPDATE journal_worker SET stopped_at = clock_timestamp() WHERE id = %s", [worker_id])
    free_runs_of(worker_id)


def sweep_dead(me: int, *, may_suspect: bool) -> None:
    """Finds the dead and frees their runs. Every worker does; any number may at once.

    `may_suspect`: only a worker whose own heartbeats have gone through without a gap may judge by silence."""
    for worker_id in _proved(me):
        declare_dead(worker_id, Death.PROVED)
    if may_suspect:
        statements.rows(LOST_SESSIONS, {"space": LOCK_SPACE})
        for (worker_id,) in statements.rows(OVERDUE, {"me": me, "lease": LEASE, "grace": GRACE}):
            free_runs_of(worker_id)
    for (worker_id,) in statements.rows(OWNED_BY_DEAD, []):
        free_runs_of(worker_id)


def _proved(me: int) -> Sequence[int]:
    if not HAS_PROC:
        return []
    neighbours = Worker.objects.filter(machine=_machine(), stopped_at=None, death=None).exclude(pk=me)
    found = neighbours.values_list("pk", "pid", "process_started")
    return [pk for pk, pid, started in found if _process_start(pid) != started]
