"""The tray is a client of the service: what it may import, and where it asks about the system."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_layers import ROOT, imports, layer_of, platform_tests

FILES = sorted((ROOT / "tray").glob("*.py"))
# Nothing that opens a store, runs jobs or serves.
MAY = {
    "__init__", "version", "errors", "times", "when", "states", "jobs", "schedules", "conditions",
    "ends", "host", "config", "door", "client", "cli",
}  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_imports_the_client_and_no_more(file: Path) -> None:
    found = {layer_of(name) for name in imports(file.relative_to(ROOT), file.read_text())}
    assert found <= MAY
    assert "cli" not in found or file.name == "__main__.py"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_desktop_is_chosen_in_one_place(file: Path) -> None:
    text = file.read_text()
    if file.name != "desktop.py":
        assert platform_tests(text) == []
    if not file.name.startswith(("linux_", "desktop")):
        assert "linux_" not in text
