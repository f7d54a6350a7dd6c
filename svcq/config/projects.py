"""Projects: whose Python functions workers run, and in which interpreter.

[project.shop]
python = "/srv/shop/.venv/bin/python"
path = ["/srv/shop"]
import = ["shop.tasks"]
"""

from __future__ import annotations

from collections.abc import Mapping

from svcq.errors import ConfigError
from svcq.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECTION = "project"


class Project(NamedTuple):
    name: str
    python: str
    path: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


def read_projects(section: object, file: str) -> tuple[Project, ...]:
    if not isinstance(section, Mapping):
        raise ConfigError(f"{file} has a [project] of its own: give it a name, as [project.shop].")
    return tuple(_read(str(name), values, file) for name, values in section.items())


def _read(name: str, values: object, file: str) -> Project:
    where = f"[project.{name}] in {file}"
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} is not a section: write its settings below that line.")
    unknown = sorted(set(values) - {"python", "path", "import"})
    if unknown:
        raise ConfigError(
            f"{where} has the unknown setting {unknown[0]!r}: use python, path or import."
        )
    if not isinstance(values.get("python"), str) or not values["python"]:
        raise ConfigError(f"{where} names no interpreter: give python = its path.")
    return Project(
        name, values["python"], words(values, "path", where), words(values, "import", where)
    )


def words(values: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    given = values.get(key, [])
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list) or not all(isinstance(word, str) and word for word in given):
        raise ConfigError(f"{where} has {key} that is no list of text: give one.")
    return tuple(given)
