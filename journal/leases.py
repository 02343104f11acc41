"""Who lives and who is dead, and what the dead held.

A claim lasts as long as its worker lives. Death has three grades (ENGINE.md 19): proved frees a worker's runs
at once; suspected, when its session is gone, after a grace; stale, when its heartbeat is, after the lease.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from journal import bells, statements
from journal.models import Worker
from journal.states import Death

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
LOCK_SPACE = 0x51F
"""First key of the advisory lock that each worker's session holds; the second is the worker's id."""

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
OVERDUE = """
SELECT id,
    CASE WHEN heartbeat_at < clock_timestamp() - %(lease)s * interval '1 second' THEN 'stale' ELSE 'suspected' END
FROM journal_worker
WHERE stopped_at IS NULL AND death IS NULL AND id <> %(me)s
  AND ((heartbeat_at < clock_timestamp() - %(lease)s * interval '1 second'
        AND pg_postmaster_start_time() < clock_timestamp() - %(lease)s * interval '1 second')
    OR (greatest(session_lost_at, pg_postmaster_start_time()) < clock_timestamp() - %(grace)s * interval '1 second'
        AND session_lost_at IS NOT NULL))
"""

# Not only at the moment of death: a claim may have been committed just after the dead worker's runs were freed, or one
# of them have been locked then. A worker that has said goodbye has no grade of death.
OWNED_BY_DEAD = """
SELECT DISTINCT w.id, w.death FROM journal_run r JOIN journal_worker w ON w.id = r.worker_id
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
    """Writes the death down and frees what the worker held. Doing it twice changes nothing."""
    statements.rows("UPDATE journal_worker SET death = %s WHERE id = %s AND death IS NULL", [grade, worker_id])
    _free_runs_of(worker_id, grade)


def _free_runs_of(worker_id: int, grade: Death | str | None) -> None:
    """After its end was committed: what is locked now, or cut short, the next sweep frees."""
    freed = statements.rows(statements.FREE_RUNS_OF, {"worker": worker_id, "grade": grade})
    for run_id, deaths_alone in freed:
        if deaths_alone >= POISONED_AFTER:
            _block_poison(run_id, worker_id)
    if freed:
        end = f"dead ({grade})" if grade else "gone"
        log.warning("worker %s is %s: %d of its runs go on elsewhere", worker_id, end, len(freed))
        bells.ring()


def _block_poison(run_id: str, worker_id: int) -> None:
    """A run that keeps killing its worker while alone in it is not tried again by the same code."""
    reason = f"its worker died {POISONED_AFTER} times while it held this run and nothing else"
    fingerprint = Worker.objects.values_list("fingerprint", flat=True).get(pk=worker_id)
    difference = {"reason": reason, "path": "", "code": {"recorded": "", "at_hand": fingerprint}}
    params = {"run": run_id, "difference": json.dumps(difference), "fingerprint": fingerprint, "limit": POISONED_AFTER}
    statements.rows(statements.BLOCK_POISON, params)
    log.error("run %s is blocked: %s", run_id, reason)


def retire(worker_id: int) -> None:
    """A worker's own goodbye. What it could not hand back is free at once."""
    statements.rows("UPDATE journal_worker SET stopped_at = clock_timestamp() WHERE id = %s", [worker_id])
    _free_runs_of(worker_id, None)


def sweep_dead(me: int, *, may_suspect: bool) -> None:
    """Finds the dead and frees their runs. Every worker does; any number may at once.

    `may_suspect`: only a worker whose own heartbeats have gone through without a gap may judge by silence."""
    for worker_id in _proved(me):
        declare_dead(worker_id, Death.PROVED)
    if may_suspect:
        statements.rows(LOST_SESSIONS, {"space": LOCK_SPACE})
        for worker_id, grade in statements.rows(OVERDUE, {"me": me, "lease": LEASE, "grace": GRACE}):
            declare_dead(worker_id, grade)
    for worker_id, grade in statements.rows(OWNED_BY_DEAD, []):
        _free_runs_of(worker_id, grade)


def _proved(me: int) -> Sequence[int]:
    if not HAS_PROC:
        return []
    neighbours = Worker.objects.filter(machine=_machine(), stopped_at=None, death=None).exclude(pk=me)
    found = neighbours.values_list("pk", "pid", "process_started")
    return [pk for pk, pid, started in found if _process_start(pid) != started]
