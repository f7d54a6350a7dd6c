"""A Windows Python under Wine, made of packages of Debian and PyPI and kept between runs.

python.org's own library and extension modules travel inside the wheel of panda3d; the standard
library in Python is that of this machine's 3.11; python.exe itself is a few lines of C. So the
tests need no download but from PyPI, and no Windows.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SYSTEM_PYTHON = "/usr/bin/python3"
RECIPE = "2"  # to be counted up when what is made changes
CARRIER = "panda3d==1.10.16"
TELL = (
    "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_path('stdlib'), sep='\\n')"
)
COMPILER = "x86_64-w64-mingw32-gcc"
# Beside what svcq itself depends on. What depends on the system is named: pip on Linux would look
# at the system it runs on.
FOR_WINDOWS = ("pywin32>=306", "tzdata", "colorama")
FOR_TESTS = ("hypothesis>=6.100", "pytest>=8.3", "pytest-timeout>=2.3")


class Wine:
    """One Wine prefix with a Python in it."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "python" / "python.exe"
        self._env = {
            **os.environ,
            "WINEPREFIX": str(folder / "prefix"),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "mscoree=;mshtml=",  # it would offer to download them
            # Beside the sources they would be taken for those of this machine's own Python.
            "PYTHONPYCACHEPREFIX": f"Z:{folder}/compiled",
        }
        for name in ("SVCQ_HOME", "SVCQ_STORE", "SVCQ_SOCKET", "PYTHONPATH"):
            self._env.pop(name, None)

    def run(
        self, words: Sequence[str], *, cwd: Path = ROOT, timeout: float = 600,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Python stops where its standard streams are no pipes; so what it prints goes into one."""
        return subprocess.run(
            ["wine", str(self.python), *words], cwd=cwd, env={**self._env, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=timeout, check=False,
        )  # fmt: skip

    def show(self, words: Sequence[str]) -> int:
        """The same, for someone who watches."""
        with subprocess.Popen(
            ["wine", str(self.python), *words], cwd=ROOT, env=self._env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            errors="replace",
        ) as process:  # fmt: skip
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
        return process.returncode

    def call(self, *words: str) -> None:
        subprocess.run(
            words, env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=300, check=False,
        )  # fmt: skip


def prepared() -> Wine:
    """The one for these sources; made when there is none yet, by one process for all."""
    folder = ROOT / "build" / "windows" / _stamp()
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder / "lock"):
        if not (folder / "made").exists():
            _make(folder)
            (folder / "made").touch()
    return Wine(folder)


def _stamp() -> str:
    """Of all that decides what is made."""
    digest = hashlib.sha256(RECIPE.encode())
    for file in (HERE / "python.c", HERE / "random.c"):
        digest.update(file.read_bytes())
    digest.update("\n".join(_packages()).encode())
    return digest.hexdigest()[:12]


def _packages() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    everywhere = [one for one in project["dependencies"] if ";" not in one]
    return [*everywhere, *FOR_WINDOWS, *FOR_TESTS]


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(folder: Path) -> None:
    for name in ("python", "prefix", "parts", "compiled"):
        shutil.rmtree(folder / name, ignore_errors=True)
    python, parts = folder / "python", folder / "parts"
    (python / "DLLs").mkdir(parents=True)
    parts.mkdir()
    _take_from_carrier(parts, python)
    _copy_library(python / "Lib")
    _compile(parts, python)
    _install(python / "Lib" / "site-packages")
    # A service has no variables of ours, and is to find these sources all the same.
    (python / "Lib" / "site-packages" / "svcq.pth").write_text(f"Z:{ROOT}\n")
    for file in (python / "Lib/site-packages/pywin32_system32").glob("*.dll"):
        shutil.copy(file, python)
    shutil.copy(python / "Lib/site-packages/win32/pythonservice.exe", python)
    shutil.rmtree(parts)
    wine = Wine(folder)
    wine.call("wineboot", "--init")
    wine.call("wine", "winecfg", "-v", "win10")
    tried = wine.run(["-c", "import sqlite3, ssl, win32service, httptools; print('well')"])
    if "well" not in tried.stdout:
        raise RuntimeError(f"The Python made for Wine does not run: {tried.stdout[-2000:]}")


def _take_from_carrier(parts: Path, python: Path) -> None:
    pip("download", "--no-deps", *_FOR_WINDOWS_OF_PIP, "-d", str(parts), CARRIER)
    wheel = next(parts.glob("panda3d-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            folder, _, file = name.rpartition("/")
            if folder == "deploy_libs":
                beside = file.lower() in ("python311.dll", "vcruntime140.dll")
                to = python / file if beside else python / "DLLs" / file
                to.write_bytes(archive.read(name))
    wheel.unlink()


def _copy_library(to: Path) -> None:
    said = subprocess.run(
        [SYSTEM_PYTHON, "-c", TELL], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    if said[:2] != ["3", "11"]:
        raise RuntimeError(
            f"The Python for Wine is a 3.11, and {SYSTEM_PYTHON} is a {'.'.join(said[:2])}: "
            "run these tests on Debian 12, or with that Python."
        )
    left_out = shutil.ignore_patterns(
        "site-packages", "dist-packages", "lib-dynload", "config-3*", "test", "__pycache__"
    )
    shutil.copytree(said[2], to, ignore=left_out, dirs_exist_ok=True)


def _compile(parts: Path, python: Path) -> None:
    def compiled(name: str, *words: str) -> None:
        subprocess.run([COMPILER, "-O2", "-o", str(python / name), *words], check=True)

    compiled("python.exe", "-municode", str(HERE / "python.c"))
    compiled("pythonw.exe", "-municode", "-mwindows", "-DGUI", str(HERE / "python.c"))
    compiled("bcryptprimitives.dll", "-shared", str(HERE / "random.c"), "-ladvapi32")
    # The library that extensions for any Python 3 are linked to: it leads on to that of 3.11.
    lines = (f"  {name}=python311.{name}" for name in _exports(python / "python311.dll"))
    forward = parts / "python3.def"
    forward.write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *lines, ""]))
    subprocess.run(
        [COMPILER, "-shared", "-nostdlib", "-o", str(python / "python3.dll"), str(forward)],
        check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _exports(library: Path) -> list[str]:
    """The functions that a library offers, as objdump reads them from it."""
    said = subprocess.run(
        ["x86_64-w64-mingw32-objdump", "-p", str(library)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    table = said.partition("[Ordinal/Name Pointer] Table")[2].splitlines()[1:]
    names = []
    for line in table:
        words = line.split()
        if not words or not words[0].startswith("["):
            break
        names.append(words[-1])
    return names


_FOR_WINDOWS_OF_PIP = (
    "--platform", "win_amd64", "--python-version", "3.11", "--only-binary=:all:"
)  # fmt: skip


def _install(target: Path) -> None:
    pip("install", "--target", str(target), *_FOR_WINDOWS_OF_PIP, *_packages())


def pip(*words: str) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "pip", words[0], "--quiet", "--disable-pip-version-check",
         *(["--root-user-action=ignore"] if words[0] == "install" else []), *words[1:]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if said.returncode:
        raise RuntimeError(f"pip {words[0]} failed: {said.stderr[-2000:]}")


if __name__ == "__main__":
    sys.exit(prepared().show(sys.argv[1:]))
