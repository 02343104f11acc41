"""A worker process: its identity, its heartbeat, its sweeps, and the slots that execute runs."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from journal import bells, leases, registry, statements, sweeping
from journal.clock import db_now
from journal.connections import close_all
from journal.errors import LeaseLost
from journal.models import Worker
from journal.poolers import is_pooled
from journal.runner import execute_claimed

log = logging.getLogger("journal.worker")

SWEEP_EVERY = 0.5
UNBLOCK_EVERY = 5.0
CONNECTION_ONLY = (
    "host",
    "port",
    "dbname",
    "user",
    "password",
    "options",
    "sslmode",
    "sslrootcert",
    "tcp_user_timeout",
)

BEAT = """
UPDATE journal_worker SET heartbeat_at = clock_timestamp(), is_watched = %s, session_lost_at = NULL
WHERE id = %s AND death IS NULL AND stopped_at IS NULL RETURNING id
"""

BEHIND_A_POOLER = (
    "a pooler stands before the database, and no session is kept: a death on another machine is believed after %.0f s, "
    "not %.0f; doorbells over it (pgmq) are not heard, and work is looked for twice a second; statements are not "
    "prepared; idle_in_transaction_session_timeout is %s (docs/settings.md)"
)

MORE = (
    "SELECT EXISTS (SELECT 1 FROM journal_run WHERE status = 'ready' AND code = ANY(%s) AND NOT %s = ANY(blocked_by))"
)


class LocalWorker:
    """This process as a worker. Threads of its own beat and sweep; the pool's threads execute."""

    def __init__(self, slots: int, submit: Callable[[Callable[[], None]], Any]) -> None:
        registry.load_authors_modules()
        self.draining = False
        self.fingerprint = registry.fingerprint()
        self.replays_every_step: bool = settings.SIGNOFF_REPLAY_EVERY_STEP
        self._capabilities = registry.capabilities()
        self._submit = submit
        self._slots = threading.BoundedSemaphore(slots)
        # With the epoch: a run that was suspended here may be claimed again here before its old thread is through.
        self._held: set[tuple[str, int]] = set()
        self._is_alone = False
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._heart = _Heart(self._register)
        self._threads: list[threading.Thread] = []

    # ---- life

    def start(self) -> None:
        self._heart.beat()
        for name, loop in (("beat", self._heart.beat_until), ("sweep", self._sweep_until)):
            thread = threading.Thread(target=loop, args=(self._stopping,), name=f"signoff-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)
        log.info("worker %d runs %s (code %s)", self._heart.worker_id, ", ".join(self._capabilities), self.fingerprint)

    def drain_out(self) -> None:
        """Takes no new runs; those at hand are handed back when their step ends."""
        self.draining = True

    def stop(self) -> None:
        """After the last thread has let go of its run."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=5)
        leases.retire(self._heart.worker_id)
        self._heart.close()
        connection.close()

    def check_alive(self) -> None:
        if self._heart.age() > leases.LEASE:
            raise LeaseLost("this worker's heartbeat is older than its lease")

    def _register(self, *, is_watched: bool) -> int:
        me = leases.Process.mine()
        return Worker.objects.create(
            pid=me.pid,
            host=me.host,
            machine=me.machine,
            process_started=me.started,
            capabilities=self._capabilities,
            fingerprint=self.fingerprint,
            is_watched=is_watched,
        ).pk

    # ---- work

    def drain(self) -> None:
        """Claims and executes until nothing is ready, if a slot is free."""
        if not self._slots.acquire(blocking=False):
            return
        try:
            while not self.draining and self._execute_next():
                pass
        except (DatabaseError, InterfaceError) as error:
            log.warning("the database cannot be asked for work: %s", error)
        finally:
            self._slots.release()
            close_all()

    def _execute_next(self) -> bool:
        claim = self._claim()
        if claim is None:
            return False
        try:
            if not self._is_alone:
                self._share_the_work()
            execute_claimed(*claim, self)
        finally:
            with self._lock:
                self._held.discard(claim)
                self._is_alone = False
        return True

    def _claim(self) -> tuple[str, int] | None:
        """One at a time: whether this worker holds anything must not change in between."""
        with self._lock:
            if self._is_alone:
                return None
            claim = statements.rows(
                statements.CLAIM,
                {
                    "capabilities": self._capabilities,
                    "fingerprint": self.fingerprint,
                    "worker": self._heart.worker_id,
                    "idle": not self._held,
                    "suspect": leases.SUSPECT_AFTER,
                },
            )
            if not claim:
                return None
            run_id, epoch, self._is_alone = claim[0]
            self._held.add((run_id, epoch))
            return run_id, epoch

    def _share_the_work(self) -> None:
        """One bell leads to one claim; if more is ready, it rings on: here while a slot is free, and elsewhere."""
        if statements.rows(MORE, [self._capabilities, self.fingerprint])[0][0]:
            self._kick()
            bells.ring()

    def _kick(self) -> None:
        if not self.draining and self._slots.acquire(blocking=False):
            self._slots.release()
            self._submit(self.drain)

    # ---- sweeping

    def _sweep_until(self, stopping: threading.Event) -> None:
        unblocked_at = 0.0
        while not stopping.wait(SWEEP_EVERY * random.uniform(0.8, 1.2)):  # noqa: S311 - spreads, hides nothing
            try:
                sweeping.wake_due()
                leases.sweep_dead(self._heart.worker_id, may_suspect=self._heart.is_steady())
                since = db_now()
                with self._lock:
                    held = list(self._held)
                sweeping.release_forgotten(self._heart.worker_id, held, since)
                if time.monotonic() - unblocked_at > UNBLOCK_EVERY:
                    unblocked_at = time.monotonic()
                    sweeping.unblock(self._capabilities, self.fingerprint)
                self._kick()
            except (DatabaseError, InterfaceError) as error:
                log.warning("the sweep cannot reach the database: %s", error)
            except Exception:
                log.exception("the sweep failed; it goes on")
            finally:
                close_all()


class _Heart:
    """The heartbeat, and the idle session whose loss makes others suspect a death.

    The session is a connection of its own, outside the pool, that holds an advisory lock for as long as it lives.
    Behind a pooler the lock would stay with a session of the pooler's, and go with that: none is taken, and nobody
    suspects this worker by it."""

    def __init__(self, register: Callable[..., int]) -> None:
        self._register = register
        self.worker_id = 0
        self._session: psycopg.Connection[Any] | None = None
        self._is_watched = True
        self._wants_lock = False
        self._said_what_is_lost = False
        self._last_beat = time.monotonic()
        self._steady_since = time.monotonic()

    def age(self) -> float:
        """Seconds since the last beat that the database has confirmed."""
        return time.monotonic() - self._last_beat

    def is_steady(self) -> bool:
        """Whether this worker's own beats have gone through without a gap: only then may it judge others by silence."""
        now = time.monotonic()
        return now - self._last_beat < 2 * leases.HEARTBEAT and now - self._steady_since > leases.GRACE

    def beat_until(self, stopping: threading.Event) -> None:
        pause = 0.0
        while not stopping.wait(pause):
            try:
                self.beat()
                pause = 0.25 if self._wants_lock else leases.HEARTBEAT
            except (psycopg.Error, DatabaseError, InterfaceError) as error:
                log.warning("the heartbeat does not reach the database: %s", error)
                self.close()
                pause = 0.25
            finally:
                connection.close()

    def beat(self) -> None:
        """Opens the session if need be, and beats. A worker that was declared dead goes on as a new one."""
        if self._session is None:
            self._session = self._connect()
            self._wants_lock = self._is_watched = not is_pooled(self._session)
            if not self._is_watched:
                self._say_what_is_lost(self._session)
        began = time.monotonic()
        if self.worker_id == 0 or not self._session.execute(BEAT, [self._is_watched, self.worker_id]).fetchone():
            if self.worker_id:
                log.warning("this worker was declared dead; it goes on under another number")
            self.worker_id = self._register(is_watched=self._is_watched)
            self._wants_lock = self._is_watched
        if self._wants_lock:
            found = self._session.execute("SELECT pg_try_advisory_lock(%s, %s)", [leases.LOCK_SPACE, self.worker_id])
            self._wants_lock = not found.fetchone()[0]  # type: ignore[index]
        if began - self._last_beat > 2 * leases.HEARTBEAT:
            self._steady_since = began
        self._last_beat = began

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _say_what_is_lost(self, session: psycopg.Connection[Any]) -> None:
        """Once in a process, however often the session is opened again."""
        if not self._said_what_is_lost:
            self._said_what_is_lost = True
            (cut,) = session.execute("SHOW idle_in_transaction_session_timeout").fetchone()  # type: ignore[misc]
            log.warning(BEHIND_A_POOLER, leases.LEASE, leases.GRACE, cut)

    @staticmethod
    def _connect() -> psycopg.Connection[Any]:
        params = connection.get_connection_params()
        chosen = {name: params[name] for name in CONNECTION_ONLY if params.get(name)}
        return psycopg.connect(
            **chosen,
            connect_timeout=3,
            autocommit=True,
            prepare_threshold=None,
            application_name=f"heartbeat signoff-{os.getpid()}",
        )


_current: LocalWorker | None = None


def current() -> LocalWorker:
    """This process's worker. Raises RuntimeError where none was started."""
    if _current is None:
        raise RuntimeError("this process is not a worker")
    return _current


def is_started() -> bool:
    """Whether this process is a worker: one that ends while it starts is none yet."""
    return _current is not None


def set_current(worker: LocalWorker | None) -> None:
    global _current  # noqa: PLW0603 - one worker per process, made by Celery's signal
    _current = worker
