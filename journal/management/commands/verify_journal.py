"""Verify that the journal says what was written."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from journal.commands import JsonCommand
from journal.errors import UnknownRun
from journal.ids import parse_id
from journal.verifying import verify


class Command(JsonCommand):
    help = (
        "Checks every event, payload and approval against its keyed digest, and each run against its history. "
        "Exit 1 if anything does not fit. Needs the SIGNOFF_CHAIN_KEY that they were written with."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("id", nargs="?", help="one run's id (default: all runs)")

    def handle(self, **options: Any) -> None:
        run_id = parse_id(options["id"]) if options["id"] else None
        checked, broken = 0, []
        try:
            for found_id, findings in verify(run_id):
                checked += 1
                if findings:
                    broken.append({"run": found_id, "findings": findings})
        except UnknownRun as error:
            raise CommandError(str(error)) from None
        lines = [f"{row['run']}: {finding}" for row in broken for finding in row["findings"]]
        lines.append(f"{checked} runs checked, {len(broken)} do not fit")
        self.answer({"checked": checked, "broken": broken}, "\n".join(lines))
        if broken:
            raise SystemExit(1)
