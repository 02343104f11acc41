"""The Celery app: `celery --app config worker`."""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import setup_logging, worker_init, worker_ready
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from kombu.transport import TRANSPORT_ALIASES

from config.checks import require_sound_settings
from config.leash import follow_supervisor

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

logger = logging.getLogger(__name__)

if not settings.PRODUCTION:
    # A demo in a container runs as root; nothing is unpickled, which is what Celery warns of.
    warnings.simplefilter("ignore", SecurityWarning)

TRANSPORT_ALIASES["pgmq"] = "config.pgmq_transport:Transport"

app = Celery("signoff")
app.config_from_object(settings.CELERY)
app.set_default()
app.autodiscover_tasks()


@setup_logging.connect
def _keep_our_logging(**_: Any) -> None:
    """Celery sets up no logging where somebody listens: Django's settings have done it."""


def _say_ready(**_: Any) -> None:
    logger.info("takes work", extra={"action": "worker_ready"})


@worker_init.connect
def _begin(**_: Any) -> None:
    try:
        require_sound_settings()
    except ImproperlyConfigured as error:
        # Celery only logs what else a receiver raises, and goes on.
        raise SystemExit(f"settings: {error}") from None
    # Connected only now, hence called last: when the engine's own receiver has been through.
    worker_ready.connect(_say_ready)
    follow_supervisor()
