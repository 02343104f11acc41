"""Model clients: who answers a question put to a language model.

Today there is one, scripted: it asks no model and gives answers written in this repository, for demo and tests.
Every answer carries the name of the client that gave it, and everything that shows an answer shows that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from django.conf import settings

from agents.errors import NoScript, UnknownClient

SCRIPTED = "scripted client, no model was asked"


@dataclass(frozen=True)
class Question:
    """What a model is asked: which task it is, how to go about it, and the material, as plain values."""

    task: str
    instructions: str
    material: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """What came back, and from whom. The text is advice: nothing acts on it."""

    text: str
    written_by: str


class ModelClient(Protocol):
    """One way to get an answer."""

    def answer(self, question: Question) -> Answer:
        """The answer; raises an AgentsError if there is none."""


Script = Callable[[Mapping[str, Any]], str]
ScriptT = TypeVar("ScriptT", bound=Script)

_scripts: dict[str, Script] = {}


def script(task: str) -> Callable[[ScriptT], ScriptT]:
    """Register what the scripted client answers to a task: a function of the question's material."""

    def register(function: ScriptT) -> ScriptT:
        if _scripts.setdefault(task, function) is not function:
            raise ValueError(f"two scripts for the task {task!r}")
        return function

    return register


class ScriptedClient:
    """Answers by the registered scripts: the same material, the same answer. No model is asked."""

    def answer(self, question: Question) -> Answer:
        """The script's answer. Raises NoScript for a task that has none."""
        found = _scripts.get(question.task)
        if found is None:
            raise NoScript(f"the scripted client has no answer for the task {question.task!r}")
        return Answer(found(question.material), SCRIPTED)


CLIENTS: dict[str, Callable[[], ModelClient]] = {"scripted": ScriptedClient}
"""The clients that the setting SIGNOFF_MODEL_CLIENT can name."""


def model_client() -> ModelClient:
    """The client that the setting names. Raises UnknownClient."""
    name: str = settings.SIGNOFF_MODEL_CLIENT
    if name not in CLIENTS:
        raise UnknownClient(problem_with(name))
    return CLIENTS[name]()


def problem_with(name: str) -> str | None:
    """Why the setting cannot be this, or None if it can."""
    if name in CLIENTS:
        return None
    known = ", ".join(sorted(CLIENTS))
    return f"SIGNOFF_MODEL_CLIENT is {name!r}; this release has only: {known}"
