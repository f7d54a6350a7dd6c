"""A real browser on the page of a real service with real jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.reader import Reader
from tests.lifecycle.homes import Home

SETTINGS = """
[jobs]
grace = "500ms"
backoff = "fixed"
backoff_base = 0.05
max_attempts = 1

[workers]
slots = 3
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for each file: while there is one, its loop runs, and no other can in this process."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home with `svcq up` on it."""
    home = Home(tmp_path, SETTINGS)
    home.start("up")
    yield home
    home.close()


WAYS: dict[str, dict[str, object]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def reader(request: pytest.FixtureRequest, browser: Browser, home: Home) -> Iterator[Reader]:
    """Someone who has opened the page in one of these ways; a message on the console, and a view
    that is wider than the screen, fail the test."""
    reader = Reader(browser, home, **request.param)
    yield reader
    reader.close()


@pytest.fixture
def desk(browser: Browser, home: Home) -> Iterator[Reader]:
    """The same on a large screen, for what only that shows."""
    reader = Reader(browser, home)
    yield reader
    reader.close()
