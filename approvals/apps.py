"""The human side as a Django app."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Approvals"

    def ready(self) -> None:
        import_module("approvals.wiring")  # it needs models, which cannot be imported before now
