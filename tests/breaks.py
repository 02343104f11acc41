"""What `make sabotage` breaks in the engine: a name, a place, the line as it is and as it must not be, the tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Break:
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def broken(self, sound: str) -> str:
        """The file's text with the break in it. Raises ValueError where `old` is not there exactly once."""
        if sound.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has {sound.count(self.old)} places like {self.old!r}")
        return sound.replace(self.old, self.new)


def _engine(name: str, file: str, old: str, new: str, *tests: str) -> Break:
    return Break(name, f"journal/{file}", old, new, tuple(f"tests/journal/{test}" for test in tests))


def _pooler(name: str, file: str, old: str, new: str, test: str) -> Break:
    return Break(name, file, old, new, (f"tests/chaos/test_pgbouncer.py::test_{test}",))


RACES = "test_races.py::test_"
REPLAY = "test_replay.py::test_"
MISMATCH = "test_mismatch.py::test_"
HOSTILE = "test_hostile_authors.py::test_"
WAKEUPS = "test_wakeups.py::test_"
COLLISIONS = "test_collisions.py::test_"

ENGINE = [
    _engine(
        "the epoch is not compared", "statements.py",
        "WHERE id = %s AND epoch = %s AND seq = %s AND status = 'running'{condition}",
        "WHERE id = %s AND epoch >= %s AND seq = %s AND status = 'running'{condition}",
        RACES + "a_zombie_s_append_waits_for_the_claim_and_writes_nothing",
    ),
    _engine(
        "a released run still takes events", "statements.py",
        "AND seq = %s AND status = 'running'{condition}", "AND seq = %s{condition}",
        RACES + "a_released_run_takes_nothing_from_its_old_holder_before_the_next_claim",
    ),
    _engine(
        "the suspend does not compare the counter", "runner.py",
        "waits=[suspended.wait], inbox=execution.loaded.inbox_count", "waits=[suspended.wait]",
        RACES + "a_signal_against_the_suspend_is_never_lost",
    ),
    _engine(
        "the counter is raised before the commit", "sql/triggers.sql",
        "DEFERRABLE INITIALLY DEFERRED", "DEFERRABLE INITIALLY IMMEDIATE",
        "test_starting.py::test_an_open_transaction_holds_up_only_the_same_key",
    ),
    _engine(
        "the delivery locks runs as they come", "sql/triggers.sql",
        "    ORDER BY id FOR NO KEY UPDATE;",
        "    ORDER BY (SELECT min(m.id) FROM journal_message m WHERE m.run_id = journal_run.id"
        " AND m.arrived_at IS NULL) FOR NO KEY UPDATE;",
        RACES + "two_senders_to_the_same_two_runs_do_not_deadlock",
    ),
    _engine(
        "delivery to an ended run raises", "sql/triggers.sql",
        "    -- A new statement, so that it sees",
        "    IF EXISTS (SELECT 1 FROM journal_run WHERE id = NEW.run_id AND ended_at IS NOT NULL)"
        " THEN RAISE EXCEPTION 'ended'; END IF;\n    -- A new statement, so that it sees",
        "test_starting.py::test_a_signal_that_commits_after_the_end_does_not_fail_its_sender",
    ),
    _engine(
        "any message wakes the run", "sql/triggers.sql",
        "WHERE w.run_id = d.run_id\n              AND", "WHERE w.run_id = d.run_id OR",
        RACES + "a_message_that_no_wait_wants_does_not_wake_the_run",
    ),
    _engine(
        "unwinding is not sticky", "execution.py",
        "            raise self.unwinding\n", "            return\n",
        RACES + "unwinding_is_sticky",
    ),
    _engine(
        "an unknown commit is simply repeated", "writer.py",
        "bytes(head) == self._seal(built):", "bytes(head) == b'':",
        RACES + "an_append_whose_commit_is_unknown_is_looked_up_before_it_is_repeated",
    ),
    _engine(
        "claims take any code", "statements.py",
        "WHERE status = 'ready' AND code = ANY(%(capabilities)s) AND NOT %(fingerprint)s = ANY(blocked_by)\n"
        "      AND (%(idle)s OR",
        "WHERE status = 'ready' AND %(capabilities)s::text[] IS NOT NULL AND NOT %(fingerprint)s = ANY(blocked_by)\n"
        "      AND (%(idle)s OR",
        REPLAY + "a_run_whose_code_no_worker_has_waits_for_one_and_says_so",
    ),
    _engine(
        "a worker that was declared dead still claims", "statements.py",
        "WHERE id = %(worker)s AND stopped_at IS NULL AND death IS NULL\n)", "WHERE id = %(worker)s\n)",
        RACES + "a_claim_of_a_worker_that_was_just_declared_dead_gets_nothing",
    ),
    _engine(
        "the dead are looked at once", "leases.py",
        "in statements.rows(OWNED_BY_DEAD, []):", "in []:",
        RACES + "a_run_held_by_a_dead_worker_is_found_also_later",
    ),
    _engine(
        "the same code tries a blocked run again", "statements.py",
        "WHERE status = 'blocked' AND code = ANY(%(capabilities)s) AND NOT %(fingerprint)s = ANY(blocked_by)",
        "WHERE status = 'blocked' AND code = ANY(%(capabilities)s) AND %(fingerprint)s IS NOT NULL",
        MISMATCH + "changed_code_blocks_executes_nothing_and_goes_on_when_it_is_put_back",
    ),
    _engine(
        "history left over is no mismatch", "execution.py",
        "path = ahead.path if ahead is not None else", "path = None if ahead is not None else",
        MISMATCH + "changed_code_blocks_executes_nothing_and_goes_on_when_it_is_put_back",
    ),
    _engine(
        "a gap in the history is executed", "execution.py",
        "if self.history.unreached is not None:\n                self.block",
        "if self.history is None:\n                self.block",
        MISMATCH + "a_call_before_what_is_recorded_is_never_executed",
    ),
    _engine(
        "arguments are not compared", "history.py",
        "    recorded, wanted = codec.decode(", "    return True\n    recorded, wanted = codec.decode(",
        MISMATCH + "a_new_value_is_not_harmless",
    ),
    _engine(
        "arguments are compared as text", "history.py",
        "    recorded, wanted = codec.decode(", "    return False\n    recorded, wanted = codec.decode(",
        MISMATCH + "harmless_changes_do_not_block",
    ),
    _engine(
        "the workflow gets the step's own object", "perform.py",
        "        result = codec.encode(_call_outside(execution, step, effective, info), "
        'name=f"the result of {step.name}")\n'
        "        value = codec.decode(result, step.result_types)  # what a replay will see\n",
        "        value = _call_outside(execution, step, effective, info)\n        result = codec.encode(value)\n",
        REPLAY + "the_first_run_sees_what_a_replay_sees",
    ),
    _engine(
        "the key is that of the step, not of the position", "execution.py",
        "place = (self.info.id, self.writer.generation, path, step_name, effect)",
        "place = (self.info.id, self.writer.generation, step_name, effect)",
        REPLAY + "each_position_has_its_own_idempotency_key_and_keeps_it",
    ),
    _engine(
        "a finished step is executed again", "perform.py",
        "if site is not None and site.outcome is not None:\n        return settle",
        "if site is not None and site.outcome is None:\n        return settle",
        REPLAY + "a_signal_wakes_a_run_and_earlier_steps_are_not_executed_again",
    ),
    _engine(
        "bells ring before the commit", "bells.py",
        "    transaction.on_commit(ring, robust=True)", "    ring()",
        "test_starting.py::test_rolled_back_leaves_nothing_and_rings_nothing",
    ),
    _engine(
        "whoever rings publishes", "bells.py",
        "        with self._lock:\n            self._idle.clear()",
        "        current_app.send_task(BELL)\n        with self._lock:\n            self._idle.clear()",
        RACES + "bells_do_not_hold_up_the_caller",
    ),
    _engine(
        "the head is the last digest", "chain.py",
        'return mac("head", digest, seq, generation, branch)', "return digest",
        "test_verifying.py::test_a_deleted_event_also_the_last_with_the_row_put_back",
    ),
    _engine(
        "a late signal beats its timeout", "waits.py",
        "return wait.due_at is None or message.arrived_at <= wait.due_at", "return True",
        RACES + "a_timer_and_a_signal_at_once_have_one_winner",
    ),
    _engine(
        "SIGTERM takes the next step too", "execution.py",
        "        if self.holder.draining:\n            self.unwind(HandedBack())\n", "",
        "test_worker_death.py::test_sigterm_hands_the_run_over_when_the_step_at_hand_ends",
    ),
    _engine(
        "a lost session is a death", "leases.py",
        "GRACE = 5.0", "GRACE = 0.0",
        "test_leases.py::test_a_lost_session_is_a_suspicion_and_a_death_only_after_the_grace",
    ),
    _engine(
        "the grace does not count from the server's start", "leases.py",
        "(greatest(session_lost_at, pg_postmaster_start_time()) <", "(session_lost_at <",
        "test_leases.py::test_after_a_restart_of_the_server_nobody_is_dead_yet",
    ),
    _engine(
        "a step may leave a transaction open", "perform.py",
        "    close_after_step()\n    return result\n", "    return result\n",
        HOSTILE + "a_step_that_leaves_a_transaction_open_fails_and_the_thread_works_on",
    ),
    _engine(
        "the line of history is not sealed", "chain.py",
        'return mac("head", digest, seq, generation, branch)', 'return mac("head", digest, seq)',
        HOSTILE + "the_line_of_history_is_under_the_seal",
    ),
    _engine(
        "code that no longer asks goes on", "perform.py",
        "if site is not None and step.guard is None and site.last(",
        "if site is None and step.guard is None and site.last(",
        HOSTILE + "code_that_no_longer_asks_for_an_approval_blocks_and_executes_nothing",
    ),
    _engine(
        "woken runs fill the window of what is due", "statements.py",
        "ON waiting.id = w.run_id AND waiting.status = 'waiting'", "ON waiting.id = w.run_id",
        HOSTILE + "woken_runs_that_nobody_can_claim_stop_no_timer",
    ),
    _engine(
        "claims are held by their run", "sweeping.py",
        "WHERE held.id = journal_run.id AND held.epoch = journal_run.epoch)", "WHERE held.id = journal_run.id)",
        HOSTILE + "a_claim_is_forgotten_by_its_epoch_not_by_its_run",
    ),
    _engine(
        "the body's frames live on", "runner.py",
        "        _clear_frames(error, leaving)\n", "",
        HOSTILE + "a_generator_that_is_left_open_does_nothing_in_another_run",
    ),
    _engine(
        "a time only rides along", "perform.py",
        "if any(rider.kind == EventKind.VALUE_DRAWN", "if any(rider.kind == EventKind.TIMER_FIRED",
        HOSTILE + "a_time_that_was_read_is_written_before_a_step_goes_outside",
    ),
    _engine(
        "the engine's own errors are the step's", "execution.py",
        '            self.unwind(Broken(f"{type(error).__name__}: {error}"))\n', "            raise\n",
        HOSTILE + "an_error_of_the_engine_s_own_write_is_not_the_step_s_error",
    ),
    _engine(
        "neighbours are blamed", "statements.py",
        "CASE WHEN is_alone AND NOT poison.found THEN", "CASE WHEN NOT poison.found THEN",
        "test_poison.py::test_a_neighbour_in_the_same_worker_is_never_blocked",
    ),
    _engine(
        "what collides is not done again", "reconnecting.py",
        "not (also_if_lost or _is_collision(error))", "not also_if_lost",
        COLLISIONS + "a_deadlock_is_nobody_s_business",
    ),
    _engine(
        "what collides is done again in the caller's transaction", "reconnecting.py",
        "if in_transaction(connection) or not", "if not",
        COLLISIONS + "a_deadlock_inside_the_caller_s_transaction_is_the_caller_s",
    ),
    _engine(
        "the recovery waits for a locked run", "statements.py",
        "AND status = 'running' FOR NO KEY UPDATE SKIP LOCKED", "AND status = 'running' FOR NO KEY UPDATE",
        "test_recovery.py::test_a_run_that_is_locked_holds_up_the_recovery_of_no_other",
    ),
    _engine(
        "a worker waits for a forgotten run that is locked", "sweeping.py",
        "    FOR NO KEY UPDATE SKIP LOCKED\n", "    FOR NO KEY UPDATE\n",
        "test_recovery.py::test_a_forgotten_run_that_is_locked_holds_up_no_other",
    ),
    _engine(
        "a goodbye is a death", "statements.py",
        "(death IS NOT NULL)::int AS died", "1 AS died",
        "test_recovery.py::test_what_a_leaving_worker_could_not_free_is_no_death",
    ),
    _engine(
        "who has said goodbye can die", "leases.py",
        "AND death IS NULL AND stopped_at IS NULL\"", "AND death IS NULL\"",
        "test_recovery.py::test_who_has_said_goodbye_does_not_die",
    ),
    _engine(
        "a sweep takes a list of then for one of now", "sweeping.py",
        "AND claimed_at < %s - interval '10 seconds'", "AND %s::timestamptz < journal_clock()",
        "test_recovery.py::test_a_list_of_what_is_held_tells_nothing_of_what_was_claimed_since",
    ),
    _engine(
        "timers wait for a locked run", "statements.py",
        "ORDER BY r.id FOR NO KEY UPDATE SKIP LOCKED", "ORDER BY r.id FOR NO KEY UPDATE",
        WAKEUPS + "a_signal_that_has_the_run_first_is_in_time_and_the_timer_passes_it_by",
    ),
    _engine(
        "the end of the time does not compare the counter", "waits.py",
        "execution.append(*opened, timed_out, inbox=count)", "execution.append(*opened, timed_out)",
        WAKEUPS + "a_signal_against_the_end_of_the_time_while_the_run_executes",
    ),
    _engine(
        "what has come already may be late", "waits.py",
        "(opened or _in_time(found, wait))", "_in_time(found, wait)",
        WAKEUPS + "what_has_come_already_is_taken_although_the_wait_is_over_before_it_begins",
    ),
    _engine(
        "the clock is taken up after the history", "loading.py",
        "            anchor=anchor,\n", "            anchor=Anchor(moment),\n",
        RACES + "the_clock_goes_on_while_a_long_history_is_read",
    ),
    _engine(
        "a worker is suspected by a session that says nothing", "leases.py",
        "AND w.is_watched AND", "AND",
        "test_leases.py::test_a_session_that_says_nothing_makes_nobody_suspect_its_worker",
    ),
    _pooler(
        "a lock is left with the pooler", "journal/worker.py",
        "self._wants_lock = self._is_watched = not is_pooled(self._session)",
        "self._wants_lock = self._is_watched = True",
        "a_worker_that_cannot_beat_is_not_suspected_by_sessions_that_the_pooler_closes",
    ),
    _pooler(
        "statements are prepared behind a pooler", "journal/poolers.py",
        " and not is_pooled(connection):", ":",
        "no_statement_is_answered_by_another_of_its_name",
    ),
    _pooler(
        "doorbells prepare statements", "config/pgmq_transport.py",
        '            kwargs={"prepare_threshold": None},\n', "",
        "a_killed_worker_s_step_begins_again_elsewhere",
    ),
]  # fmt: skip
