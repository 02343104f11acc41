"""Pages of approvals: the inbox, one request, and the two forms that decide. Only a POST to these decides."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import reswap, retarget, trigger_client_event

from approvals import inbox, queries
from approvals.cards import Card, card_of, decided_words, version_of
from approvals.decisions import Outcome, decide
from approvals.errors import Refusal
from approvals.forms import DecisionForm
from approvals.models import Approval
from approvals.refusals import CORRECTABLE, status_of
from approvals.states import Choice, Via
from journal.ids import parse_id
from journal.signing_in import signed_in

NOTHING_NEW = 204


def _wants_part(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-Boosted") != "true"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---------------------------------------------------------------- lists


@require_safe
@never_cache
@signed_in
def inbox_page(request: HttpRequest) -> HttpResponseBase:
    """What waits, and beside it (where there is room) the first of it."""
    context = _inbox_context(request)
    first = context["page"].rows[0].id if context["page"].rows else ""
    found = queries.find(request.user, first) if first else None
    detail = _card_context(request, found, place="inbox", page=context["page"]) if found else {}
    return render(request, "approvals/inbox.html", {**context, **detail, "chosen": False, "selected": first})


@require_safe
@never_cache
@signed_in
def inbox_item(request: HttpRequest, approval_id: str) -> HttpResponseBase:
    """One request beside the list; where there is no room for both, alone."""
    found = queries.find(request.user, parse_id(approval_id))
    if found is None:
        return _no_approval(request, approval_id)
    if _wants_part(request):
        context = _card_context(request, found, place="inbox") | {"chosen": True, "is_part": True}
        return render(request, "approvals/_detail.html", context)
    context = _inbox_context(request)
    detail = _card_context(request, found, place="inbox", page=context["page"])
    return render(request, "approvals/inbox.html", {**context, **detail, "chosen": True, "selected": found.id})


@require_safe
@never_cache
@signed_in
def inbox_live(request: HttpRequest) -> HttpResponseBase:
    """The list's fragment, if it has changed since `seen`."""
    context = _inbox_context(request)
    if request.GET.get("seen") == context["list_version"]:
        return HttpResponse(status=NOTHING_NEW)
    return render(request, "approvals/_list.html", {**context, "selected": request.GET.get("selected", "")})


def _scope(request: HttpRequest) -> str:
    return "all" if request.GET.get("scope") == "all" else "mine"


def _inbox_context(request: HttpRequest) -> dict[str, Any]:
    scope = _scope(request)
    page = inbox.waiting_page(inbox.waiting_list(request.user, scope), request.GET.get("after", ""))
    counts = inbox.count_words(queries.counts(request.user))
    version = _digest(f"{page.version} {counts}")
    return {"section": "inbox", "scope": scope, "page": page, "waiting_counts": counts, "list_version": version}


@require_safe
@never_cache
@signed_in
def decided(request: HttpRequest) -> HttpResponseBase:
    """What was decided, by whomever, the latest first."""
    page = inbox.decided_page(queries.decided(request.user), request.GET.get("after", ""))
    return render(request, "approvals/decided.html", {"section": "inbox", "page": page})


# ---------------------------------------------------------------- one request


@require_safe
@never_cache
@signed_in
def approval(request: HttpRequest, approval_id: str) -> HttpResponseBase:
    """One request with everything that is known about it."""
    if parse_id(approval_id) != approval_id:
        return redirect("approval", parse_id(approval_id))
    found = queries.find(request.user, approval_id)
    if found is None:
        return _no_approval(request, approval_id)
    return render(request, "approvals/approval.html", _card_context(request, found, place="page"))


@require_safe
@never_cache
@signed_in
def approval_live(request: HttpRequest, approval_id: str) -> HttpResponseBase:
    """What can change on the page of a request, if it has changed since `seen`: one row is read to know."""
    found = queries.find(request.user, approval_id)
    if found is None:
        return HttpResponse(status=NOTHING_NEW)
    if request.GET.get("seen") == version_of(found):
        return HttpResponse(status=NOTHING_NEW)
    place = "inbox" if request.GET.get("place") == "inbox" else "page"
    context = _card_context(request, found, place=place)
    # What stands on the page is another revision's: nothing can be decided until the current one was looked at.
    context["new_revision"] = request.GET.get("revision") != str(context["approval"].revision)
    return render(request, "approvals/_live.html", context)


@require_safe
@never_cache
@signed_in
def approval_arguments(request: HttpRequest, approval_id: str, number: int) -> HttpResponseBase:
    """The stored arguments of a revision, byte for byte, as a file."""
    found = queries.find(request.user, approval_id)
    revision = found and found.revisions.filter(number=number).only("args").first()
    if not revision:
        return _no_approval(request, approval_id)
    return HttpResponse(
        revision.args.encode("ascii"),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{approval_id}-revision-{number}.json"'},
    )


def _no_approval(request: HttpRequest, approval_id: str) -> HttpResponse:
    """403 for a request that exists but is not this person's to see, 404 for one that does not."""
    exists = Approval.objects.filter(pk=parse_id(approval_id)).exists()
    context = {"section": "inbox", "approval_id": approval_id, "exists": exists}
    template = "approvals/_no_approval.html" if _wants_part(request) else "approvals/no_approval.html"
    return render(request, template, context, status=403 if exists else 404)


def _card_context(
    request: HttpRequest, found: Approval, *, place: str, page: inbox.Page | None = None
) -> dict[str, Any]:
    scope = _scope(request)
    if page is None:
        page = inbox.waiting_page(inbox.waiting_list(request.user, scope), "")
    number, before, after = page.neighbours(found.id)
    detail = queries.detail(request.user, found)
    approval = detail.approval  # as it is in the record: `found` was read before it
    card = card_of(detail, request.user)
    return {
        "section": "inbox",
        "scope": scope,
        "approval": approval,
        "card": card,
        "place": place,
        "number": number,
        "of": len(page.rows),
        "more_than": bool(page.older),
        "before": before,
        "after": after,
        "frozen_says": "" if card is None or card.is_open else decided_words(approval, request.user),
        "as_json": request.GET.get("view") == "json",
    }


# ---------------------------------------------------------------- deciding


@dataclass(frozen=True)
class _Act:
    """One of the two things that can be said, as the form puts it."""

    choice: Choice
    url: str
    done: str


APPROVE = _Act(Choice.APPROVE, "approve", "Approved.")
REJECT = _Act(Choice.REJECT, "reject", "Rejected.")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@signed_in
def approve(request: HttpRequest, approval_id: str) -> HttpResponseBase:
    """The form that approves. GET shows it; POST decides."""
    return _decide(request, approval_id, APPROVE)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@signed_in
def reject(request: HttpRequest, approval_id: str) -> HttpResponseBase:
    """The form that rejects, with the reason. GET shows it; POST decides."""
    return _decide(request, approval_id, REJECT)


def _decide(request: HttpRequest, approval_id: str, act: _Act) -> HttpResponseBase:
    found = queries.find(request.user, approval_id)
    if found is None:
        _try_unseen(request, approval_id, act)
        return _no_approval(request, approval_id)
    place = "inbox" if request.POST.get("place", request.GET.get("place")) == "inbox" else "page"
    context = {**_card_context(request, found, place=place), "act": act}
    if request.method != "POST":
        return _form(request, context, DecisionForm())
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return _form(request, context, form, problem="This form is not complete; open the request again.", status=400)
    card: Card | None = context["card"]
    if act is APPROVE and card and card.is_critical and form.cleaned_data["confirmation"] != found.action:
        return _form(request, context, form, problem=f"Type {found.action} to approve.", status=422)
    try:
        outcome = _say(request, found.id, act, form)
    except CORRECTABLE as refusal:
        return _form(request, context, form, problem=str(refusal), status=status_of(refusal))
    except Refusal as refusal:
        return _refused(request, found, place, refusal, form)
    messages.success(request, str(outcome) if outcome.is_repeated else act.done)
    return _shown_again(request, found, place)


def _try_unseen(request: HttpRequest, approval_id: str, act: _Act) -> None:
    """Somebody whom the request does not concern sent the form: refused where all are, which keeps that they tried."""
    form = DecisionForm(request.POST)
    if request.method == "POST" and form.is_valid():
        with suppress(Refusal):
            _say(request, approval_id, act, form)


def _say(request: HttpRequest, approval_id: str, act: _Act, form: DecisionForm) -> Outcome:
    return decide(
        approval_id,
        revision=form.cleaned_data["revision"],
        digest=form.cleaned_data["digest"],
        actor=request.user,
        verdict=act.choice,
        reason=form.cleaned_data["reason"],
        via=Via.BROWSER,
        authenticated_by="password",
    )


def _form(
    request: HttpRequest, context: dict[str, Any], form: DecisionForm, *, problem: str = "", status: int = 200
) -> HttpResponse:
    """The form, with what was typed: in the dialog, or as a page."""
    context = {**context, "form": form, "problem": problem}
    if not _wants_part(request):
        return render(request, "approvals/decision.html", context, status=status)
    answer = render(request, "approvals/_decision.html", {**context, "in_dialog": True}, status=status)
    return reswap(retarget(answer, "#dialog-content"), "innerHTML")


def _refused(request: HttpRequest, found: Approval, place: str, refusal: Refusal, form: DecisionForm) -> HttpResponse:
    """The request as it is now, with why the decision was not recorded, and with what was typed."""
    fresh = queries.find(request.user, found.id)
    if fresh is None:
        return _no_approval(request, found.id)
    context = _card_context(request, fresh, place=place)
    context |= {"refusal": str(refusal), "unsent": form.cleaned_data["reason"]}
    status = status_of(refusal)
    if _wants_part(request):
        answer = render(request, "approvals/_sheet_swap.html", context, status=status)
        return trigger_client_event(answer, "signoff:decided", {})
    return render(request, "approvals/approval.html", {**context, "place": "page"}, status=status)


def _shown_again(request: HttpRequest, found: Approval, place: str) -> HttpResponse:
    """Back to the page that the form was on."""
    if not _wants_part(request):
        return redirect(reverse("inbox_item" if place == "inbox" else "approval", args=[found.id]))
    fresh = queries.find(request.user, found.id) or found
    answer = render(request, "approvals/_sheet_swap.html", _card_context(request, fresh, place=place))
    return trigger_client_event(answer, "signoff:decided", {})
