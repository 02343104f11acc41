"""@workflow: a registered function of deterministic orchestration."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from journal import codec, registry
from journal.annotations import types_named
from journal.errors import Undecodable, Unstorable

P = ParamSpec("P")
R = TypeVar("R")

RESERVED = ("key", "actor", "labels", "priority", "timeout")
"""Keywords of runs.start; a workflow cannot have such parameters."""


class Workflow(Generic[P, R]):
    """A workflow that runs can be started of. Called directly, it is the plain function."""

    def __init__(self, fn: Callable[P, R], name: str | None, version: int, owner: str | None) -> None:
        if inspect.iscoroutinefunction(fn):
            raise TypeError(f"{fn.__qualname__}: a workflow is a plain function; its steps may be async")
        if version < 1:
            raise ValueError("versions count from 1")
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.name = name or fn.__name__
        self.version = version
        self.owner = owner or ""
        self.signature = inspect.signature(fn)
        for parameter in self.signature.parameters.values():
            if parameter.name in RESERVED:
                raise TypeError(f"{fn.__qualname__}: {parameter.name!r} is a keyword of runs.start; name it otherwise")

    @property
    def code(self) -> str:
        return f"{self.name}@{self.version}"

    @functools.cached_property
    def argument_types(self) -> codec.Types:
        return types_named(self.fn, returns=False)

    @functools.cached_property
    def result_types(self) -> codec.Types:
        return types_named(self.fn, returns=True)

    def encode_input(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The input as codec text by parameter, defaults included: all that takes effect, also when one of them is
        changed later. Raises TypeError if it does not fit the signature."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        return codec.encode(dict(bound.arguments), name="input")

    def read_input(self, input_text: str) -> inspect.BoundArguments:
        """A stored input, to run the body on. Raises Undecodable.

        A parameter that the code has gained since has its default, as a copy of this run's own."""
        given = codec.decode(input_text, self.argument_types)
        bound = inspect.BoundArguments(self.signature, dict(given))
        bound.apply_defaults()
        gained = {name: value for name, value in bound.arguments.items() if name not in given}
        if gained:
            try:
                text = codec.encode(gained, name="its default")
            except Unstorable as error:
                raise Undecodable(f"{self.name} has a parameter that is not in it, and {error}") from None
            bound.arguments.update(codec.decode(text, self.argument_types))
        return bound

    def is_same_input(self, one: str, other: str) -> bool:
        """Whether two stored inputs are the same values. Raises Undecodable."""
        first, second = dict(self.read_input(one).arguments), dict(self.read_input(other).arguments)
        return first == second or codec.encode(first) == codec.encode(second)  # NaN is not equal to itself

    def run(self, bound: inspect.BoundArguments) -> R:
        """Runs the body."""
        return self.fn(*bound.args, **bound.kwargs)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<workflow {self.code}>"


@overload
def workflow(fn: Callable[P, R], /) -> Workflow[P, R]: ...
@overload
def workflow(
    *, name: str | None = None, version: int = 1, owner: str | None = None
) -> Callable[[Callable[P, R]], Workflow[P, R]]: ...


def workflow(fn: Any = None, /, *, name: str | None = None, version: int = 1, owner: str | None = None) -> Any:
    """Registers a function as a workflow.

    It must do the same each time it is run from the top: all that changes or touches the outside is a step,
    and time and chance come from `now`, `uuid4` and `random`. `owner` is a user name, for policies with four eyes.
    Several versions of one name may be loaded: an open run stays on its version, a new one takes the highest.
    """

    def register(function: Callable[P, R]) -> Workflow[P, R]:
        made = Workflow(function, name, version, owner)
        registry.add_workflow(made)
        return made

    return register(fn) if fn is not None else register
