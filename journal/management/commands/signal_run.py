"""Send a run a signal."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from journal import runs
from journal.commands import JsonCommand, read_json
from journal.describing import waiting_for
from journal.errors import JournalError
from journal.ids import parse_id


class Command(JsonCommand):
    help = (
        "Sends a run a named signal. It is kept until a wait of that name takes it. It decides no approval: see decide."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("id", help="the run's id")
        parser.add_argument("name", help="the signal's name")
        parser.add_argument(
            "--payload", default="null", metavar="JSON|@FILE", help="what the wait returns (default: null)"
        )
        parser.add_argument("--key", help="sent again with the same key, it is the same signal")

    def handle(self, **options: Any) -> None:
        run_id = parse_id(options["id"])
        payload = read_json(options["payload"], "--payload")
        try:
            waits = waiting_for(runs.row_of(run_id))
            runs.signal(run_id, options["name"], payload, key=options["key"], actor="command")
        except (JournalError, ValueError) as error:
            raise CommandError(str(error)) from None
        wanted = any(wait["kind"] == "signal" and wait["detail"] == options["name"] for wait in waits)
        self.answer(
            {"run": run_id, "signal": options["name"], "awaited": wanted},
            _sentence(run_id, options["name"], waits, wanted),
        )


def _sentence(run_id: str, name: str, waits: list[dict[str, Any]], wanted: bool) -> str:
    if wanted:
        return f"run {run_id} waited for {name!r}; it goes on"
    said = f"{name!r} is kept for run {run_id}, which does not wait for it now"
    if any(wait["kind"] == "approval" for wait in waits):
        said += "; it waits for an approval, which only a decision wakes (manage.py decide)"
    return said
