"""How a Celery worker becomes one of ours: its pool's threads are the slots."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down
from django.db import DatabaseError, InterfaceError
from psycopg import Error as PsycopgError

from journal import registry, worker
from journal.errors import AuthorsModuleBroken


@worker_init.connect
def check_pool(sender: Any, **_: Any) -> None:
    """Only threads: a prefork child would hold runs under its parent's heartbeat, and its death go unseen."""
    if not sender.pool_cls.__module__.endswith(".thread"):
        raise SystemExit("signoff workers run with --pool=threads (see docs/engine.md)")


@worker_init.connect
def load_workflows(**_: Any) -> None:
    """Before the worker says that it is ready. SystemExit, since Celery only logs other errors of a receiver."""
    try:
        registry.load_authors_modules()
    except AuthorsModuleBroken as error:
        raise SystemExit(str(error)) from None


@worker_ready.connect
def start(sender: Any, **_: Any) -> None:
    """Celery says that it is ready at each return of its broker; this process becomes a worker once.

    SystemExit where the database is away: who supervises it starts it again, and it never looks ready and is not."""
    if worker.is_started():
        return
    local = worker.LocalWorker(slots=sender.pool.limit, submit=sender.pool.apply_async)
    worker.set_current(local)
    try:
        local.start()
    except (DatabaseError, InterfaceError, PsycopgError) as error:
        worker.set_current(None)
        raise SystemExit(f"this worker cannot reach the database: {error}") from None


@worker_shutting_down.connect
def drain(**_: Any) -> None:
    if worker.is_started():
        worker.current().drain_out()


@worker_shutdown.connect
def stop(**_: Any) -> None:
    if worker.is_started():
        worker.current().stop()
        worker.set_current(None)
