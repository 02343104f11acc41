"""Settings of the tests' own process: those of the service in test mode, in a home of its own.

The database's address is put in when the first test asks for it (tests/conftest.py). Bells rung
in this process go nowhere; tests with real workers choose their broker (tests/harness.py).
"""

from __future__ import annotations

import os
import tempfile

os.environ["SIGNOFF_ENV"] = "test"
os.environ["SIGNOFF_HOME"] = tempfile.mkdtemp(prefix="signoff-tests-")
os.environ["SIGNOFF_BROKER_URL"] = "memory://"
os.environ["SIGNOFF_LOG_LEVEL"] = "WARNING"
# playwright's synchronous API runs an event loop in the test's own thread.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
# What a developer's shell sets must not change what the tests see.
for _name in (
    *("SIGNOFF_WORKFLOWS", "SIGNOFF_POLICIES", "SIGNOFF_BASE_URL", "SIGNOFF_COMMAND_DECISIONS"),
    *("SIGNOFF_MODEL_CLIENT", "SIGNOFF_CHAIN_KEY", "SIGNOFF_SECRET_KEY", "SIGNOFF_DATABASE_POOL"),
):
    os.environ.pop(_name, None)

from config.settings import *  # noqa: E402, F403
