"""Headers, log lines, and Celery's settings."""

from __future__ import annotations

import logging
import sys

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from config.broker import celery_settings
from config.logs import LineFormatter
from config.middleware import CONTENT_SECURITY_POLICY, security_headers


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    policy = dict(part.split(" ", 1) for part in CONTENT_SECURITY_POLICY.split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY
    assert {value for name, value in policy.items() if name not in ("default-src", "base-uri", "frame-ancestors")} == {
        "'self'",
        "'self' data:",
    }


def test_every_answer_has_the_policies() -> None:
    answer = security_headers(lambda request: HttpResponse("x"))(RequestFactory().get("/"))
    assert answer.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert "camera=()" in answer.headers["Permissions-Policy"]


def record(message: str, **extra: object) -> logging.LogRecord:
    made = logging.getLogger("thing").makeRecord("thing", logging.INFO, "f", 1, message, (), None, extra=extra)
    made.created, made.msecs = 0.0, 7.0
    return made


def test_a_log_line_has_time_level_action_and_message() -> None:
    line = LineFormatter().format(record("it is done", action="run_claimed"))
    assert line == "1970-01-01T00:00:00.007Z info    run_claimed  it is done"


def test_what_somebody_else_wrote_cannot_forge_a_line_or_move_the_cursor() -> None:
    line = LineFormatter().format(record("a\nb\x1b[2Jc\r"))
    assert line.endswith("thing  a\\x0ab\\x1b[2Jc\\x0d")


def test_a_traceback_stays_below_its_line() -> None:
    try:
        raise ValueError("no\x1b")
    except ValueError:
        made = record("failed")
        made.exc_info = sys.exc_info()
    first, *rest = LineFormatter().format(made).splitlines()
    assert first.endswith("failed")
    assert rest[-1] == "    ValueError: no\\x1b"
    assert all(line.startswith("    ") for line in rest)


def test_bells_go_over_the_own_database_by_default() -> None:
    made = celery_settings("", "host=/run/pg dbname=mine")
    assert made["broker_url"].startswith("pgmq://")
    options = made["broker_transport_options"]
    assert options["conn_string"] == "host=/run/pg dbname=mine"
    assert options["init_extension"] is False
    assert options["use_notify"] is True
    assert options["notify_throttle_interval_ms"] == 0
    assert made["task_ignore_result"] is True
    assert made["worker_pool"] == "threads"
    assert made["worker_prefetch_multiplier"] == 1


def test_pgmq_on_another_database_gets_key_and_value_form() -> None:
    made = celery_settings("pgmq://me:p%40ss@db.example:5433/bells", "dbname=mine")
    address = made["broker_transport_options"]["conn_string"]
    assert "password=p@ss" in address
    assert "host=db.example" in address
    assert "dbname=bells" in address


@pytest.mark.parametrize("url", ["redis://h/0", "rediss://h/0", "amqp://h//", "amqps://h//", "pgmq://u@h/d"])
def test_no_publisher_waits_long(url: str) -> None:
    made = celery_settings(url, "dbname=mine")
    assert made["task_publish_retry"] is False
    assert made["broker_connection_timeout"] <= 2
    timeouts = [value for name, value in made["broker_transport_options"].items() if name.endswith("timeout")]
    assert min(timeouts) <= 2
