from django.apps import AppConfig
from django.core.checks import register

from agents.checks import check_model_client


class AgentsConfig(AppConfig):
    name = "agents"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Agents"

    def ready(self) -> None:
        register(check_model_client)
