"""Log lines that a person can read: time, level, action, message, one line each.

`action` is stable and for machines too: give it as `extra={"action": "run_claimed"}`; without
one the logger's name stands there.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from config import env

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
# Anything but printable text could move a reader's cursor or forge a line.
_CONTROLS = {code: f"\\x{code:02x}" for code in [*range(32), *range(127, 160)] if code != 9}
_CONTROLS_IN_TRACEBACK = {code: text for code, text in _CONTROLS.items() if code != 10}


class LineFormatter(logging.Formatter):
    """`2026-03-01T14:02:11.532Z info    run_claimed  message`, a traceback indented below it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text, without control characters."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        action = getattr(record, "action", record.name)
        message = record.getMessage().translate(_CONTROLS)
        line = f"{at}.{int(record.msecs):03d}Z {record.levelname.lower():<7} {action}  {message}"
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            trace = record.exc_text.translate(_CONTROLS_IN_TRACEBACK)
            line += "".join(f"\n    {part}" for part in trace.splitlines())
        return line


def logging_settings() -> dict[str, Any]:
    """For LOGGING: everything to standard error, from SIGNOFF_LOG_LEVEL up."""
    level = env.choice("SIGNOFF_LOG_LEVEL", "INFO", _LEVELS)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": LineFormatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django's own set-up gives these handlers of their own; one line is enough.
            "django": {"handlers": [], "propagate": True, "level": level},
            "django.server": {"handlers": [], "propagate": True, "level": level},
            # A refused or unknown address is the caller's business, and would fill the log.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "celery": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            "pgmq": {"level": "WARNING"},
            "psycopg.pool": {"level": "ERROR"},
        },
    }
