from __future__ import annotations

from tests import counts

collect_ignore = [] if counts.FULL else ["test_false_alarms.py"]
