"""svcq as root would have put it on a machine: in /opt/svcq, with a Python that all may run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.clients import ROOT

PLACE = Path("/opt/svcq")
# Not the one that runs the tests: that may be in a home, which other accounts cannot look into.
PYTHON = Path("/usr/bin/python3")
NEEDED = (
    "anyio", "apscheduler", "click", "h11", "httptools", "idna", "jinja2", "markupsafe",
    "platformdirs", "prometheus_client", "starlette", "tomlkit", "typing_extensions.py",
    "tzlocal", "uvicorn",
)  # fmt: skip


def program_at(place: Path) -> tuple[str, ...]:
    """How it is called."""
    return str(place / "bin" / "python"), "-I", "-m", "svcq"


def put_program(place: Path, package: Path = ROOT / "svcq") -> None:
    """Make an environment with svcq in it."""
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(PYTHON)
    (place / "pyvenv.cfg").write_text(f"home = {PYTHON.parent}\n")
    for path in (package, *map(_installed, NEEDED)):
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, packages(place) / path.name)


def packages(place: Path) -> Path:
    version = PYTHON.resolve().name.removeprefix("python")
    return place / "lib" / f"python{version}" / "site-packages"


def _installed(name: str) -> Path:
    return next(path for folder in sys.path if (path := Path(folder, name)).exists())
