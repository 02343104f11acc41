"""Pages of runs: the list, one run, one step, and the download of a stored value. Nothing here changes anything."""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from journal import run_list, run_page, timeline
from journal.access import visible
from journal.ids import parse_id
from journal.marks import blockage
from journal.models import Run
from journal.signing_in import signed_in
from journal.states import RunStatus

NOTHING_NEW = 204
"""Answers a poll when the page already shows everything: nothing is swapped, focus and place stay."""


@require_safe
@never_cache
@signed_in
def runs(request: HttpRequest) -> HttpResponse:
    """The list of runs, newest first."""
    return render(request, "journal/runs.html", _list_context(request))


@require_safe
@never_cache
@signed_in
def runs_live(request: HttpRequest) -> HttpResponse:
    """The list's fragment, if it has changed since `seen`; for `part=nav` the navigation, with today's counts."""
    if request.GET.get("part") == "nav":
        return render(request, "parts/nav.html")
    context = _list_context(request)
    if request.GET.get("seen") == context["version"]:
        return HttpResponse(status=NOTHING_NEW)
    return render(request, "journal/_runs.html", context)


def _list_context(request: HttpRequest) -> dict[str, Any]:
    seen = visible(request.user)
    tab = run_list.tab_named(request.GET.get("tab", ""))
    page = run_list.page_of(seen, tab, request.GET.get("after", ""))
    counts = run_list.counts(seen)
    version = _digest(page.version + str(counts))
    tabs = [(each, counts.get(each.slug, "")) for each in run_list.TABS]
    return {"section": "runs", "page": page, "tabs": tabs, "version": version}


@require_safe
@never_cache
@signed_in
def run(request: HttpRequest, run_id: str) -> HttpResponse:
    """One run."""
    if parse_id(run_id) != run_id:
        return redirect("run", parse_id(run_id))
    found, refusal = _find(request, run_id)
    if found is None:
        return refusal
    return render(request, "journal/run.html", _run_context(request, found))


@require_safe
@never_cache
@signed_in
def run_live(request: HttpRequest, run_id: str) -> HttpResponse:
    """The run's fragment, if it has changed since `seen`: one row is read to know."""
    found, refusal = _find(request, run_id)
    if found is None:
        return refusal
    if request.GET.get("seen") == _digest(run_page.version_of(found)):
        return HttpResponse(status=NOTHING_NEW)
    return render(request, "journal/_run.html", _run_context(request, found))


@require_safe
@never_cache
@signed_in
def event_body(request: HttpRequest, run_id: str, seq: int, part: str) -> HttpResponseBase:
    """The whole of a stored value, as a file."""
    found, refusal = _find(request, run_id)
    if found is None:
        return refusal
    body = run_page.stored_body(found, seq, part)
    if body is None:
        raise Http404
    return HttpResponse(
        body.encode("ascii"),
        content_type="application/json",
        headers={
            "Content-Disposition": f'attachment; filename="{found.id}-{seq}-{part}.json"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _find(request: HttpRequest, run_id: str) -> tuple[Run | None, HttpResponse]:
    """The run if this user may see it; else the answer that says why not."""
    found = visible(request.user).filter(pk=run_id).first()
    if found is not None:
        return found, HttpResponse()
    hidden = Run.objects.filter(pk=run_id).only("owner").first()
    context = {
        "section": "runs",
        "run_id": run_id,
        "owner": hidden.owner if hidden else "",
        "exists": hidden is not None,
    }
    return None, render(request, "journal/no_run.html", context, status=403 if hidden else 404)


def _run_context(request: HttpRequest, found: Run) -> dict[str, Any]:
    now = timezone.now()
    waits = run_page.open_waits(found)
    answers = run_page.answers(found, now)
    before = _number(request.GET.get("before"))
    path = request.GET.get("step", "")[:80]
    events, older = run_page.events_page(found, before)
    pane = run_page.step_pane(found, path, is_answered=path in answers) if path else None
    stored_input, result = run_page.run_bodies(found) if pane is None else (None, None)
    return {
        "section": "runs",
        "run": found,
        "title": run_page.title_of(found),
        "mark": run_page.mark_of(found, waits),
        "waits": waits,
        "no_worker": run_page.no_worker(found),
        "events": events,
        "older": older,
        "before": before,
        "pane": pane,
        "path": path if pane else "",
        "input": stored_input,
        "result": result,
        "timeline": timeline.timeline_of(found, now, answers),
        "is_ended": run_page.is_ended(found),
        "blockage": blockage(found.blocked or {}) if found.status == RunStatus.BLOCKED else None,
        "is_failed": found.status == RunStatus.FAILED,
        "version": _digest(run_page.version_of(found)),
        "runs_url": reverse("runs"),
    }


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
