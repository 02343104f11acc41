"""The composition root as a Django app: it brings system checks, commands and a migration."""

from __future__ import annotations

from django.apps import AppConfig

from config import celery, checks


class ConfigConfig(AppConfig):
    """Importing it makes the Celery app the current one and registers the checks."""

    name = "config"
    celery_app = celery.app
    check_ids = checks.IDS
