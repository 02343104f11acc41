"""Settings of the tests' own process: those of the service in test mode, in a home of its own.

The database's address is put in when the first test asks for it (tests/conftest.py). Bells rung
in this process go nowhere; tests with real workers choose their broker (tests/harness.py).
"""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

os.environ["SIGNOFF_ENV"] = "test"
# Made only when something is put there: tools import these settings too.
os.environ["SIGNOFF_HOME"] = str(Path(tempfile.gettempdir()) / f"signoff-tests-{secrets.token_hex(8)}")
os.environ["SIGNOFF_BROKER_URL"] = "memory://"
os.environ["SIGNOFF_LOG_LEVEL"] = "WARNING"
# playwright's synchronous API runs an event loop in the test's own thread.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
# What a developer's shell sets must not change what the tests see.
for _name in (
    *("SIGNOFF_WORKFLOWS", "SIGNOFF_POLICIES", "SIGNOFF_BASE_URL", "SIGNOFF_COMMAND_DECISIONS"),
    *("SIGNOFF_MODEL_CLIENT", "SIGNOFF_DATABASE_POOL", "SIGNOFF_PREPARED_STATEMENTS"),
):
    os.environ.pop(_name, None)
for _name in ("SIGNOFF_CHAIN_KEY", "SIGNOFF_SECRET_KEY"):
    os.environ.pop(f"{_name}_FILE", None)
    os.environ[_name] = secrets.token_urlsafe(48)

from config.settings import *  # noqa: E402, F403
