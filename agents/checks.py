"""System checks of the agents app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error

from agents.clients import problem_with


def check_model_client(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """agents.E001: SIGNOFF_MODEL_CLIENT names a client that exists."""
    problem = problem_with(settings.SIGNOFF_MODEL_CLIENT)
    return [Error(problem, id="agents.E001")] if problem else []
