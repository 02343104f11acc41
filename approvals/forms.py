"""What the browser sends to decide: which revision was seen, and a reason."""

from __future__ import annotations

from django import forms


class DecisionForm(forms.Form):
    """`decide` checks what it means; this only reads it."""

    revision = forms.IntegerField(min_value=1)
    digest = forms.RegexField(r"^[0-9a-f]{64}$")
    reason = forms.CharField(required=False, strip=True)
    confirmation = forms.CharField(required=False, strip=True, max_length=500)
