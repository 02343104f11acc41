"""manage.py add_person: an account with its groups and role."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from approvals.errors import BadPerson, PersonExists
from approvals.people import add_person
from approvals.roles import ROLES


class Command(BaseCommand):
    help = "Add a person. Without --password-stdin the account cannot sign in; it can still be named by --as."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--groups", default="", help="comma-separated; those that are missing are made")
        parser.add_argument("--role", choices=list(ROLES), default="reviewer")
        parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        password = sys.stdin.readline().rstrip("\r\n") if options["password_stdin"] else None
        groups = list(dict.fromkeys(name.strip() for name in options["groups"].split(",") if name.strip()))
        try:
            user = add_person(options["name"], groups=groups, role=options["role"], password=password)
        except (PersonExists, BadPerson) as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            said = {
                "name": user.get_username(),
                "groups": groups,
                "role": options["role"],
                "can_sign_in": password is not None,
            }
            self.stdout.write(json.dumps(said))
        else:
            self.stdout.write(f"{user.get_username()} added: {options['role']}, groups: {', '.join(groups) or 'none'}")
