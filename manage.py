#!/usr/bin/env python
"""Signoff's command line: `manage.py COMMAND --help`."""

from __future__ import annotations

import os
import sys

try:
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    from config import database
except ModuleNotFoundError as error:
    sys.exit(f"this Python has no module {error.name}: run `make install` and use .venv/bin/python")


def main() -> None:
    """Run one command; what a person must put right is one line on standard error."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("SIGNOFF_ENV", "development")
    database.default_pool_size = 0
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.exit(130)
    except ImproperlyConfigured as error:
        sys.exit(f"settings: {error}")
    except OperationalError as error:
        sys.exit(database.unavailable(error))


if __name__ == "__main__":
    main()
