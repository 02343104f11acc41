"""Refusals as answers of the web: one table."""

from __future__ import annotations

from approvals import errors

STATUS: dict[type[errors.Refusal], int] = {
    errors.UnknownApproval: 404,
    errors.UnknownChoice: 400,
    errors.NotPermitted: 403,
    errors.AlreadyDecided: 409,
    errors.Superseded: 409,
    errors.Altered: 409,
    errors.DeadlinePassed: 410,
    errors.Withdrawn: 410,
    errors.ReasonRequired: 422,
    errors.ReasonTooLong: 422,
    errors.NotShown: 422,
}
"""The sentence is the refusal's own text."""

CORRECTABLE = (errors.ReasonRequired, errors.ReasonTooLong)
"""The form is shown again, for the person to mend it."""


def status_of(refusal: errors.Refusal) -> int:
    return STATUS.get(type(refusal), 400)
