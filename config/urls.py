"""All addresses: pages of approvals (the inbox at /) and of runs (/runs/)."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("", include("approvals.urls")),
    path("", include("journal.urls")),
]
