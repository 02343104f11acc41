"""What `make sabotage` breaks in the pages."""

from __future__ import annotations

from tests.breaks import Break


def _page(name: str, file: str, old: str, new: str, *tests: str) -> Break:
    return Break(name, file, old, new, tuple(f"tests/pages/test_{test}" for test in tests))


PAGES = [
    _page(
        "data is markup", "journal/templatetags/signoff.py",
        'return piece.text, ""', 'return SafeString(piece.text), ""',
        "inert.py::test_nothing_that_a_run_says_is_markup",
    ),
    _page(
        "hidden characters stay hidden", "journal/characters.py",
        "return not letter.isprintable() or ord(letter) in _INVISIBLE", "return False",
        "display.py::test_what_a_reader_would_not_see_is_drawn",
    ),
    _page(
        "values are shown whole", "journal/display.py",
        "INLINE_LIMIT = 4000", "INLINE_LIMIT = 40_000_000",
        "size.py::test_a_large_run_has_a_small_page",
    ),
    _page(
        "what a page cuts can be approved on it", "approvals/extent.py",
        "    if length > WHOLE_LIMIT:\n        return False\n", "    if length > 0:\n        return True\n",
        "shown_whole.py::test_beyond_it_the_browser_can_only_reject",
    ),
    _page(
        "times have no zone", "journal/times.py",
        ' + " UTC"', "",
        "display.py::test_times_name_their_zone_and_day",
    ),
    _page(
        "next leads anywhere", "journal/signing_in.py",
        'return address if allowed else ""', "return address",
        "signing_in.py::test_next_never_leads_elsewhere",
    ),
    _page(
        "what htmx names is believed", "journal/signing_in.py",
        "if (parts.scheme, parts.netloc) != (request.scheme, request.get_host()):", "if not parts.path:",
        "signing_in.py::test_a_stale_token_brings_a_page_that_says_what_to_do",
    ),
    _page(
        "a poll gets the sign-in page in its place", "journal/signing_in.py",
        "        return HttpResponseClientRedirect(address)\n    return HttpResponseRedirect(address)",
        "        pass\n    return HttpResponseRedirect(address)",
        "signing_in.py::test_a_poll_without_a_session_brings_the_whole_sign_in_page",
    ),
    _page(
        "a stale token gets Django's page", "config/settings.py",
        'CSRF_FAILURE_VIEW = "approvals.sign_in.csrf_failure"', "",
        "signing_in.py::test_a_stale_token_brings_a_page_that_says_what_to_do",
    ),
    _page(
        "a link signs out", "approvals/sign_in.py",
        "@require_POST\n", "",
        "signing_in.py::test_signing_out_is_a_post_and_leads_nowhere_else",
    ),
    _page(
        "a lost race is answered as if it were won", "approvals/views.py",
        "        return _refused(request, found, place, refusal, form)",
        "        return _shown_again(request, found, place)",
        "deciding.py::test_a_lost_race_shows_the_decision_that_won",
        "deciding.py::test_twenty_posts_at_once_make_one_decision",
    ),
    _page(
        "what was typed is lost", "templates/approvals/_decision.html",
        "{{ form.reason.value|default_if_none:'' }}</textarea>", "</textarea>",
        "deciding.py::test_a_refused_form_keeps_what_was_typed",
    ),
    _page(
        "a critical action takes one click", "approvals/views.py",
        "if act is APPROVE and card and card.is_critical and", "if False and card and card.is_critical and",
        "deciding.py::test_a_critical_action_asks_for_its_name_and_a_reason",
    ),
    _page(
        "strangers see every run", "journal/access.py",
        "return Run.objects.filter(mine)", "return Run.objects.all()",
        "access.py::test_a_stranger_sees_that_it_is_not_theirs_and_nothing_else",
    ),
    _page(
        "pages overlap", "journal/run_list.py",
        '"id__lt": run_id', '"id__lte": run_id',
        "size.py::test_pages_of_runs_neither_repeat_nor_skip",
    ),
    _page(
        "each poll reads everything", "journal/views.py",
        'if request.GET.get("seen") == _digest(run_page.version_of(found)):', "if False:",
        "size.py::test_a_poll_that_finds_nothing_reads_little",
    ),
    _page(
        "another revision can be decided", "approvals/views.py",
        'request.GET.get("revision") != str(context["approval"].revision)', "False",
        "deciding.py::test_a_page_that_shows_another_revision_cannot_decide",
    ),
]  # fmt: skip
