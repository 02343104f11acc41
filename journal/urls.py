"""Addresses of run pages."""

from __future__ import annotations

from django.urls import path, re_path

from journal import views

urlpatterns = [
    path("runs/", views.runs, name="runs"),
    path("runs/live", views.runs_live, name="runs_live"),
    path("runs/<str:run_id>/", views.run, name="run"),
    path("runs/<str:run_id>/live", views.run_live, name="run_live"),
    re_path(
        r"^runs/(?P<run_id>[^/]+)/events/(?P<seq>[0-9]{1,9})/(?P<part>args|data)\.json$",
        views.event_body,
        name="event_body",
    ),
]
