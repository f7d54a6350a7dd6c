"""Which programs may be a service of the whole machine: none that someone else could replace."""

from __future__ import annotations

from pathlib import Path

import pytest

from svcq.errors import Refused
from svcq.host.linux_program import _check_administrators_alone, _steps_to, check_program


def test_every_link_on_the_way_is_seen(tmp_path: Path) -> None:
    (tmp_path / "real" / "bin").mkdir(parents=True)
    (tmp_path / "real" / "bin" / "python3").touch()
    (tmp_path / "between").symlink_to("real")
    (tmp_path / "python").symlink_to("between/bin/../bin/python3")
    (tmp_path / "alias").symlink_to(tmp_path / "python")
    steps = [Path(step) for step in _steps_to(str(tmp_path / "alias"))]
    for name in ("alias", "python", "between", "real", "real/bin", "real/bin/python3"):
        assert tmp_path / name in steps, name
    assert steps[0] == Path("/")
    assert steps[-1] == tmp_path / "real" / "bin" / "python3"


def test_a_folder_for_everybody_is_no_place_for_it(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (open_to_all / "python").touch()
    with pytest.raises(Refused, match="cannot be run as a service of the whole machine"):
        _check_administrators_alone(str(open_to_all / "python"))


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o700)
    with pytest.raises(Refused):
        check_program(str(program))
