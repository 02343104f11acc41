"""The engine's SQL, each statement with its reason for not being the ORM's.

The ORM would take a round trip more, or cannot say it. Placeholders are bound on the server (settings:
`server_side_binding`, `prepare_threshold`): interpolated by the client, an append costs twice as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

from journal.reconnecting import retried

# The holder's hand on the run: every append goes through this UPDATE. A plain read of the epoch would lock
# nothing, and a zombie's event would be committed after the next claim.
FENCE = """
    UPDATE journal_run SET seq = seq + %s, head = %s{changes}
    WHERE id = %s AND epoch = %s AND seq = %s AND status = 'running'{condition}
    RETURNING id, inbox_count
"""

EVENT_ROW = (
    "(%s::int, %s::int, %s::int, %s::text, %s::int, %s::text, %s::text, %s::bytea, %s::text,"
    " %s::bytea, %s::text, %s::timestamptz, %s::bytea)"
)

APPEND = """
WITH run AS ({fence}), payload AS (
    INSERT INTO journal_payload (run_id, hash, body)
    SELECT run.id, p.hash, p.body FROM run, unnest(%s::bytea[], %s::text[]) AS p(hash, body)
    ON CONFLICT DO NOTHING
){more}
SELECT run.inbox_count, journal_clock() FROM run
"""

INSERT_EVENTS = """, event AS (
    INSERT INTO journal_event (run_id, seq, generation, branch, path, attempt, kind, name,
                               args_digest, args, data_hash, data, at, digest)
    SELECT run.id, e.* FROM run, (VALUES {rows}) AS e
)"""

# The rows of the waits come with the status: the delivery trigger, which holds the run's lock, sees both or none.
INSERT_WAITS = """, wait AS (
    INSERT INTO journal_wait (run_id, generation, branch, path, kind, name, reference, detail, since, due_at)
    SELECT run.id, w.* FROM run, (VALUES {rows}) AS w
)"""

WAIT_ROW = "(%s::int, %s::int, %s::text, %s::text, %s::text, %s::text, %s::text, %s::timestamptz, %s::timestamptz)"

TAKE_MESSAGES = """, taken AS (
    UPDATE journal_message SET taken_seq = %s FROM run WHERE run_id = run.id AND journal_message.id = ANY(%s)
)"""

# SKIP LOCKED: two workers never wait for each other. Only what this worker has the code for (a rolling deploy
# strands nothing), and not what this very code was blocked by.
#
# A run that its workers keep dying with is taken only by a worker that holds nothing else (`idle`), which then takes
# nothing else: else an innocent neighbour would be blamed. Where no worker is ever idle, it becomes after half a
# minute the row that busy workers stop for, until one of them is.
CLAIM = """
WITH best AS (
    SELECT id, deaths >= %(suspect)s AS suspect FROM journal_run
    WHERE status = 'ready' AND code = ANY(%(capabilities)s) AND NOT %(fingerprint)s = ANY(blocked_by)
      AND (%(idle)s OR deaths < %(suspect)s OR state_at < journal_clock() - interval '30 seconds')
    ORDER BY claim_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM journal_wait USING best WHERE run_id = best.id AND (%(idle)s OR NOT best.suspect)
)
UPDATE journal_run r
SET status = 'running', state_at = journal_clock(), claimed_at = journal_clock(), epoch = epoch + 1,
    worker_id = %(worker)s, is_alone = best.suspect
FROM best WHERE r.id = best.id AND (%(idle)s OR NOT best.suspect) AND EXISTS (
    SELECT 1 FROM journal_worker WHERE id = %(worker)s AND stopped_at IS NULL AND death IS NULL
)
RETURNING r.id, r.epoch, r.is_alone
"""

# After the claim and in a statement of its own: with the claim's snapshot it would miss the last event of a
# holder for whose commit the claim had to wait.
LOAD_RUN = """
SELECT r.id, r.workflow, r.version, r.key, r.labels, r.actor_id, r.actor_name, r.owner, r.seq, r.generation,
       r.branch, r.inbox_count, r.fingerprint, r.head, r.epoch, r.status, journal_clock()
FROM journal_run r WHERE r.id = %s
"""

LOAD_HISTORY = """
SELECT e.seq, e.generation, e.branch, e.path, e.attempt, e.kind, e.name, e.args_digest, coalesce(e.args, a.body),
       e.data_hash, coalesce(e.data, d.body), e.at, e.digest
FROM journal_event e
LEFT JOIN journal_payload a ON a.run_id = e.run_id AND a.hash = e.args_digest AND e.args IS NULL
LEFT JOIN journal_payload d ON d.run_id = e.run_id AND d.hash = e.data_hash AND e.data IS NULL
WHERE e.run_id = %s ORDER BY e.seq
"""

LOAD_INBOX = """
SELECT {signed}, mac, arrived_at
FROM journal_message WHERE run_id = %s AND taken_seq IS NULL AND fate IS NULL AND arrived_at IS NOT NULL ORDER BY id
"""

# Waiting for the row's lock: an old backend may still be committing what this process sent it.
RECONCILE = "SELECT epoch, seq, head, status FROM journal_run WHERE id = %s FOR NO KEY UPDATE"

# Conditional on the epoch: only the holder gives back what it holds.
HAND_BACK = """
UPDATE journal_run SET status = 'ready', worker_id = NULL, freed_by = NULL, state_at = journal_clock(),
       claim_at = journal_claim_at(priority, true)
WHERE id = %s AND epoch = %s AND status = 'running' RETURNING id
"""

# Never waits (SKIP LOCKED), and takes rows in a bounded number, so that every worker may sweep at once.
WAKE_DUE = """
WITH due AS (
    SELECT r.id FROM journal_run r
    WHERE r.status = 'waiting' AND r.id IN (
        SELECT w.run_id FROM journal_wait w
        -- Only of runs that still wait: a woken one keeps its rows until it is claimed, which may be never.
        JOIN journal_run waiting ON waiting.id = w.run_id AND waiting.status = 'waiting'
        WHERE w.due_at <= journal_clock() AND NOT w.kind = ANY(%(hooked)s) ORDER BY w.due_at LIMIT 200)
    ORDER BY r.id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE journal_run r SET status = 'ready', state_at = journal_clock(), claim_at = journal_claim_at(priority, true)
FROM due WHERE r.id = due.id RETURNING r.id
"""

# Runs that the code of another fingerprint blocked: this code may try each once.
UNBLOCK = """
WITH candidate AS (
    SELECT id FROM journal_run
    WHERE status = 'blocked' AND code = ANY(%(capabilities)s) AND NOT %(fingerprint)s = ANY(blocked_by)
    ORDER BY id LIMIT 200 FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE journal_run r SET status = 'ready', state_at = journal_clock(), claim_at = journal_claim_at(priority, true)
FROM candidate WHERE r.id = candidate.id RETURNING r.id
"""

# A worker that says goodbye frees its runs; one that died is also counted against them. What is locked is passed by
# (waiting for it, every worker's sweep would stop where one session hangs), and found by the next sweep.
FREE_RUNS_OF = """
WITH gone AS (
    SELECT death, (death IS NOT NULL)::int AS died, fingerprint FROM journal_worker WHERE id = %(worker)s
), held AS (
    SELECT id, is_alone AND deaths_alone + 1 >= %(poisoned)s AS is_last
    FROM journal_run WHERE worker_id = %(worker)s AND status = 'running' FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE journal_run r SET worker_id = NULL, freed_by = gone.death, state_at = journal_clock(),
       claim_at = journal_claim_at(priority, true), deaths = deaths + gone.died,
       -- Poison is blocked at once: ready for a moment, it could take one worker more. Not counted, so that other code
       -- has one try; blocked by what the dead worker ran.
       status = CASE WHEN poison.found THEN 'blocked' ELSE 'ready' END,
       blocked = CASE WHEN poison.found THEN jsonb_set(%(difference)s, '{code,at_hand}', to_jsonb(gone.fingerprint))
                 ELSE blocked END,
       blocked_by = CASE WHEN poison.found THEN array_append(blocked_by, gone.fingerprint) ELSE blocked_by END,
       deaths_alone = deaths_alone + CASE WHEN is_alone AND NOT poison.found THEN gone.died ELSE 0 END
FROM held, gone, LATERAL (SELECT held.is_last AND gone.died = 1 AS found) poison
WHERE r.id = held.id RETURNING r.id, r.status, r.freed_by
"""


def rows(sql: str, params: Sequence[Any] | dict[str, Any]) -> list[tuple[Any, ...]]:
    """The rows that one statement returns, through psycopg's own cursor on Django's connection.

    A statement that is a transaction of its own is done again if it was broken off by a deadlock or the like."""
    return retried(lambda: _rows(sql, params), "a statement")


def _rows(sql: str, params: Sequence[Any] | dict[str, Any]) -> list[tuple[Any, ...]]:
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else []
