"""What `make sabotage` breaks in the verdict and in what a decision is worth."""

from __future__ import annotations

from tests.breaks import Break


def _approval(name: str, file: str, old: str, new: str, *tests: str) -> Break:
    return Break(name, file, old, new, tuple(f"tests/approvals/test_{test}" for test in tests))


APPROVALS = [
    _approval(
        "the deadline is compared with the transaction's time", "approvals/record.py",
        'Func(function="journal_clock", output', 'Func(function="transaction_timestamp", output',
        "races.py::test_a_decision_that_waited_past_the_deadline_is_late",
    ),
    _approval(
        "an approval is not used up", "approvals/guard.py",
        "    if use:\n", "    if not use:\n",
        "guard.py::test_a_request_waits_and_an_approval_runs_the_step_once",
    ),
    _approval(
        "a used approval is granted again", "approvals/guard.py",
        "    if approval.used_at or approval.void_reason:\n        raise Tampered(",
        "    if approval.void_reason:\n        raise Tampered(",
        "guard.py::test_an_approval_is_for_its_own_call_and_once",
    ),
    _approval(
        "an approval is good for any call", "approvals/guard.py",
        "    if mine != (call.run.pk,", "    if () == (call.run.pk,",
        "guard.py::test_an_approval_is_for_its_own_call_and_once",
    ),
    _approval(
        "the digest is not compared", "approvals/decisions.py",
        "if said.revision != current.number or said.digest != bytes(current.digest).hex():",
        "if said.revision != current.number:",
        "decisions.py::test_only_what_was_seen_is_decided",
    ),
    _approval(
        "the run's events are not held against the record", "approvals/verifying.py",
        "*against_history(run, found, own), ", "",
        "put_back.py::test_a_used_approval_put_back_to_unused_is_found",
    ),
    _approval(
        "the run's messages are not counted", "approvals/verifying.py",
        ", *against_messages(run, found, own)]", "]",
        "put_back.py::test_a_rejection_put_back_before_the_run_looked_is_found",
    ),
    _approval(
        "an unknown party bars nobody", "approvals/verdicts.py",
        "        if not involved.is_known:\n", "        if involved is None:\n",
        "decisions.py::test_four_eyes_fails_closed_when_the_starter_is_not_known",
    ),
    _approval(
        "four eyes are two", "approvals/verdicts.py",
        "        if involved.person == person.id:\n", "        if involved.person == -person.id:\n",
        "decisions.py::test_who_may_not_decide_is_told_why_and_it_is_kept",
    ),
    _approval(
        "anybody is in the group", "approvals/verdicts.py",
        "    if group not in person.groups:\n", "    if not group:\n",
        "decisions.py::test_who_may_not_decide_is_told_why_and_it_is_kept",
    ),
    _approval(
        "the deadline approves", "approvals/verdicts.py",
        "        return Status.EXPIRED\n", "        return Status.APPROVED\n",
        "verdicts.py",
    ),
    _approval(
        "a rule passes what it cannot read", "approvals/asking.py",
        '        log.info("the rule %r leaves it to a person: %s", rule, doubt, extra={"action": "rule_unclear"})\n',
        "        return True\n",
        "guard.py::test_what_no_rule_lets_pass_waits_for_a_person",
    ),
    _approval(
        "what is open when the run ends stays open", "approvals/closing.py",
        "        if record is None:\n            continue\n", "        if record is not None:\n            continue\n",
        "guard.py::test_what_was_open_when_the_run_ended_is_withdrawn",
    ),
    _approval(
        "the same is asked again after a no", "approvals/asking.py",
        "    if earlier is None:\n        return False\n", "    if True:\n        return False\n",
        "guard.py::test_after_a_no_the_same_is_not_asked_again_in_that_run",
    ),
    _approval(
        "an altered request is shown and decided", "approvals/record.py",
        "    if findings:\n        log.error(", "    if findings is None:\n        log.error(",
        "altered.py::test_a_request_that_was_altered_is_found_blocks_its_run_and_is_not_decided",
    ),
    _approval(
        "a decision wakes nobody", "approvals/decisions.py",
        "        wake(approval)\n    record.save()\n", "        pass\n    record.save()\n",
        "guard.py::test_a_request_waits_and_an_approval_runs_the_step_once",
    ),
    _approval(
        "deciding inside a transaction is let through", "approvals/decisions.py",
        "    if in_transaction(connection):\n", "    if connection.vendor == '':\n",
        "decisions.py::test_deciding_inside_a_transaction_is_refused",
    ),
    _approval(
        "a decision whose session is lost is lost too", "approvals/decisions.py",
        "also_if_lost=True", "also_if_lost=False",
        "races.py::test_a_session_that_is_cut_off_in_the_middle_loses_no_decision",
    ),
    _approval(
        "decide locks the approval before the run", "approvals/decisions.py",
        "            lock_run(found)\n            record = lock(approval_id)\n",
        "            record = lock(approval_id)\n            lock_run(found)\n",
        "storm.py",
    ),
    _approval(
        "a late decision is none of its own business", "approvals/decisions.py",
        "    if record.is_overdue:\n", "    if record.now is None:\n",
        "deadline_race.py::test_a_decision_that_waits_over_the_deadline_is_late_and_says_so_itself",
    ),
    _approval(
        "a deadline waits for the run's lock", "journal/locking.py",
        "_locked(run_id, skip_locked=True)", "_locked(run_id)",
        "deadline_race.py::test_a_decision_that_has_the_lock_at_the_deadline_stands",
    ),
    _approval(
        "locked runs hide the deadlines after them", "journal/sweeping.py",
        "FOR NO KEY UPDATE OF r SKIP LOCKED", "FOR NO KEY UPDATE OF r",
        "deadline_race.py::test_a_decision_that_has_the_lock_at_the_deadline_stands",
    ),
    _approval(
        "the deadline wakes nobody", "approvals/deadlines.py",
        "            wake(record.approval)\n", "",
        "deadline_race.py::test_a_decision_that_waits_while_the_end_is_entered_is_late",
    ),
]  # fmt: skip
