"""What can go wrong in the agents app.

AgentsError
├── BadFile            an input file of an example cannot be used
├── UnknownClient      the setting names a model client that does not exist
├── NoScript           the scripted client has no answer for a task
└── LedgerRefused      the refund ledger does not accept a call
"""

from __future__ import annotations


class AgentsError(Exception):
    """The agents app cannot do this."""


class BadFile(AgentsError):
    """An input file cannot be used; the message names the file, the line and what is wrong with it."""


class UnknownClient(AgentsError):
    """SIGNOFF_MODEL_CLIENT names a model client that does not exist."""


class NoScript(AgentsError):
    """The scripted client has no answer for this task."""


class LedgerRefused(AgentsError):
    """The refund ledger does not accept this call."""
