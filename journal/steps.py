"""@step: a call whose outcome is journaled."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar, overload

from journal import codec, context, registry
from journal.annotations import types_named
from journal.errors import NotInWorkflow
from journal.hooks import Guard
from journal.retries import Retry

P = ParamSpec("P")
R = TypeVar("R")


class Step(Generic[P, R]):
    """A step. In a workflow's own frame a call is journaled; elsewhere it is a plain call, if nothing guards it."""

    def __init__(self, fn: Callable[P, Any], name: str | None, retry: Retry) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.name = name or fn.__name__
        self.retry = retry
        self.guard: Guard | None = None
        self.signature = inspect.signature(fn)

    @functools.cached_property
    def argument_types(self) -> codec.Types:
        return types_named(self.fn, returns=False)

    @functools.cached_property
    def result_types(self) -> codec.Types:
        return types_named(self.fn, returns=True)

    @functools.cached_property
    def defaults(self) -> dict[str, Any]:
        parameters = self.signature.parameters.values()
        return {
            parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty
        }

    def with_guard(self, guard: Guard) -> Step[P, R]:
        """The same step, but nothing starts it before `guard` grants it. Takes the place of the bare one."""
        guarded = copy.copy(self)
        guarded.guard = guard
        registry.add_step(guarded)
        return guarded

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """A deferred call: what would run, to be handed to something that decides when."""
        return Call(self, self.bind(args, kwargs))

    def unguarded(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The bare function, for tests: not journaled, and nobody is asked."""
        return self.execute(self.bind(args, kwargs))  # type: ignore[no-any-return]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by parameter in the order of the signature, defaults included: all that takes effect."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def execute(self, arguments: dict[str, Any]) -> Any:
        """Calls the function; an async one is run to its end."""
        bound = inspect.BoundArguments(self.signature, arguments)
        bound.apply_defaults()
        result = self.fn(*bound.args, **bound.kwargs)
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if context.in_workflow():
            return context.execution().perform(self, self.bind(args, kwargs))  # type: ignore[no-any-return]
        if self.guard is not None:
            raise NotInWorkflow(
                f"{self.name} needs approval, so it runs only in a workflow's own frame; "
                f"tests use {self.name}.unguarded(…)"
            )
        return self.execute(self.bind(args, kwargs))  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<step {self.name}>"


@dataclass(frozen=True)
class Call(Generic[R]):
    """A step and the arguments to call it with."""

    step: Step[..., R]
    arguments: dict[str, Any]


@overload
def step(fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
@overload
def step(fn: Callable[P, R], /) -> Step[P, R]: ...
@overload
def step(*, name: str | None = None, retry: Retry = ...) -> _Decorator: ...


def step(fn: Any = None, /, *, name: str | None = None, retry: Retry = Retry()) -> Any:  # noqa: B008 - frozen
    """Makes a function a step: its outcome is journaled, and a replay gets it from there.

    After a crash between its start and the commit of its outcome it is executed again, with the same
    `current_step().idempotency_key`. Arguments and results are values that the journal can hold.
    """

    def register(function: Callable[P, Any]) -> Step[P, Any]:
        if isinstance(function, Step):
            raise TypeError(
                f"{function.name} is a step already; @step stands next to the function, other decorators above it"
            )
        made: Step[P, Any] = Step(function, name, retry)
        registry.add_step(made)
        return made

    return register(fn) if fn is not None else register


class _Decorator:
    """What @step(…) returns, for type checkers."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Step[P, R]: ...
    def __call__(self, fn: Any, /) -> Any: ...
