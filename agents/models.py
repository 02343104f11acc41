"""The agents app's tables."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class LedgerRefund(models.Model):
    """A refund in the example's ledger, which plays the outside world: one row per idempotency key.

    Written by agents.examples.ledger only. `calls` counts every call that brought the key.
    """

    key = models.TextField(unique=True, db_collation="C")
    invoice = models.TextField()
    amount = models.DecimalField(max_digits=24, decimal_places=3)
    calls = models.IntegerField(default=1)
    first_call_at = models.DateTimeField(db_default=Now())
    last_call_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=~Q(key=""), name="ledger_refund_has_a_key"),
            models.CheckConstraint(condition=Q(amount__gte=0), name="ledger_refund_pays_out"),
            models.CheckConstraint(condition=Q(calls__gte=1), name="ledger_refund_was_called"),
        ]

    def __str__(self) -> str:
        return f"{self.invoice} {self.amount}"
