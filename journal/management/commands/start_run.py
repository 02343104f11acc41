"""Start a run of a workflow."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from journal import registry, runs
from journal.commands import JsonCommand, read_json, terminal
from journal.describing import describe_run
from journal.errors import JournalError
from journal.models import Run
from journal.plaintext import storable
from journal.workflows import RESERVED


class Command(JsonCommand):
    help = "Starts a run of a workflow, or finds the one that the key already started with the same input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", help="the workflow's name")
        parser.add_argument(
            "--input",
            default="{}",
            metavar="JSON|@FILE",
            help="the input: an object is keyword arguments, an array positional ones; @FILE reads it from a file",
        )
        parser.add_argument("--key", help="the run's key: started again with it and the same input, it is the same run")
        parser.add_argument("--as", dest="user", metavar="USER", help="the starter's user name")
        parser.add_argument(
            "--wait", action="store_true", help="wait until the run has ended; exit 1 if it did not complete"
        )

    def handle(self, **options: Any) -> None:
        given = read_json(options["input"], "--input")
        if not isinstance(given, dict | list):
            raise CommandError("--input is a JSON object (keyword arguments) or array (positional ones)")
        args, kwargs = (given, {}) if isinstance(given, list) else ([], given)
        foreign = set(kwargs) & set(RESERVED)
        if foreign:
            raise CommandError(f"--input names what is no workflow's parameter: {', '.join(sorted(foreign))}")
        try:
            registry.load_authors_modules()
            workflow = registry.workflow_named(options["name"])
            reserved = {"key": options["key"], "actor": _user(options["user"])}
            run = runs.start(workflow, *args, **kwargs, **reserved)
        except (JournalError, TypeError, ValueError) as error:
            raise CommandError(str(error)) from None
        if options["wait"]:
            self.stderr.write(f"waiting for run {run.id}")  # whoever is interrupted knows where to look
            _wait(run.id)
        row = Run.objects.get(pk=run.id)
        described = describe_run(row)
        self.answer(described, _text(described, f"run {row.pk} of {row.code} is {row.status}"))
        if options["wait"] and row.status != "completed":
            raise SystemExit(1)


def _text(run: dict[str, Any], line: str) -> str:
    """The line, and how the run ended if it has."""
    if run["status"] == "completed":
        return f"{line}\n{terminal(json.dumps(run['result'], ensure_ascii=False))}"
    if run["error"]:
        return f"{line}\n{terminal('{type}: {message}'.format_map(run['error']))}"
    return line


def _user(name: str | None) -> Any:
    if name is None:
        return None
    users = get_user_model()._default_manager
    found = users.filter(username=name, is_active=True).first() if storable(name) else None
    if found is None:
        raise CommandError(f"there is no active user {name!r}; add_person adds one")
    return found


def _wait(run_id: str) -> None:
    try:
        runs.result(run_id)
    except Exception:  # noqa: BLE001 - the run's own error, shown with the run
        return
