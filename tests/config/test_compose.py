"""docker-compose.yml and Dockerfile say what the project has: compared, since nobody runs them here."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.home import BASE_DIR
from config.processes import web_command, worker_command
from tests import machine
from tests.config.test_settings import TABLE

COMPOSE: dict[str, Any] = yaml.safe_load((BASE_DIR / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("web", "workers", "migrate")
DOCKERFILE = (BASE_DIR / "Dockerfile").read_text(encoding="utf-8")
SECRETS = {
    "database_url": "postgresql://signoff:hush@postgres/signoff",
    "secret_key": "only-for-this-test-0123456789-0123456789-abcdefghijkl",
    "chain_key": "only-for-this-test-9876543210-9876543210",
}


def arguments(command: str) -> list[str]:
    """Without the interpreter, which has another path in the image."""
    program, *rest = shlex.split(command)
    assert program == "python"
    return rest


def environment(service: str, folder: Path) -> dict[str, str]:
    """What compose gives the service, with secrets in files of this test's and one public address."""
    values = {}
    for name, value in SERVICES[service]["environment"].items():
        value = re.sub(r"\$\{SIGNOFF_BASE_URL:\?[^}]*\}", "https://signoff.example.org", str(value))
        value = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
        values[name] = value.replace("/run/secrets/", f"{folder}/")
    return values


def test_it_has_the_production_shape() -> None:
    assert set(SERVICES) == {*OURS, "postgres", "redis"}


def test_web_and_workers_run_the_commands_that_up_runs() -> None:
    assert arguments(SERVICES["web"]["command"]) == web_command(port=8000, host="0.0.0.0")[1:]
    assert arguments(SERVICES["workers"]["command"]) == worker_command()[1:]
    assert arguments(SERVICES["migrate"]["command"])[:2] == ["manage.py", "migrate"]


def test_the_image_serves_the_same_web() -> None:
    command = re.search(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert command
    assert yaml.safe_load(command.group(1))[1:] == web_command(port=8000, host="0.0.0.0")[1:]


def test_the_published_port_is_the_one_that_web_listens_on() -> None:
    (published,) = SERVICES["web"]["ports"]
    assert published.rsplit(":", 1)[1] == "8000" == re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE)[0]
    assert published.startswith("127.0.0.1:"), "a proxy that speaks https stands in front"


@pytest.mark.parametrize("service", OURS)
def test_every_variable_is_a_setting(service: str) -> None:
    names = {name.removesuffix("_FILE") for name in SERVICES[service]["environment"]} - {"FORWARDED_ALLOW_IPS"}
    assert names <= set(re.findall(r"^\| `([A-Z_]+)`", TABLE, re.MULTILINE))


@pytest.mark.parametrize("service", OURS)
def test_the_settings_accept_that_environment(service: str, tmp_path: Path) -> None:
    for name, value in SECRETS.items():
        (tmp_path / name).write_text(f"{value}\n", encoding="utf-8")
    code = (
        "from django.conf import settings as s; from config.celery import app\n"
        "print(s.DATABASES['default']['HOST'], app.conf.broker_url, s.PRODUCTION, app.main)"
    )
    for command in (["check", "--deploy", "--fail-level", "WARNING"], ["shell", "--no-imports", "-c", code]):
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=BASE_DIR,
            env=machine.environment(**environment(service, tmp_path)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["postgres", "redis://redis:6379/0", "True", "signoff"]


def test_addresses_name_services_and_secrets_that_exist() -> None:
    assert f"@{'postgres'}/" in SECRETS["database_url"]
    assert "redis" in SERVICES
    declared = set(COMPOSE["secrets"])
    for service in SERVICES.values():
        assert set(service.get("secrets", [])) <= declared
        for other in service.get("depends_on", {}):
            assert other in SERVICES
    assert declared == {*SECRETS, "postgres_password"}


def test_the_image_has_a_python_that_the_project_supports_and_all_of_its_packages() -> None:
    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text(encoding="utf-8"))
    python = re.search(r"^FROM python:3\.(\d+)", DOCKERFILE)
    least = re.search(r">=3\.(\d+)", project["project"]["requires-python"])
    assert python
    assert least
    assert int(python.group(1)) >= int(least.group(1))
    copied = set(re.findall(r"^COPY (\S+) \S+$", DOCKERFILE, re.MULTILINE))
    assert {*project["tool"]["importlinter"]["root_packages"], "templates", "static", "manage.py"} <= copied
    assert all((BASE_DIR / name).exists() for name in copied)
