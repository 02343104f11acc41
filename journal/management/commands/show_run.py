"""Show a run with its history."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from journal import runs
from journal.commands import JsonCommand, terminal
from journal.describing import describe_run
from journal.errors import UnknownRun
from journal.ids import parse_id


class Command(JsonCommand):
    help = "Shows a run: its status, what it waits for, its result or error, and its events."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("id", help="the run's id; case and dashes do not matter")

    def handle(self, **options: Any) -> None:
        try:
            run = runs.row_of(parse_id(options["id"]))
        except UnknownRun as error:
            raise CommandError(str(error)) from None
        shown = describe_run(run)
        self.answer(shown, "\n".join(_lines(shown)))


def _lines(shown: dict[str, Any]) -> list[str]:
    lines = [f"{shown['workflow']} version {shown['version']}, run {shown['id']}: {shown['status']}"]
    if shown["key"]:
        lines.append(f"key: {shown['key']}")
    for wait in shown["waiting_for"]:
        until = f", until {wait['until']}" if wait["until"] else ""
        lines.append(f"waits for {wait['kind']}: {wait['detail']} (since {wait['since']}{until})")
    if shown["error"]:
        lines.append(f"error: {shown['error']['type']}: {shown['error']['message']}")
    if shown["status"] == "completed":
        lines.append(f"result: {json.dumps(shown['result'])}")
    lines += [
        f"{event['seq']:>5}  {event['at'][:23]}  {event['path'] or '':<6} {event['kind']:<18} {event['name']}"
        for event in shown["events"]
    ]
    return [terminal(line) for line in lines]
