"""The workflows and steps that the authors' modules define, by name."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from journal.codec import Types
from journal.errors import AlreadyRegistered, UnknownWorkflow

if TYPE_CHECKING:
    from journal.steps import Step
    from journal.workflows import Workflow

_steps: dict[str, Step[..., Any]] = {}
_workflows: dict[str, dict[int, Workflow[..., Any]]] = {}


def add_step(step: Step[..., Any]) -> None:
    """Raises AlreadyRegistered if another function has this name: a journal could not tell them apart."""
    known = _steps.get(step.name)
    if known is not None and not _same_function(known.fn, step.fn):
        raise AlreadyRegistered(_conflict("step", step.name, known.fn, step.fn))
    _steps[step.name] = step


def add_workflow(workflow: Workflow[..., Any]) -> None:
    """Raises AlreadyRegistered if another function has this name and version."""
    versions = _workflows.setdefault(workflow.name, {})
    known = versions.get(workflow.version)
    if known is not None and not _same_function(known.fn, workflow.fn):
        raise AlreadyRegistered(
            _conflict("workflow", f"{workflow.name} version {workflow.version}", known.fn, workflow.fn)
        )
    versions[workflow.version] = workflow


def workflow_named(name: str, version: int | None = None) -> Workflow[..., Any]:
    """The workflow of that version, or of the highest. Raises UnknownWorkflow."""
    versions = _workflows.get(name)
    if not versions:
        known = ", ".join(sorted(_workflows)) or "none"
        raise UnknownWorkflow(f"no workflow {name!r} is loaded (loaded: {known}); SIGNOFF_WORKFLOWS names the modules")
    if version is None:
        version = max(versions)
    if version not in versions:
        raise UnknownWorkflow(f"version {version} of workflow {name!r} is not loaded")
    return versions[version]


def result_types(name: str, version: int) -> Types:
    """The classes that a workflow's result is made of, as far as it is loaded here."""
    loaded = _workflows.get(name, {}).get(version)
    return loaded.result_types if loaded else {}


def capabilities() -> list[str]:
    """What this process can run, as "workflow@version"."""
    return sorted(workflow.code for versions in _workflows.values() for workflow in versions.values())


@cache
def load_authors_modules() -> None:
    """Imports the modules that SIGNOFF_WORKFLOWS names."""
    for name in settings.SIGNOFF_WORKFLOWS:
        importlib.import_module(name)


@cache
def fingerprint() -> str:
    """Of the authors' code in this process: a short digest over the sources of the packages it comes from.

    Coarse on purpose: what a workflow does may change in any module that it calls."""
    load_authors_modules()
    digest = hashlib.sha256()
    for name, path in sorted(_author_files().items()):
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _author_files() -> dict[str, Path]:
    tops = {name.partition(".")[0] for name in settings.SIGNOFF_WORKFLOWS}
    tops |= {
        workflow.fn.__module__.partition(".")[0] for versions in _workflows.values() for workflow in versions.values()
    }
    files = {}
    for name, module in list(sys.modules.items()):
        source = getattr(module, "__file__", None)
        if name.partition(".")[0] in tops and source and source.endswith(".py"):
            files[name] = Path(source)
    return files


@contextmanager
def isolated() -> Iterator[None]:
    """For tests: nothing is registered at the beginning, and what is registered inside is forgotten afterwards."""
    steps, workflows = dict(_steps), dict(_workflows)
    _steps.clear()
    _workflows.clear()
    try:
        yield
    finally:
        _steps.clear()
        _steps.update(steps)
        _workflows.clear()
        _workflows.update(workflows)


def _same_function(one: Any, other: Any) -> bool:
    """Also the same function loaded a second time (a reload, `python -m`)."""
    if one is other:
        return True
    return _place(one) == _place(other)


def _place(function: Any) -> tuple[str, str, int]:
    code = inspect.unwrap(function).__code__
    return function.__qualname__, code.co_filename, code.co_firstlineno


def _conflict(what: str, name: str, one: Any, other: Any) -> str:
    places = " and ".join("{} ({}:{})".format(*_place(function)) for function in (one, other))
    return f"two functions are called {what} {name}: {places}; give one of them another name=…"
