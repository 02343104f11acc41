"""The PostgreSQL server of a test session, and the databases that tests make on it."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config.home import BASE_DIR
from config.postgres import EmbeddedPostgres
from tests import machine
from tests.watchdog import watch


class DatabaseServer:
    """DATABASE_URL's server, or an embedded one in a home of its own when that is unset."""

    def __init__(self, url: str, embedded: EmbeddedPostgres | None) -> None:
        self.embedded = embedded
        self.params: dict[str, Any] = dict(conninfo_to_dict(url))
        self._template: str | None = None
        self._made: list[str] = []
        self._watchdog: subprocess.Popen[bytes] | None = None

    @classmethod
    def for_session(cls, home: Path) -> DatabaseServer:
        """Starts the embedded server where no other is named."""
        if url := os.environ.get("DATABASE_URL"):
            return cls(url, None)
        embedded = EmbeddedPostgres(home)
        made = cls(embedded.start(), embedded)
        made._watchdog = watch(home)
        return made

    def close(self) -> None:
        """Drops what was made here; an embedded server goes with its data."""
        if self.embedded and self._watchdog:
            self.embedded.destroy()
            self._watchdog.communicate()
            return
        for name in list(self._made):
            self.drop(name)

    def url(self, name: str) -> str:
        """Address of a database of this server, in libpq's key=value form."""
        return make_conninfo(**{**self.params, "dbname": name})

    def create(self) -> str:
        """A new database with all migrations run; a copy of a template made once. Its name."""
        if self._template is None:
            self._template = self._create(template="template1")
            migrate(self.url(self._template))
        return self._create(template=self._template)

    def drop(self, name: str) -> None:
        """Removes a database, ending the sessions that are still in it."""
        self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        self._made.remove(name)

    def restart(self) -> None:
        """Stops and starts the embedded server on the same port; every session ends."""
        if self.embedded is None:
            raise AssertionError("only the embedded server can be restarted: unset DATABASE_URL")
        self.embedded.restart()

    def _create(self, template: str) -> str:
        name = f"signoff_{secrets.token_hex(6)}"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._run(statement.format(sql.Identifier(name), sql.Identifier(template)))
        self._made.append(name)
        return name

    def _run(self, statement: sql.Composed) -> None:
        maintenance = make_conninfo(**{**self.params, "dbname": "postgres"})
        with psycopg.connect(maintenance, autocommit=True) as connection:
            connection.execute(statement)


def keep_pristine() -> str:
    """Keeps a copy of what Django's database holds now, and answers with the SQL that puts it back as it was.

    Django's own flush makes every content type, permission and role anew, which takes longer than most tests."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA pristine")
        for name in tables:
            cursor.execute(f'CREATE TABLE pristine."{name}" AS TABLE public."{name}"')
    names = ", ".join(f'"{name}"' for name in tables)
    back = (f'INSERT INTO public."{name}" TABLE pristine."{name}"' for name in tables)
    return "; ".join([f"TRUNCATE {names}", *back])


def migrate(url: str) -> None:
    """Runs `manage.py migrate` on a database."""
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0", "--skip-checks"]
    environment = machine.environment(SIGNOFF_ENV="test", DATABASE_URL=url, SIGNOFF_HOME=str(settings.SIGNOFF_HOME))
    done = subprocess.run(
        command, cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"migrate failed:\n{done.stdout}{done.stderr}"
