"""Policy files: what they may say, and one clear error for what they may not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from approvals import policies
from approvals.errors import PolicyError
from approvals.policies import Policy
from config.home import BASE_DIR

GOOD = """
[policy.refunds]
seats = [{group = "finance", need = 1}]
four_eyes = ["starter", "owner"]
deadline = "48h"
at_end = "reject"

[[policy.refunds.rule]]
when = "matched and amount <= 25.00"
"""


def written(folder: Path, text: str, name: str = "refunds.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_policy_of_the_design(tmp_path: Path) -> None:
    policy = policies.load(written(tmp_path, GOOD))["refunds"]
    assert policy.seat.group == "finance"
    assert policy.four_eyes == ("starter", "owner")
    assert policy.deadline == timedelta(hours=48)
    assert policy.valid_for == timedelta(hours=72)
    assert (policy.at_end, policy.risk, policy.reason_required) == ("reject", "medium", False)
    assert [line.when for line in policy.rule] == ["matched and amount <= 25.00"]
    assert Policy.read(policy.spec()) == policy


def test_a_folder_is_read_whole_and_a_name_stands_once(tmp_path: Path) -> None:
    written(tmp_path, GOOD)
    other = written(tmp_path, GOOD.replace("refunds", "mails"), "mails.toml")
    assert sorted(policies.load(tmp_path)) == ["mails", "refunds"]
    other.write_text(GOOD)
    policies.load.cache_clear()
    with pytest.raises(PolicyError, match=r"refunds.toml: policy.refunds: .*mails.toml has a policy of that name too"):
        policies.load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "key", "problem"),
    [
        ('seats = [{group = "finance", need = 1}]', "", ".seats", "is missing"),
        ("need = 1}", "need = 2}", ".seats[0].need", "more than one vote is not supported yet"),
        ("need = 1}", "need = true}", ".seats[0].need", "Input should be a valid integer"),
        ("need = 1}", "need = 0}", ".seats[0].need", "Input should be greater than or equal to 1"),
        (
            'group = "finance"',
            'group = "role:admin"',
            ".seats[0].group",
            "'role:admin' is a role, not a group of people",
        ),
        ("{group", '{group = "a"}, {group', ".seats", "more than one seat is not supported yet"),
        ('seats = [{group = "finance", need = 1}]', "seats = []", ".seats", "Tuple should have at least 1 item"),
        ('"starter", "owner"', '"starter", "proposer"', ".four_eyes", "four eyes against 'proposer' is not supported"),
        ('"reject"', '"approve"', ".at_end", "a deadline never approves"),
        ('"reject"', '"escalate"', ".at_end", "'escalate' is not supported yet; there is: reject"),
        ('"48h"', '"two days"', ".deadline", "a duration is a number and s, m, h or d"),
        ('"48h"', '"0h"', ".deadline", "a duration is longer than nothing"),
        ('"48h"', "48", ".deadline", "a duration is a number and s, m, h or d"),
        ('at_end = "reject"', 'at_ned = "reject"', ".at_ned", "is not known"),
        ('at_end = "reject"', 'reminders = ["1h"]', ".reminders", "is not known"),
        ('at_end = "reject"', 'risk = "huge"', ".risk", "Input should be 'low', 'medium', 'high' or 'critical'"),
        ("amount <= 25.00", "amount.real <= 25", ".rule[0].when", "amount.real is not allowed"),
        ("when =", "if =", ".rule[0].when", "is missing"),
        ("[policy.refunds]", "[policies.refunds]", "policies", "is not known; a policy begins with [policy.NAME]"),
    ],
)
def test_one_clear_error_names_file_and_key(tmp_path: Path, old: str, new: str, key: str, problem: str) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(PolicyError) as caught:
        policies.load(path)
    error = caught.value
    key = f"policy.refunds{key}" if key.startswith(".") else key
    assert (error.source, error.key) == (str(path), key)
    assert error.problem.startswith(problem)
    assert str(error).startswith(f"{path}: {key}: {problem}")


@pytest.mark.parametrize("text", ["[policy", "a = 1\na = 2", "\xff"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(PolicyError, match=r"broken.toml"):
        policies.load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"gone.toml: cannot be read: No such file"):
        policies.load(tmp_path / "gone.toml")


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(PolicyError, match=r"policy.nothing: there is no such policy"):
        policies.find("nothing")


def test_a_bad_file_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SIGNOFF_POLICIES", written(tmp_path, GOOD.replace("48h", "48 hours")))
    with pytest.raises(SystemCheckError, match=r"approvals.E001.*refunds.toml: policy.refunds.deadline"):
        call_command("check")


def test_who_decides_is_what_the_digest_covers(tmp_path: Path) -> None:
    def authority(text: str, name: str) -> str:
        return policies.load(written(tmp_path, text, name))["refunds"].authority()

    base = authority(GOOD, "a.toml")
    assert authority(GOOD.replace("48h", "24h").replace("25.00", "30.00"), "b.toml") == base
    assert authority(GOOD.replace('"finance"', '"everybody"'), "c.toml") != base
    assert authority(GOOD.replace('"starter", "owner"', '"starter"'), "d.toml") != base


def test_the_page_of_the_docs_lists_every_key() -> None:
    page = (BASE_DIR / "docs/policies.md").read_text(encoding="utf-8")
    listed = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert listed == set(Policy.model_fields)
