"""What a user installs holds everything the program reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_wheel_holds_every_file_of_both_packages(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("svcq-*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert files_of("svcq", "svcq") | files_of("tray", "svcq_tray") <= inside
    assert not [name for name in inside if name.startswith(("tests/", "tray/"))]


def files_of(folder: str, package: str) -> set[str]:
    files = (file for file in (ROOT / folder).rglob("*") if file.is_file())
    return {
        f"{package}/{file.relative_to(ROOT / folder).as_posix()}"
        for file in files
        if "__pycache__" not in file.parts
    }
