"""manage.py add_person: an account with its groups and role."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from approvals.errors import BadPerson, PersonExists
from approvals.people import add_person
from approvals.roles import ROLES
from journal.commands import JsonCommand


class Command(JsonCommand):
    help = "Add a person. Without --password-stdin the account cannot sign in; it can still be named by --as."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name")
        parser.add_argument("--groups", default="", help="comma-separated; those that are missing are made")
        parser.add_argument("--role", choices=list(ROLES), default="reviewer")
        parser.add_argument("--password-stdin", action="store_true", help="read the password from standard input")

    def handle(self, *args: Any, **options: Any) -> None:
        password = sys.stdin.readline().rstrip("\r\n") if options["password_stdin"] else None
        groups = list(dict.fromkeys(name.strip() for name in options["groups"].split(",") if name.strip()))
        try:
            user = add_person(options["name"], groups=groups, role=options["role"], password=password)
        except (PersonExists, BadPerson) as error:
            raise CommandError(str(error)) from None
        role = options["role"]
        said = {
            "name": user.get_username(),
            "groups": groups,
            "role": role,
            "can_sign_in": password is not None,
        }
        self.answer(said, f"{user.get_username()} added: {role}, groups: {', '.join(groups) or 'none'}")
