"""The default broker: pgmq over the service's own PostgreSQL."""

from __future__ import annotations

import statistics
import time
from functools import partial
from pathlib import Path

import pytest
from celery import Celery
from psycopg.conninfo import conninfo_to_dict

from config.broker import celery_settings
from config.database import conninfo
from tests.harness import Service
from tests.waiting import wait_for


def _written(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


@pytest.fixture
def publisher(service: Service) -> Celery:
    """A Celery app of another process than the worker's: this one."""
    app = Celery("publisher", set_as_current=False)
    app.config_from_object(celery_settings("", conninfo(conninfo_to_dict(service.url))))
    return app


def test_a_bell_reaches_a_worker_within_milliseconds(service: Service, publisher: Celery, tmp_path: Path) -> None:
    service.start_worker("--include", "tests.config.bells")
    delays = []
    for number in range(20):
        file = tmp_path / str(number)
        rung_at = time.time()
        publisher.send_task("tests.note_bell", [str(file)])
        delays.append(float(wait_for(partial(_written, file))) - rung_at)
    assert statistics.median(delays) < 0.05
    publisher.close()


def test_bells_ring_on_after_a_restart_of_postgresql(service: Service, publisher: Celery, tmp_path: Path) -> None:
    service.start_worker("--include", "tests.config.bells")
    service.restart_postgres()
    file = tmp_path / "bell"

    def heard() -> bool:
        publisher.send_task("tests.note_bell", [str(file)])
        return file.exists()

    wait_for(heard, timeout=20, what="a bell after the restart", every=0.2)
    publisher.close()
