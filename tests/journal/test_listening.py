"""The session over which PostgreSQL says that a bell has rung: lost, it is there again by itself. A28.

Without any bell the sweeps find all work (the "no-bells" of test_worker_death.py); behind a pooler, which lets nobody
listen, the worker says so when it starts (tests/chaos/test_pgbouncer.py)."""

from __future__ import annotations

import statistics
import time
from functools import partial
from pathlib import Path

from celery import Celery

from tests.config.test_doorbell import _written, publisher  # noqa: F401 - a fixture
from tests.harness import Service
from tests.waiting import wait_for

LISTENS = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %%'"


def listening(service: Service) -> set[int]:
    return {row["pid"] for row in service.rows(f"SELECT pid {LISTENS}")}


def test_a_listener_that_was_cut_off_listens_again(
    service: Service,
    publisher: Celery,  # noqa: F811
    tmp_path: Path,
) -> None:
    service.start_worker("--include", "tests.config.bells")
    before = wait_for(lambda: listening(service), what="the worker listens")
    service.rows(f"SELECT pg_terminate_backend(pid) {LISTENS}")
    wait_for(lambda: listening(service) - before, what="it listens again")
    delays = []
    for number in range(10):
        file = tmp_path / str(number)
        rung_at = time.time()
        publisher.send_task("tests.note_bell", [str(file)])
        delays.append(float(wait_for(partial(_written, file))) - rung_at)
    publisher.close()
    assert statistics.median(delays) < 0.2, "bells are only found by looking for them once a second"
