"""Model clients: the scripted one says what it is, and no other can be chosen yet."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from agents import clients
from agents.clients import SCRIPTED, Question, ScriptedClient, model_client, script
from agents.errors import NoScript, UnknownClient
from agents.examples.proposal import TASK


def test_the_scripted_client_is_the_default_and_says_that_no_model_was_asked() -> None:
    material = {"invoice": "C1", "amount": "4.20", "matched": True, "misfits": []}
    answer = model_client().answer(Question(TASK, "", material))
    assert answer.written_by == SCRIPTED == "scripted client, no model was asked"
    assert answer == model_client().answer(Question(TASK, "", material))


def test_a_task_without_a_script_is_refused() -> None:
    with pytest.raises(NoScript, match="no answer for the task 'sing'"):
        ScriptedClient().answer(Question("sing", "", {}))


def test_two_scripts_for_one_task_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_scripts", {})
    script("sing")(lambda material: "la")
    with pytest.raises(ValueError, match="two scripts for the task 'sing'"):
        script("sing")(lambda material: "do")


@override_settings(SIGNOFF_MODEL_CLIENT="anthropic")
def test_a_client_that_is_not_there_yet_is_an_error_at_start() -> None:
    (error,) = [found for found in run_checks() if found.id == "agents.E001"]
    assert error.msg == "SIGNOFF_MODEL_CLIENT is 'anthropic'; this release has only: scripted"
    with pytest.raises(UnknownClient, match="this release has only: scripted"):
        model_client()


def test_the_default_client_is_no_error() -> None:
    assert not [found for found in run_checks() if found.id == "agents.E001"]
