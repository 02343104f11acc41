"""A test session that is killed leaves no server and no worker behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from config.home import BASE_DIR
from config.postgres import EmbeddedPostgres
from tests import machine
from tests.waiting import wait_for

SESSION = """
import time
from tests.harness import Service

def test_that_never_ends(service: Service) -> None:
    service.start_worker()
    time.sleep(600)
"""


def test_a_killed_session_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / "test_never_ends.py").write_text(SESSION, encoding="utf-8")
    session = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", str(tmp_path), "--rootdir", str(BASE_DIR)],
        cwd=BASE_DIR,
        env=machine.environment(TMPDIR=str(tmp_path), DJANGO_SETTINGS_MODULE="tests.settings"),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        worker = wait_for(lambda: _worker_of(session.pid), 60, "the session's worker", every=0.1)
        (home,) = tmp_path.glob("signoff-tests-*")
        assert EmbeddedPostgres(home).is_running()
    finally:
        session.send_signal(signal.SIGKILL)
        session.wait()
    assert worker
    wait_for(lambda: not home.exists() and not worker.is_running(), 30, "server and worker are gone", every=0.1)


def _worker_of(pid: int) -> psutil.Process | None:
    for child in psutil.Process(pid).children():
        with suppress(psutil.Error):  # one that has just ended
            if "celery" in child.cmdline() and child.num_threads() > 4:
                return child
    return None
