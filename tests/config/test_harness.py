"""The tests' own service works: what is started is real."""

from __future__ import annotations

import subprocess

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tests.harness import LOST, Service


@pytest.mark.django_db
def test_the_ordinary_test_database_is_postgresql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), current_setting('fsync'), current_setting('TimeZone')")
        name, *settings = cursor.fetchone()
    assert name.startswith("test_signoff")
    assert settings == ["on", "UTC"]


def test_models_and_commands_see_the_same_database(service: Service) -> None:
    User.objects.create(username="ada")
    assert service.value("SELECT count(*) AS n FROM auth_user") == 1
    assert service.manage("check").code == 0


def test_each_service_has_a_database_of_its_own(service: Service) -> None:
    assert not User.objects.exists()


def test_a_worker_starts_stops_and_dies(service: Service) -> None:
    worker = service.start_worker()
    worker.pause()
    worker.proceed()
    assert service.terminate_sessions(worker) > 0
    worker.terminate()
    assert worker.wait() == 0
    other = service.start_worker()
    other.kill()
    assert other.wait() == -9


def test_workers_run_while_every_bell_is_lost(service: Service) -> None:
    service.broker = LOST
    assert service.start_worker().is_alive


def test_the_web_server_answers_with_its_headers(service: Service) -> None:
    web = service.start_web()
    answer = subprocess.run(["curl", "-si", web.url], capture_output=True, text=True, check=False).stdout
    assert "default-src 'none'" in answer


def test_the_server_can_be_restarted(service: Service) -> None:
    User.objects.create(username="ada")
    service.restart_postgres()
    assert User.objects.get().username == "ada"
