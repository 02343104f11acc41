"""Installs pgmq's tables and functions, which carry the doorbells over our own PostgreSQL."""

from __future__ import annotations

from importlib.resources import files

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def install(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Runs the package's SQL unless the schema is there, as an extension or from before."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT to_regprocedure('pgmq.create(text)')")
        row = cursor.fetchone()
        if row and row[0]:
            return
        # A plain psycopg call without parameters takes many statements at once.
        cursor.cursor.connection.execute(files("pgmq.sql").joinpath("pgmq.sql").read_text("utf-8"))


class Migration(migrations.Migration):
    """Kept when migrating back: queues may belong to somebody else by then."""

    dependencies = []
    operations = [migrations.RunPython(install, migrations.RunPython.noop)]
