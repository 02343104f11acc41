"""The commands of the service's long-running processes: for `up`, compose and the tests alike."""

from __future__ import annotations

import sys

from config.broker import QUEUE

THREADS = 8  # of one worker: runs at work at once


def worker_command(*, threads: int = THREADS, queues: str = QUEUE) -> list[str]:
    """A Celery worker: threads, and none of the talk between workers, which costs messages."""
    return [
        *(sys.executable, "-m", "celery", "--app", "config", "--quiet", "worker"),
        *("--pool", "threads", "--concurrency", str(threads), "--queues", queues),
        *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"),
    ]


def web_command(*, port: int, host: str = "127.0.0.1") -> list[str]:
    """The web server: one process with threads; run more of them for more cores."""
    return [
        *(sys.executable, "-m", "gunicorn", "config.wsgi", "--config", "python:config.gunicorn"),
        *("--bind", f"{host}:{port}"),
    ]
