"""What the management commands share: --json, and one clear line for a refusal."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from journal.characters import is_hidden


class JsonCommand(BaseCommand):
    """Prints for people, or with --json one JSON value on standard output and nothing else."""

    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON value and nothing else")

    def execute(self, *args: Any, **options: Any) -> str | None:
        self._as_json = options.get("json", False)
        return super().execute(*args, **options)

    def answer(self, value: Any, text: str) -> None:
        self.stdout.write(json.dumps(value) if self._as_json else text)


def read_json(text: str, option: str) -> Any:
    """The JSON value of an option; @FILE reads it from a file. Raises CommandError."""
    try:
        source = Path(text[1:]).read_text() if text.startswith("@") else text
        return json.loads(source)
    except OSError as error:
        raise CommandError(f"{option}: {error}") from None
    except ValueError as error:
        raise CommandError(f"{option} is not JSON: {error}") from None


def terminal(text: str) -> str:
    """One line that a terminal shows as it is: control and hidden characters as escapes, never obeyed."""
    return "".join(f"\\u{ord(letter):04x}" if letter < " " or is_hidden(letter) else letter for letter in text)
