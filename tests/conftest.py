"""Fixtures for all tests: the database server, the real service, the browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connections
from django.test import TransactionTestCase
from playwright.sync_api import Browser, sync_playwright
from psycopg.conninfo import conninfo_to_dict

from config.database import django_database
from tests import machine
from tests.databases import DatabaseServer, keep_pristine
from tests.harness import Service

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker


@pytest.fixture(scope="session")
def database_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseServer]:
    """DATABASE_URL's PostgreSQL, or an embedded one that lives as long as the session."""
    server = DatabaseServer.for_session(settings.SIGNOFF_HOME)
    yield server
    connections.close_all()
    server.close()
    shutil.rmtree(settings.SIGNOFF_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(database_server: DatabaseServer) -> None:
    """Overrides pytest-django's: the test database is made on the session's server."""
    bind_django(database_server.params)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Extends pytest-django's: tests that commit put the database back by our SQL instead of Django's flush."""
    with django_db_blocker.unblock():
        pristine = keep_pristine()

    def put_back(_: TransactionTestCase) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute(pristine)

    TransactionTestCase._fixture_teardown = put_back  # type: ignore[attr-defined]


def bind_django(params: dict[str, Any]) -> dict[str, Any]:
    """Points Django's connection of this process at another database; its settings before that."""
    connection = connections["default"]
    before = dict(connection.settings_dict)
    connections.close_all()
    connection.close_pool()  # type: ignore[attr-defined]
    entry = django_database(params, pool_size=settings.DATABASE_POOL)
    connection.settings_dict.update(entry)
    return before


@pytest.fixture
def service(database_server: DatabaseServer, django_db_blocker: DjangoDbBlocker) -> Iterator[Service]:
    """The real service on a database of its own; see tests/harness.py."""
    made = Service(database_server)
    before = bind_django(dict(conninfo_to_dict(made.url)))
    try:
        with django_db_blocker.unblock():
            yield made
    finally:
        connections.close_all()
        connections["default"].close_pool()  # type: ignore[attr-defined]
        connections["default"].settings_dict.update(before)
        made.close()
        shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium of this machine."""
    path = machine.chromium()
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work for root, as whom CI runs.
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real inputs."""
    return machine.real_data()
