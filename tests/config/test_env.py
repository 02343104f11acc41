"""Settings from the environment fail loudly, with one line that names the variable."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THING", raising=False)
    monkeypatch.delenv("THING_FILE", raising=False)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("Yes", True), ("off", False), ("", True), (" 0 ", False)])
def test_a_flag_is_yes_or_no(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:
    monkeypatch.setenv("THING", text)
    assert env.flag("THING", default=True) is value


def test_a_flag_that_is_neither_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING", "maybe")
    with pytest.raises(ImproperlyConfigured, match="THING is 'maybe'"):
        env.flag("THING", default=True)


@pytest.mark.parametrize("text", ["-1", "1.5", "many", "²"])
def test_a_count_is_a_whole_number_from_0_up(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("THING", text)
    with pytest.raises(ImproperlyConfigured, match="whole number"):
        env.count("THING", 3)


def test_a_count_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.count("THING", 3) == 3
    monkeypatch.setenv("THING", "12")
    assert env.count("THING", 3) == 12


def test_names_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING", " a.b , c,, ")
    assert env.names("THING") == ["a.b", "c"]


def test_a_choice_outside_its_words_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING", "prod")
    with pytest.raises(ImproperlyConfigured, match="one of: production, test"):
        env.choice("THING", "test", ("production", "test"))


def test_a_secret_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hush\n", encoding="utf-8")
    monkeypatch.setenv("THING_FILE", str(file))
    assert env.secret("THING") == "hush"
    monkeypatch.setenv("THING", "other")
    with pytest.raises(ImproperlyConfigured, match="both THING and THING_FILE"):
        env.secret("THING")


def test_a_secret_file_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THING_FILE", str(tmp_path / "none"))
    with pytest.raises(ImproperlyConfigured, match=r"cannot read .+none: No such file"):
        env.secret("THING")
    (tmp_path / "none").write_text(" \n", encoding="utf-8")
    with pytest.raises(ImproperlyConfigured, match="is empty"):
        env.secret("THING")
