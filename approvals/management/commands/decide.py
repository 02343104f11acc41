"""manage.py decide: decisions from the command line, one or a stream of them."""

from __future__ import annotations

import getpass
import json
import logging
import os
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from approvals.decisions import Outcome, decide
from approvals.errors import BrokenOff, CommandsOff, NotADecision, Refusal, UnknownApproval
from approvals.models import Revision
from approvals.people import person_named
from approvals.states import Via
from journal.commands import JsonCommand, terminal
from journal.ids import parse_id
from journal.plaintext import checked, cleaned

log = logging.getLogger("approvals.decide")

FIELDS = {"id": str, "revision": int, "verdict": str, "as": str, "reason": str}


class Command(JsonCommand):
    help = "Decide a request: `decide ID approve|reject --revision N --as USER [--reason TEXT]`, or `decide -`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "id", help='the request, or "-" for JSON lines {"id", "revision", "verdict", "as", "reason"}'
        )
        parser.add_argument("verdict", nargs="?", help="approve or reject")
        parser.add_argument("--revision", type=int, help="the one that you have seen")
        parser.add_argument("--as", dest="person", metavar="USER", help="who decides")
        parser.add_argument("--reason", default="", help="a rejection needs one")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.SIGNOFF_COMMAND_DECISIONS:
            raise CommandError(str(CommandsOff()))
        if options["id"] == "-":
            self._decide_many(sys.stdin.buffer)
        else:
            self._decide_one(options)

    def _decide_one(self, options: dict[str, Any]) -> None:
        missing = [name for name, key in _NEEDED.items() if options[key] is None]
        if missing:
            raise CommandError(f"decide needs {', '.join(missing)}")
        line = {
            "id": options["id"],
            "revision": options["revision"],
            "verdict": options["verdict"],
            "as": options["person"],
            "reason": options["reason"],
        }
        outcome = _settle(line, {})
        if outcome["ok"] or options["json"]:
            self.answer(outcome, _line(outcome))
        if not outcome["ok"]:
            raise CommandError(_line(outcome))

    def _decide_many(self, lines: Iterable[bytes]) -> None:
        outcomes: list[dict[str, Any]] = []
        try:
            outcomes.extend(_outcomes(lines))
        finally:  # even interrupted: what was decided is decided, and has to be said
            self.answer(outcomes, "\n".join(map(_line, outcomes)))
        refused = [outcome for outcome in outcomes if not outcome["ok"]]
        if refused:
            count = f"{len(refused)} of {len(outcomes)} decisions were refused"
            raise CommandError(f"{count}; the first: {_line(refused[0])}")


def _line(outcome: dict[str, Any]) -> str:
    return terminal(cleaned(f"{outcome['id']}: {outcome['message']}"))


_NEEDED = {"VERDICT": "verdict", "--revision": "revision", "--as": "person"}


def _outcomes(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """One for each line, whatever is in it and whatever happens: a caller has to know what became of the others."""
    known: dict[str, Any] = {}
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = _read(text)
        except NotADecision as error:
            yield _refused({"id": f"line {number}"}, error)
            continue
        try:
            yield _settle(line, known)
        except Exception as error:
            log.exception("line %s broke off", number, extra={"action": "decide_failed"})
            yield _refused(line, BrokenOff(error))


def _read(text: bytes) -> dict[str, Any]:
    """One line of input. What is not exactly a decision is not taken for one."""
    try:
        line = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except RecursionError:
        raise NotADecision("not a decision: nested too deeply") from None
    except UnicodeError:
        raise NotADecision("not UTF-8") from None
    except ValueError as error:
        raise NotADecision(f"not JSON: {error}") from None
    if not isinstance(line, dict):
        raise NotADecision("not a JSON object")
    line.setdefault("reason", "")
    if line.keys() != FIELDS.keys():
        odd = ", ".join(sorted(line.keys() ^ FIELDS.keys()))
        raise NotADecision(f"missing or not known: {odd}")
    for name, kind in FIELDS.items():
        if type(line[name]) is not kind:
            raise NotADecision(f"{name} must be {'a whole number' if kind is int else 'text'}")
    return line


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _settle(line: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Decides, and says what came of it. `known` keeps who was looked up: decide() asks for their rights itself."""
    approval_id = parse_id(line["id"])
    try:
        _check_texts(line)
        if line["as"] not in known:
            known[line["as"]] = person_named(line["as"])
        outcome = decide(
            approval_id,
            revision=line["revision"],
            digest=_digest_of(approval_id, line["revision"]),
            actor=known[line["as"]],
            verdict=line["verdict"],
            reason=line["reason"],
            via=Via.COMMAND,
            authenticated_by=_asserted_by(),
        )
    except Refusal as refusal:
        return _refused(line | {"id": approval_id}, refusal)
    return _described(outcome, line)


def _check_texts(line: dict[str, Any]) -> None:
    """A reason is cleaned of what the database cannot hold; a name or an id would become somebody else's."""
    try:
        for name in ("id", "as", "verdict"):
            checked(line[name], name)
    except ValueError as error:
        raise NotADecision(str(error)) from None


def _digest_of(approval_id: str, number: int) -> str:
    """The digest of the revision that the caller names. One that does not exist has none, and is refused as such."""
    digests = dict(Revision.objects.filter(approval_id=approval_id).values_list("number", "digest"))
    if not digests:
        raise UnknownApproval(approval_id)
    return bytes(digests[number]).hex() if number in digests else ""


def _asserted_by() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in passwd
        name = str(os.getuid())
    return f"asserted by OS user {name} on host {socket.gethostname()}"


def _described(outcome: Outcome, line: dict[str, Any]) -> dict[str, Any]:
    return {
        "ok": True,
        "id": outcome.approval_id,
        "revision": outcome.revision,
        "verdict": outcome.choice,
        "as": line["as"],
        "status": outcome.status,
        "repeated": outcome.is_repeated,
        "message": str(outcome),
    }


def _refused(line: dict[str, Any], refusal: Refusal) -> dict[str, Any]:
    said = {name: line.get(name) for name in ("id", "revision", "verdict", "as")}
    return {"ok": False, **said, "error": refusal.code, "message": str(refusal)}
