"""gunicorn's settings that do not depend on the machine."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from gunicorn.errors import AppImportError  # type: ignore[import-untyped]

from config.leash import follow_supervisor
from config.logs import logging_settings

wsgi_app = "config.wsgi"
worker_class = "gthread"
workers = 1
threads = 8  # its sessions fit into SIGNOFF_DATABASE_POOL
timeout = 60
graceful_timeout = 5
keepalive = 5
# A proxy in front says what was https: name its address in FORWARDED_ALLOW_IPS.
accesslog = None
control_socket_disable = True
logconfig_dict = logging_settings()
# Its own words only when something is wrong, in the same form as all others.
logconfig_dict["loggers"]["gunicorn.error"] = {"handlers": ["stderr"], "level": "WARNING", "propagate": False}


def on_starting(server: Any) -> None:
    """In gunicorn's own process, which ends its workers."""
    follow_supervisor()


def post_fork(server: Any, worker: Any) -> None:
    """Loads config.wsgi, which the worker keeps. gunicorn prints an AppImportError as one line, and ends."""
    try:
        worker.app.wsgi()
    except ImproperlyConfigured as error:
        raise AppImportError(f"settings: {error}") from error
