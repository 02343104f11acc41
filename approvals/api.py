"""What authors write: a step that needs approval, and asking for one call.

@requires_approval(policy="refunds", summary=lambda order_id, amount: f"Refund {amount} for order {order_id}")
@step
def refund(order_id: str, amount: Decimal) -> Receipt: ...
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar

from approvals import policies
from approvals.guard import ApprovalGuard
from journal.context import execution
from journal.guarding import Authority
from journal.steps import Call, Step

P = ParamSpec("P")
R = TypeVar("R")


class _Gate(Protocol):
    """What requires_approval(…) returns: it hands on the step's own types."""

    def __call__(self, step: Step[P, R], /) -> Step[P, R]: ...


def requires_approval(
    *, policy: str, summary: Callable[..., str], facts: Callable[..., Mapping[str, Any]] | None = None
) -> _Gate:
    """Makes a step wait for the policy's approval each time a workflow calls it.

    `summary` says in one sentence what the call would do, `facts` what people should know of it (by name). Both
    get the call's arguments by name, once, when the approval is asked for; rules see arguments and facts. A
    rejection raises Rejected in the workflow, the end of the time Expired. Raises PolicyError at once if there is
    no such policy.
    """
    policies.find(policy)

    def guard(step: Any, /) -> Any:
        if not isinstance(step, Step):
            name = getattr(step, "__qualname__", repr(step))
            raise TypeError(
                f"{name} is not a step: @requires_approval stands above @step, which stands next to the function"
            )
        if step.guard is not None:
            raise TypeError(f"{step.name} needs an approval already")
        return step.with_guard(ApprovalGuard(policy, summary, facts))

    return guard


def require_approval(call: Call[R], *, policy: str, summary: str | None = None) -> Authority[R]:
    """Asks for the approval of one call and waits for it; the authority's `.run()` makes that call, once.

        permit = require_approval(refund.call("10482", Decimal("420.00")), policy="refunds", summary="Refund 420.00")
        receipt = permit.run()

    Without a summary it is the step's name. Raises Rejected or Expired, and TypeError for a step that
    needs approval anyway.
    """
    if call.step.guard is not None:
        raise TypeError(f"{call.step.name} needs an approval already; call it as it is")
    guarded = copy.copy(call.step)  # of this one call: the step itself stays as it is
    guarded.guard = ApprovalGuard(policy, summary or call.step.name)
    return execution().authorise(guarded, call.arguments)  # type: ignore[no-any-return]
