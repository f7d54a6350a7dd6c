"""Imports point one way, and only host/ knows which system it runs on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "svcq").rglob("*.py"))

# Low to high: a module may import those before it. A package counts as one.
LAYERS = [
    "tuples", "errors", "finding", "later", "times", "sizes", "strict", "cron", "crontab",
    "triggers", "when", "passwords", "environment", "version", "states", "jobs", "ends", "host",
    "conditions", "trouble", "config", "door", "policy", "schedules", "store", "changes", "logs",
    "why", "hands", "adder", "words", "definitions", "scheduling", "client", "handoff", "tasks",
    "execute", "worker", "library", "migrate", "service", "doctor", "web", "cli",
]  # fmt: skip
# These stand on top and may import everything; nothing below imports them.
TOP = ["__init__", "__main__", "testing"]

PLATFORM_NAMES = {"sys.platform", "os.name", "platform.system"}
PLATFORM_MODULES = ("win32", "pywintypes", "winreg", "msvcrt", "fcntl")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_down(file: Path) -> None:
    assert upward_imports(file.relative_to(ROOT), file.read_text()) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_only_host_knows_the_system(file: Path) -> None:
    if layer_of(module_name(file.relative_to(ROOT))) != "host":
        assert platform_tests(file.read_text()) == []


def test_host_imports_errors_alone() -> None:
    for file in (ROOT / "svcq" / "host").rglob("*.py"):
        imported = {layer_of(name) for name in imports(file.relative_to(ROOT), file.read_text())}
        assert imported <= {"host", "errors"}, file


@pytest.mark.parametrize(
    "source",
    [
        "from svcq.worker import loop",
        "import svcq.worker.loop",
        "from svcq import worker",
        "from ..worker import loop",
        "from .. import worker",
        "def f():\n    from svcq.worker import loop",
        "import svcq",
        "from svcq import Client",
        "import svcq.testing",
        "from svcq.unheard_of import x",
    ],
)
def test_an_import_that_points_up_is_seen(source: str) -> None:
    assert upward_imports(Path("svcq/store/store.py"), source)


@pytest.mark.parametrize(
    "source",
    ["from svcq import errors", "from .engine import Engine", "from . import engine", "import os"],
)
def test_an_import_that_points_down_is_allowed(source: str) -> None:
    assert upward_imports(Path("svcq/store/store.py"), source) == []
    assert upward_imports(Path("svcq/store/__init__.py"), source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.platform == 'win32'",
        "import os\nif os.name == 'nt': pass",
        "import platform\nplatform.system()",
        "from sys import platform",
        "def f():\n    import win32api",
        "from fcntl import flock",
    ],
)
def test_a_question_about_the_system_is_seen(source: str) -> None:
    assert platform_tests(source)


def upward_imports(file: Path, source: str) -> list[str]:
    here = layer_of(module_name(file))
    if here not in LAYERS + TOP:
        return [f"{file}: place {here!r} in LAYERS of tests/test_layers.py"]
    found = []
    for name in imports(file, source):
        there = layer_of(name)
        if there not in LAYERS + TOP:
            found.append(f"{file} imports {name}: place {there!r} in LAYERS of this test")
        elif there != here and height(there) >= height(here) and here not in TOP:
            found.append(f"{file} ({here}) imports {name}, which stands above it ({there})")
    return found


def height(layer: str) -> int:
    return LAYERS.index(layer) if layer in LAYERS else len(LAYERS)


def module_name(file: Path) -> str:
    return ".".join(file.with_suffix("").parts)


def layer_of(module: str) -> str:
    return [*module.split("."), "__init__"][1]


def imports(file: Path, source: str) -> Iterator[str]:
    """The modules of svcq that a file imports, wherever the statement stands."""
    package = file.parts[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join([*base, *filter(None, [node.module])])
            names = [origin]
            if origin == "svcq":
                names = [module_or_name(alias.name) for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "svcq")


def module_or_name(name: str) -> str:
    """`from svcq import x` means the module x, or else a name of svcq/__init__.py."""
    return f"svcq.{name}" if name in LAYERS + TOP else "svcq"


def platform_tests(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=attribute):
                names = [f"{module}.{attribute}"]
            case ast.ImportFrom(module=str(module)):
                names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
            case ast.Import():
                names = [alias.name for alias in node.names]
            case _:
                continue
        found += [n for n in names if n in PLATFORM_NAMES or n.startswith(PLATFORM_MODULES)]
    return found
