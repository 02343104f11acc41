"""The shop of tests/approvals, seen through pages; and the real service, seen through a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser

from config.home import BASE_DIR
from journal import registry
from tests.approvals.scene import Scene, make_scene
from tests.databases import DatabaseServer
from tests.harness import Service
from tests.pages.site import Site
from tests.waiting import wait_for

FILES = BASE_DIR / "agents" / "examples" / "demo"
POLICIES = Path(__file__).with_name("policies.toml")


@pytest.fixture
def scene(transactional_db: None, settings: Any) -> Iterator[Scene]:
    """Deciding owns its transaction, so the tests' own must not be around it."""
    settings.SIGNOFF_POLICIES = POLICIES
    with registry.isolated():
        yield make_scene()


@pytest.fixture
def as_user(scene: Scene) -> Callable[[str], Client]:
    """A client that is signed in as the person of that name."""

    def signed_in(name: str) -> Client:
        client = Client()
        client.force_login(scene.user(name))
        return client

    return signed_in


@pytest.fixture(scope="module")
def running(database_server: DatabaseServer, browser: Browser) -> Iterator[Site]:
    """Web, a worker, people, and the demo's returns up to their approvals: one for all tests of a module."""
    service = Service(database_server)
    added = service.manage("shell", "--no-imports", "--command", Site.ADD_PEOPLE)
    assert added.code == 0, added.err
    service.start_worker()
    web = service.start_web()
    files = json.dumps({"returns": str(FILES / "returns.csv"), "orders": str(FILES / "orders.csv")})
    service.json("start_run", "returns_batch", "--input", files, "--as", "clerk")
    made = Site(service, web, browser)
    wait_for(made.is_settled, timeout=30, what="the demo's runs wait or have ended")
    yield made
    service.close()
    shutil.rmtree(service.folder, ignore_errors=True)


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    """The running service with a fresh browser; what a test decides stays decided for the next."""
    yield running
    running.close()
