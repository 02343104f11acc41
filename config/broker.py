"""Celery's settings. A message is only a doorbell: losing or doubling one changes nothing.

So nothing here retries, stores results, or talks between workers, and publishing gives up
within about two seconds: the sweep finds the work anyway.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo

QUEUE = "signoff"
PATIENCE = 2  # seconds that connecting, sending or reading may take while a bell is rung
_PGMQ = "pgmq"


def celery_settings(url: str, own_database: str) -> dict[str, Any]:
    """Lower-case Celery settings for this broker address.

    Without one the bells travel over our own PostgreSQL, whose `key=value` address is given.
    """
    url = url or f"{_PGMQ}://"
    return {
        # The address of pgmq lies in its transport options: kombu misreads a URL without a host.
        "broker_url": f"{_PGMQ}://localhost//" if _scheme(url) == _PGMQ else url,
        "broker_transport_options": _transport_options(url, own_database),
        "broker_connection_timeout": PATIENCE,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # A Redis whose memory is full says so on the channel: the worker waits for it, as for a lost connection.
        "broker_channel_error_retry": True,
        "broker_pool_limit": 4,
        "broker_heartbeat": 10,
        "task_publish_retry": False,
        "task_default_queue": QUEUE,
        "task_default_delivery_mode": "transient",
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_acks_late": False,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_pool": "threads",
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "task_send_sent_event": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "enable_utc": True,
    }


def _scheme(url: str) -> str:
    return urlsplit(url).scheme.split("+")[0]


def _transport_options(url: str, own_database: str) -> dict[str, Any]:
    scheme = _scheme(url)
    if scheme == _PGMQ:
        return {
            "conn_string": _pgmq_address(url) or own_database,
            "init_extension": False,
            "use_notify": True,
            "notify_throttle_interval_ms": 0,
            # No polling inside PostgreSQL, which looks only every 100 ms: the notification wakes.
            "wait_time_seconds": 0,
            "pool_size": 4,
            "pool_timeout": PATIENCE,
            # A bell that a dying worker took is rung again by the sweep, not by the broker.
            "visibility_timeout": 60,
        }
    if scheme in ("redis", "rediss"):
        return {
            "socket_connect_timeout": PATIENCE,
            "socket_timeout": PATIENCE + 3,
            "socket_keepalive": True,
            "visibility_timeout": 60,
        }
    if scheme in ("amqp", "amqps", "pyamqp"):
        return {"connect_timeout": PATIENCE, "read_timeout": PATIENCE, "write_timeout": PATIENCE}
    return {}


def _pgmq_address(url: str) -> str:
    """libpq's `key=value` form of pgmq://user:password@host/database; "" when it names nothing."""
    rest = url.split("://", 1)[1].strip("/")
    if not rest:
        return ""
    try:
        return make_conninfo(f"postgresql://{rest}", connect_timeout=str(PATIENCE))
    except ProgrammingError as error:
        raise ImproperlyConfigured(f"SIGNOFF_BROKER_URL: {error}") from error
