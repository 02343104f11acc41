"""The scene of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from journal import registry
from tests.approvals.scene import Scene, make_scene


@pytest.fixture
def scene(transactional_db: None, settings: Any) -> Iterator[Scene]:
    settings.SIGNOFF_POLICIES = Path(__file__).with_name("policies.toml")
    with registry.isolated():
        yield make_scene()
