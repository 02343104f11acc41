"""What `up --demo` puts into the database; doing it again changes nothing."""

from __future__ import annotations

from agents.examples.seed import start_demo_runs
from approvals.seeding import seed_people


def seed() -> list[str]:
    """People, groups and runs of the demo; one line `sign in: NAME PASSWORD (groups)` per account.

    Who is in no group has a role that says what they are there for."""
    accounts = seed_people()
    start_demo_runs()
    return [
        f"sign in: {account.name} {account.password} ({', '.join(account.groups) or account.role})"
        for account in accounts
    ]
