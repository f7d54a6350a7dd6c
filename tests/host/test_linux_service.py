"""The text of units, and what is told where there is no systemd."""

from __future__ import annotations

from pathlib import Path

import pytest

from svcq.errors import Refused
from svcq.host import linux_service as service


def test_words_of_a_unit_are_taken_as_they_are() -> None:
    text = service.unit_text(
        ["/opt/my python/$bin/python", "-m", "svcq"],
        {"SVCQ_HOME": '/home/50% "off"\\$x', "PATH": "/bin"},
    )
    assert 'ExecStart="/opt/my python/$$bin/python" "-m" "svcq"\n' in text
    assert r'Environment="SVCQ_HOME=/home/50%% \"off\"\\$x"' in text
    assert 'Environment="PATH=/bin"' in text


def test_a_line_break_in_a_path_is_refused() -> None:
    with pytest.raises(Refused, match="control character"):
        service.unit_text(["/opt/python\nExecStartPre=/bin/rm"], {})


def test_where_there_is_no_systemd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(Refused, match=r"no systemd on this machine .* use svcq up"):
        service.install(["svcq"], {})
    assert not service.unit_file().exists()
    assert service.standing() == service.Standing(installed=False, running=False)
    assert service.start_worker(["true"], {}, tmp_path / "log", 1) is None
    service.notify("READY=1")  # nobody listens


def test_commands_say_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for verb in (service.start, service.stop, service.restart):
        with pytest.raises(Refused, match="run svcq install, or svcq up"):
            verb()
