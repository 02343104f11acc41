"""How much of a request a page shows: all of it, or, beyond a limit, too little to be approved there."""

from __future__ import annotations

import json

from approvals.models import Revision
from journal.display import WHOLE_LIMIT


def fits_a_page(revision: Revision) -> bool:
    """Whether a page shows the arguments, the facts and the summary to their ends: together at most WHOLE_LIMIT
    characters of stored text. The cards show it whole for the same answer."""
    length = len(revision.args) + len(revision.facts) + len(revision.summary)
    if length > WHOLE_LIMIT:
        return False
    return length - len(revision.summary) + len(json.dumps(revision.summary)) <= WHOLE_LIMIT
