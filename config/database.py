"""Which PostgreSQL, and how this process connects to it."""

from __future__ import annotations

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, OperationalError
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg import IsolationLevel, ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from config import env
from config.home import home
from config.postgres import EmbeddedPostgres, PostgresError
from journal.poolers import prepare_statements

# Connections that a server process keeps; manage.py sets 0, since a command ends before a pool pays.
default_pool_size = 16

NO_DATABASE = "no database: run `manage.py up` or set DATABASE_URL"

# Sessions of ours never hold a transaction open for long; one whose process hangs or is cut
# off must let go of its row locks by itself.
_SESSION = {
    "idle_in_transaction_session_timeout": "60s",
    "default_transaction_isolation": r"read\ committed",
}


def address() -> dict[str, Any]:
    """libpq parameters of the database to use: DATABASE_URL, or the embedded one.

    With neither, a socket folder that does not exist: connecting fails at once, and never
    reaches some other PostgreSQL of this machine.
    """
    url = env.secret("DATABASE_URL")
    try:
        url = url or EmbeddedPostgres(home()).url or f"host={home() / 'no-database'} dbname=signoff"
        return conninfo_to_dict(url)
    except PostgresError as error:
        raise ImproperlyConfigured(str(error)) from error
    except ProgrammingError as error:
        raise ImproperlyConfigured(f"DATABASE_URL is not a PostgreSQL address: {error}") from error


def django_database(params: dict[str, Any], *, pool_size: int) -> dict[str, Any]:
    """The entry of DATABASES for these libpq parameters.

    `pool_size` 0 means a connection of its own for each thread.
    """
    rest = dict(params)
    if "dbname" not in rest:
        raise ImproperlyConfigured("DATABASE_URL names no database")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": rest.pop("dbname"),
        "USER": rest.pop("user", ""),
        "PASSWORD": rest.pop("password", ""),
        "HOST": rest.pop("host", ""),
        "PORT": rest.pop("port", ""),
        "ATOMIC_REQUESTS": False,
        "AUTOCOMMIT": True,
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        # They outlive their transaction, which a pooler knows nothing of.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "OPTIONS": {
            **session_params(rest),
            "isolation_level": IsolationLevel.READ_COMMITTED,
            "server_side_binding": True,
            "prepare_threshold": None,  # until journal.poolers.prepare_statements has looked
            **({"pool": {"min_size": 1, "max_size": pool_size, "timeout": 10}} if pool_size else {}),
        },
    }


@receiver(connection_created)
def _prepare_statements(connection: DatabaseWrapper, **_: Any) -> None:
    if connection.alias == DEFAULT_DB_ALIAS:
        prepare_statements(connection.connection)


def session_params(params: dict[str, Any]) -> dict[str, Any]:
    """`params` with what every session of this process sets; what the address says wins."""
    settings = " ".join(f"-c {name}={value}" for name, value in _SESSION.items())
    return {
        # One name for all sessions of a process, so that pg_stat_activity tells whose they are.
        "application_name": f"signoff-{os.getpid()}",
        "connect_timeout": "5",
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "10000",
        **params,
        "options": f"{settings} {params.get('options', '')}".strip(),
    }


def conninfo(params: dict[str, Any]) -> str:
    """`key=value` form for a plain psycopg connection (and kombu) with our session settings."""
    return make_conninfo(**session_params(params))


def tell_libpq(params: dict[str, Any]) -> None:
    """Puts our session settings into libpq's own environment variables.

    pgmq's client, which carries the bells, takes an address apart and keeps only host, port,
    database, user and password: without this it would lose `sslmode`, timeouts and the name.
    """
    variables = {option.keyword.decode(): option.envvar for option in Conninfo.get_defaults()}
    for keyword, value in session_params(params).items():
        variable = variables.get(keyword)
        if variable and keyword not in ("host", "port", "dbname", "user", "password"):
            os.environ[variable.decode()] = str(value)
    os.environ["PGTZ"] = "UTC"  # not among the options: those are lost on a pooler, and times would be read wrong


def unavailable(error: OperationalError) -> str:
    """One line for a person whose command found no database."""
    if not env.secret("DATABASE_URL") and not EmbeddedPostgres(home()).is_running():
        return NO_DATABASE
    return f"database unavailable: {str(error).strip().splitlines()[0]}"
