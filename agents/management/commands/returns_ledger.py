"""`manage.py returns_ledger [--json]`: the refunds of the returns example, with how often each was called for."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from agents.examples.ledger import entries


class Command(BaseCommand):
    help = "Print the refunds of the returns example: key, invoice, amount, and how often the ledger was called."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON array and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        found = entries()
        if options["json"]:
            self.stdout.write(json.dumps(found))
            return
        for entry in found:
            self.stdout.write(f"{entry['invoice']:<12} {entry['amount']:>12} {entry['calls']:>3}x  {entry['key']}")
        self.stdout.write(f"{len(found)} refund{'' if len(found) == 1 else 's'}")
