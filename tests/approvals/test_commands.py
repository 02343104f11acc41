"""list_approvals, decide and add_person: JSON on standard output, refusals on standard error."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError

from approvals.decisions import decide
from approvals.models import Approval
from journal import runs
from tests.approvals.scene import Scene


@pytest.fixture
def command(scene: Scene, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls a command: its standard output and, if it was refused, the line that ends it with an error."""
    settings.SIGNOFF_COMMAND_DECISIONS = True

    def call(*args: str, text: str | bytes = "") -> tuple[str, str]:
        given = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
        out = io.StringIO()
        try:
            call_command(*args, stdout=out)
        except CommandError as error:
            return out.getvalue(), str(error)
        return out.getvalue(), ""

    return call


def lines(*decisions: Any) -> str:
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in decisions)


# ---------------------------------------------------------------- list_approvals


def test_approvals_are_listed_as_the_design_says(scene: Scene, command: Any) -> None:
    approval = scene.start(key="return-10482")
    scene.decide(approval, "mara")
    waiting = scene.start()
    out, _ = command("list_approvals", "--json")
    assert {one["id"] for one in json.loads(out)} == {approval.id, waiting.id}
    (listed,) = [one for one in json.loads(out) if one["id"] == approval.id]
    assert list(listed) == [
        "id",
        "run_id",
        "run_key",
        "status",
        "revision",
        "action",
        "policy",
        "deadline_at",
        "votes",
    ]
    assert listed["run_id"] == approval.run_id
    assert (listed["run_key"], listed["status"], listed["revision"]) == ("return-10482", "approved", 1)
    assert (listed["action"], listed["policy"]) == ("refund", "refunds")
    assert approval.deadline_at is not None
    assert listed["deadline_at"] == approval.deadline_at.isoformat()
    (vote,) = listed["votes"]
    assert (vote["by"], vote["verdict"], vote["revision"], vote["via"]) == ("mara", "approve", 1, "browser")


def test_approvals_are_listed_by_status_the_most_urgent_first(scene: Scene, command: Any) -> None:
    first, second, third = (scene.start() for _ in range(3))
    scene.decide(second, "mara", "reject")
    out, _ = command("list_approvals", "--status", "waiting", "--json")
    assert [one["id"] for one in json.loads(out)] == [first.id, third.id]
    out, _ = command("list_approvals", "--status", "rejected")
    assert out.startswith(second.id)


def test_a_list_costs_a_constant_number_of_queries(scene: Scene, command: Any, django_assert_num_queries: Any) -> None:
    for _ in range(5):
        scene.decide(scene.start(), "mara")
    with django_assert_num_queries(2):
        command("list_approvals", "--json")


# ---------------------------------------------------------------- decide


def test_one_decision(scene: Scene, command: Any) -> None:
    approval = scene.start()
    out, error = command("decide", approval.id.lower(), "approve", "--revision", "1", "--as", "mara", "--json")
    assert error == ""
    outcome = json.loads(out)
    assert (outcome["ok"], outcome["id"], outcome["status"], outcome["repeated"]) == (
        True,
        approval.id,
        "approved",
        False,
    )
    vote = approval.entries.get(kind="vote")
    assert vote.via == "command"
    assert vote.authenticated_by.startswith("asserted by OS user ")
    assert " on host " in vote.authenticated_by
    assert scene.result(approval) == "refunded 100.00"


def test_a_refused_decision_is_one_line_on_standard_error(scene: Scene, command: Any) -> None:
    """CASES C20: also by the command."""
    approval = scene.start()
    said = [
        (("approve", "--revision", "1", "--as", "clerk"), "not_permitted", "You started this run, so somebody else"),
        (("approve", "--revision", "1", "--as", "lead"), "not_permitted", "You own this workflow, so somebody else"),
        (("approve", "--revision", "1", "--as", "sam"), "not_permitted", "You are not in finance"),
        (("approve", "--revision", "7", "--as", "mara"), "superseded", "Revision 7 is not the current one"),
        (("reject", "--revision", "1", "--as", "mara"), "reason_required", "A rejection needs a reason."),
        (("approve", "--revision", "1", "--as", "nobody"), "unknown_person", "There is nobody called nobody."),
        (("maybe", "--revision", "1", "--as", "mara"), "unknown_choice", "'maybe' is not a choice"),
    ]
    for args, code, sentence in said:
        out, error = command("decide", approval.id, *args, "--json")
        assert error.startswith(f"{approval.id}: {sentence}")
        assert "\n" not in error
        outcome = json.loads(out)
        assert (outcome["ok"], outcome["error"], outcome["id"]) == (False, code, approval.id)
    out, error = command("decide", approval.id, "approve", "--revision", "1", "--as", "mara")
    assert (out, error) == (f"{approval.id}: Approved.\n", "")
    out, error = command("decide", approval.id, "approve", "--revision", "1", "--as", "tomas")
    assert error.startswith(f"{approval.id}: Already approved by mara at ")
    out, error = command("decide", approval.id, "approve", "--revision", "1", "--as", "mara")
    assert out.startswith(f"{approval.id}: You already approved this at ")
    assert error == ""
    out, error = command("decide", "0000-0000-0000", "approve", "--revision", "1", "--as", "mara")
    assert error == "0000-0000-0000: There is no request 0000-0000-0000."


def test_a_decision_needs_its_revision_and_its_person(scene: Scene, command: Any) -> None:
    approval = scene.start()
    assert command("decide", approval.id, "approve", "--as", "mara")[1] == "decide needs --revision"
    assert command("decide", approval.id)[1] == "decide needs VERDICT, --revision, --as"


def test_deciding_by_command_is_off_unless_it_is_turned_on(scene: Scene, command: Any, settings: Any) -> None:
    approval = scene.start()
    settings.SIGNOFF_COMMAND_DECISIONS = False
    for args in ((approval.id, "approve", "--revision", "1", "--as", "mara"), ("-",)):
        _, error = command(
            "decide", *args, text=lines({"id": approval.id, "revision": 1, "verdict": "approve", "as": "mara"})
        )
        assert error == "Deciding by command is off here; SIGNOFF_COMMAND_DECISIONS=1 turns it on."
    approval.refresh_from_db()
    assert approval.status == "waiting"


def test_many_decisions_are_each_answered(scene: Scene, command: Any) -> None:
    good, bad, own = scene.start(), scene.start(), scene.start()
    text = lines(
        {"id": good.id, "revision": 1, "verdict": "approve", "as": "mara"},
        "",
        {"id": bad.id, "revision": 1, "verdict": "reject", "as": "tomas", "reason": "no\nreceipt"},
        {"id": own.id, "revision": 1, "verdict": "approve", "as": "clerk", "reason": ""},
        {"id": good.id, "revision": 1, "verdict": "approve", "as": "mara"},
    )
    out, error = command("decide", "-", "--json", text=text)
    outcomes = json.loads(out)
    assert [(one["ok"], one["id"]) for one in outcomes] == [
        (True, good.id),
        (True, bad.id),
        (False, own.id),
        (True, good.id),
    ]
    assert [one.get("repeated") for one in outcomes] == [False, False, None, True]
    assert error.startswith(f"1 of 4 decisions were refused; the first: {own.id}: You started this run")
    assert scene.result(good) == "refunded 100.00"
    assert scene.result(bad) == "not refunded: no\nreceipt (tomas)"


def test_what_is_not_exactly_a_decision_is_not_taken_for_one(scene: Scene, command: Any) -> None:
    """A malformed decision is never a yes."""
    approval = scene.start()
    base = {"id": approval.id, "revision": 1, "verdict": "approve", "as": "mara"}
    wrong = [
        "approve",
        "[]",
        "null",
        '{"id": ',
        base | {"revision": True},
        base | {"revision": 1.0},
        base | {"revision": "1"},
        base | {"as": None},
        base | {"as": ["mara"]},
        base | {"reason": None},
        base | {"extra": 1},
        {name: value for name, value in base.items() if name != "revision"},
        json.dumps(base)[:-1] + ', "verdict": "approve"}',
        json.dumps(base)[:-1] + ', "as": "tomas"}',
    ]
    out, error = command("decide", "-", "--json", text=lines(*wrong))
    outcomes = json.loads(out)
    assert [(one["ok"], one["error"]) for one in outcomes] == [(False, "not_a_decision")] * len(wrong)
    assert error.startswith(f"{len(wrong)} of {len(wrong)} decisions were refused; the first: line 1: not JSON")
    approval.refresh_from_db()
    assert (approval.status, approval.count) == ("waiting", 1)
    assert command("decide", "-", "--json", text="")[0] == "[]\n"


@pytest.mark.parametrize(
    "bad",
    [
        b'{"id": "0000-0000-00\\u0000", "revision": 1, "verdict": "approve", "as": "mara"}',
        b'{"id": "0000-0000-00\\ud800", "revision": 1, "verdict": "approve", "as": "mara"}',
        b'{"id": "ID", "revision": 1, "verdict": "approve", "as": "ma\\u0000ra"}',
        b'{"id": "ID", "revision": 1, "verdict": "approve", "as": "ma\\udc80ra"}',
        b'{"id": "ID", "revision": 1, "verdict": "app\\ud800rove", "as": "mara"}',
        b'{"id": "ID", "revision": ' + b"9" * 5000 + b', "verdict": "approve", "as": "mara"}',
        b"[" * 100_000,
        b'{"id": ' + b"[" * 100_000,
        b'{"id": "ID", "revision": 1, "verdict": "approve", "as": "mar\xff"}',
        b"\xff\xfe",
        b"\x00",
    ],
    ids=lambda bad: bad[:60].decode("ascii", "replace"),
)
@pytest.mark.parametrize("as_json", [True, False])
def test_a_line_that_cannot_be_read_hides_no_other_ones_outcome(
    scene: Scene, command: Any, bad: bytes, as_json: bool
) -> None:
    """What was committed is always reported, and what comes after is decided all the same."""
    first, odd, last = scene.start(), scene.start(), scene.start()
    good = [
        json.dumps({"id": one.id, "revision": 1, "verdict": "approve", "as": "mara"}).encode() for one in (first, last)
    ]
    text = b"\n".join([good[0], bad.replace(b"ID", odd.id.encode()), good[1]])
    out, error = command("decide", "-", *(["--json"] if as_json else []), text=text)
    if as_json:
        assert [one["ok"] for one in json.loads(out)] == [True, False, True]
    else:
        assert out.startswith(f"{first.id}: Approved.\n")
        assert out.endswith(f"{last.id}: Approved.\n")
        assert out.encode()
    assert error.startswith("1 of 3 decisions were refused; the first: ")
    assert error.encode()
    assert {one.status for one in Approval.objects.exclude(pk=odd.id)} == {"approved"}
    assert Approval.objects.get(pk=odd.id).status == "waiting"


def test_what_breaks_down_halfway_reports_what_was_decided(
    scene: Scene, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = scene.start(), scene.start(), scene.start()
    really = decide

    def breaks(approval_id: str, **said: Any) -> Any:
        if approval_id == second.id:
            raise OperationalError("the server closed the connection")
        return really(approval_id, **said)

    monkeypatch.setattr("approvals.management.commands.decide.decide", breaks)
    text = lines(*({"id": one.id, "revision": 1, "verdict": "approve", "as": "mara"} for one in (first, second, third)))
    out, error = command("decide", "-", "--json", text=text)
    assert [(one["ok"], one.get("error")) for one in json.loads(out)] == [
        (True, None),
        (False, "broken_off"),
        (True, None),
    ]
    assert error.startswith("1 of 3 decisions were refused; the first: ")


def test_one_decision_with_odd_arguments_is_refused_in_one_line(scene: Scene, command: Any) -> None:
    approval = scene.start()
    for approval_id, name in ((approval.id, "ma\0ra"), (approval.id, "ma\udcffra"), ("\udcff", "mara"), ("\0", "mara")):
        _, error = command("decide", approval_id, "approve", "--revision", "1", "--as", name)
        assert "cannot be stored" in error
        assert error.encode()


def test_hundreds_are_decided_quickly(scene: Scene, command: Any) -> None:
    for number in range(100):
        runs.start(scene.handle, str(number), 100, False, actor=scene.user("clerk"))
    scene.work()
    waiting = Approval.objects.filter(status="waiting").values_list("id", flat=True)
    text = lines(*({"id": one, "revision": 1, "verdict": "approve", "as": "mara"} for one in waiting))
    began = time.perf_counter()
    out, error = command("decide", "-", "--json", text=text)
    took = time.perf_counter() - began
    assert (len(json.loads(out)), error) == (100, "")
    assert took < 10, f"{took:.2f} s for 100 decisions"


# ---------------------------------------------------------------- add_person


def test_a_person_is_added_with_groups_role_and_password(scene: Scene, command: Any, client: Any) -> None:
    text = "a long enough secret\n"
    args = ("--groups", "finance, audit", "--role", "operator", "--password-stdin", "--json")
    out, error = command("add_person", "ines", *args, text=text)
    assert error == ""
    assert json.loads(out) == {"name": "ines", "groups": ["finance", "audit"], "role": "operator", "can_sign_in": True}
    ines = scene.user("ines")
    assert ines.check_password("a long enough secret")
    assert sorted(ines.groups.values_list("name", flat=True)) == ["audit", "finance", "role:operator"]
    assert ines.has_perms(["approvals.decide_approval", "approvals.view_approval", "journal.view_run"])


def test_without_a_password_nobody_signs_in(scene: Scene, command: Any) -> None:
    out, _ = command("add_person", "ines")
    assert out == "ines added: reviewer, groups: none\n"
    assert not scene.user("ines").has_usable_password()
    assert not scene.user("ines").check_password("")


@pytest.mark.parametrize(
    ("args", "text", "line"),
    [
        (("mara",), "", "there is already a person called mara"),
        (("",), "", "This field cannot be blank."),
        (("a b",), "", "Enter a valid username."),
        (("ines", "--groups", "role:admin"), "", "role:admin is a role, not a group of people; use --role"),
        (("ines", "--password-stdin"), "short\n", "This password is too short."),
        (("ines", "--password-stdin"), "\n", "This password is too short."),
        (("ines", "--role", "king"), "", "Error: argument --role: invalid choice: 'king'"),
    ],
)
def test_a_person_that_cannot_be_added_is_refused_in_one_line(
    scene: Scene, command: Any, args: tuple[str, ...], text: str, line: str
) -> None:
    before = scene.user("mara").password
    _, error = command("add_person", *args, text=text)
    assert error.startswith(line)
    assert "\n" not in error
    assert scene.user("mara").password == before
