from __future__ import annotations

from collections.abc import Iterator

import pytest

from journal import registry
from journal.steps import Step
from journal.workflows import Workflow


@pytest.fixture(autouse=True)
def _names_of_one_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test knows the workflows and steps of its own module, and no others."""
    with registry.isolated():
        for value in vars(request.module).values():
            if isinstance(value, Workflow):
                registry.add_workflow(value)
            elif isinstance(value, Step):
                registry.add_step(value)
        yield
