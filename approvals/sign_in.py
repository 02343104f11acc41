"""Signing in and out, and the page for a form that came too late to be believed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from django_htmx.http import reswap, retarget

from journal.signing_in import page_of, safe_path

LOST = "You were signed out when your decision was sent, so nothing was recorded. Look again, then decide."


class SignIn(LoginView):
    """The sign-in form. `next` leads to a path on this host, whatever it says, or to the inbox."""

    template_name = "sign_in.html"
    redirect_authenticated_user = True

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        """The path that `next` names, if it is one of this host."""
        wanted = self.request.POST.get("next", self.request.GET.get("next", ""))
        return safe_path(self.request, wanted)

    def get_default_redirect_url(self) -> str:
        return reverse("inbox")

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        if self.request.POST.get("lost"):
            messages.warning(self.request, LOST)
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        lost = self.request.GET.get("lost") or self.request.POST.get("lost")
        return {**super().get_context_data(**kwargs), "next": self.get_redirect_url(), "lost": bool(lost)}


@require_POST
@never_cache
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends the session."""
    logout(request)
    return redirect("login")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form's token is not the session's: usually somebody signed in or out in another tab.

    A page of its own, also where htmx asked for a part, with what was typed."""
    context = {"page": page_of(request) or reverse("inbox"), "reason": request.POST.get("reason", "")[:10_000]}
    answer = render(request, "stale.html", context, status=403)
    if request.headers.get("HX-Request") == "true":
        return reswap(retarget(answer, "body"), "innerHTML")
    return answer
