"""The runs that `up --demo` starts: the returns example on a small shop of its own."""

from __future__ import annotations

from pathlib import Path

from django.contrib.auth import get_user_model

from agents.examples.returns import returns_batch
from journal import runs

KEY = "demo-returns"
STARTER = "clerk"
FILES = Path(__file__).resolve().parent / "demo"


def start_demo_runs() -> None:
    """Start the demo's batch as the user "clerk", once: a database that has it is left as it is."""
    if runs.find(key=KEY).exists():  # asked for first, since a moved checkout has other paths under the same key
        return
    starter = get_user_model().objects.get(username=STARTER)
    runs.start(returns_batch, str(FILES / "returns.csv"), str(FILES / "orders.csv"), key=KEY, actor=starter)
