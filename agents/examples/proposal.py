"""What the model client is asked about a return, and what the scripted client answers.

A proposal is words for the person who decides. Nothing acts on it: the amount and whether the return is matched
come from the shop's files.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from agents.clients import Answer, Question, model_client, script

TASK = "propose what to do with a return"
INSTRUCTIONS = (
    "You see one return of a shop: its amount, whether an earlier purchase covers all of its lines, and what does "
    "not fit. Propose in one or two sentences to refund it or not, and what to look at first."
)


def proposal_for(invoice: str, amount: Decimal, matched: bool, misfits: tuple[str, ...]) -> Answer:
    """Asks the model client. Raises an AgentsError if it has no answer."""
    material = {"invoice": invoice, "amount": str(amount), "matched": matched, "misfits": list(misfits)}
    return model_client().answer(Question(TASK, INSTRUCTIONS, material))


@script(TASK)
def scripted_proposal(material: Mapping[str, Any]) -> str:
    """The scripted client's answer."""
    amount, misfits = material["amount"], material["misfits"]
    if material["matched"] and not misfits:
        return f"Refund {amount}: the customer bought all of it before."
    if material["matched"]:
        return f"Refund {amount}, after a look at this: {'; '.join(misfits)}."
    return f"Do not refund {amount} before somebody has looked into this: {'; '.join(misfits)}."
