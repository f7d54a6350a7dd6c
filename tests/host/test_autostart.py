"""What starts with a session: the file that desktops read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from svcq.host.linux_autostart import (
    add_to_session,
    desktop_file,
    is_in_session,
    remove_from_session,
)


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_it_is_written_and_removed(config: Path) -> None:
    assert not is_in_session()
    file = add_to_session(["/opt/python", "-m", "svcq_tray"], "/home/ada/queue")
    assert file == config / "autostart" / "svcq-tray.desktop"
    assert is_in_session()
    assert remove_from_session() == file
    assert not is_in_session()
    assert remove_from_session() is None


@pytest.mark.parametrize("home", ["/home/a b", '/x"y', "/x$y`z\\w", "/per%cent"])
def test_any_place_is_quoted_as_the_standard_says(home: str) -> None:
    add_to_session(["python3", "-m", "svcq_tray"], home)
    (line,) = [x for x in desktop_file().read_text().splitlines() if x.startswith("Exec=")]
    # First the escapes of a value, then %% and the quoting of a shell.
    value = line.removeprefix("Exec=").replace("\\\\", "\\").replace("%%", "%")
    said = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {value}"], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == ["env", f"SVCQ_HOME={home}", "python3", "-m", "svcq_tray"]


def test_a_file_of_others_stays(config: Path) -> None:
    (config / "autostart").mkdir()
    desktop_file().write_text("[Desktop Entry]\nExec=other\n")
    assert add_to_session(["python3"], "/h") is None
    assert remove_from_session() is None
    assert desktop_file().read_text() == "[Desktop Entry]\nExec=other\n"
