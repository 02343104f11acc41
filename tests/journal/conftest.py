from __future__ import annotations

from collections.abc import Iterator

import pytest

from journal import registry


@pytest.fixture(autouse=True)
def _names_of_one_test() -> Iterator[None]:
    """Workflows and steps that a test defines are forgotten after it."""
    with registry.isolated():
        yield
