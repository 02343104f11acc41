"""Addresses of the inbox, of requests, and of signing in."""

from __future__ import annotations

from django.urls import path

from approvals import sign_in, views

urlpatterns = [
    path("", views.inbox_page, name="inbox"),
    path("inbox/live", views.inbox_live, name="inbox_live"),
    path("inbox/<str:approval_id>/", views.inbox_item, name="inbox_item"),
    path("decided/", views.decided, name="decided"),
    path("approvals/<str:approval_id>/", views.approval, name="approval"),
    path("approvals/<str:approval_id>/live", views.approval_live, name="approval_live"),
    path("approvals/<str:approval_id>/approve", views.approve, name="approve"),
    path("approvals/<str:approval_id>/reject", views.reject, name="reject"),
    path("approvals/<str:approval_id>/<int:number>.json", views.approval_arguments, name="approval_arguments"),
    path("sign-in/", sign_in.SignIn.as_view(), name="login"),
    path("sign-out/", sign_in.sign_out, name="logout"),
]
