"""The table in which the slow outside world of returns_chaos keeps its calls."""

CREATE = """
CREATE TABLE IF NOT EXISTS outside_calls (
    id bigserial PRIMARY KEY, pid int, what text, run text, path text, key text,
    began_at timestamptz DEFAULT clock_timestamp(), ended_at timestamptz, too_late bool
)
"""
