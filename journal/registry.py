"""The workflows and steps that the authors' modules define, by name."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from journal import chain
from journal.codec import Types
from journal.errors import AlreadyRegistered, AuthorsModuleBroken, JournalError, UnknownWorkflow

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
    """Imports the modules that SIGNOFF_WORKFLOWS names. Raises AuthorsModuleBroken, whatever is wrong with one."""
    for name in settings.SIGNOFF_WORKFLOWS:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise AuthorsModuleBroken(name, _what_broke(error)) from error


def _what_broke(error: BaseException) -> str:
    """One line: file:line in the authors' code as far as the error came from there, and the reason."""
    reason = str(error) if isinstance(error, JournalError | SyntaxError) else f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        place, reason = f"{error.filename}:{error.lineno}: ", f"{type(error).__name__}: {error.msg}"
    else:
        theirs = [
            f"{frame.f_code.co_filename}:{line}: "
            for frame, line in traceback.walk_tb(error.__traceback__)
            if _is_authors(frame.f_globals.get("__name__", ""), frame.f_code.co_filename)
        ]
        place = theirs[-1] if theirs else ""
    return " ".join(f"{place}{reason}".split())


def _is_authors(module: str, file_name: str) -> bool:
    """Whether a person would look there: neither this engine, nor Python's library, nor an installed package."""
    top = module.partition(".")[0]
    if top in {name.partition(".")[0] for name in settings.SIGNOFF_WORKFLOWS}:
        return True
    installed = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return top not in {"journal", "approvals"} | sys.stdlib_module_names and not file_name.startswith(installed)


@cache
def fingerprint() -> str:
    """Of the authors' code in this process: a short digest over the sources of the packages it comes from.

    Coarse on purpose: what a workflow does may change in any module that it calls. The chain's key counts too: runs
    that a worker with a wrong one has blocked are tried again by a worker with the right one."""
    load_authors_modules()
    digest = hashlib.sha256(chain.mac("fingerprint"))
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
