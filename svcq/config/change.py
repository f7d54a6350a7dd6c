"""Changing one setting in the file, as a person would: comments and order stay."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from svcq.config.check import checked, checked_values, suggestion
from svcq.config.kinds import Kind
from svcq.config.load import config_file, parse, read_text
from svcq.config.projects import SECTION, Project, read_projects
from svcq.config.settings import SETTINGS
from svcq.config.targets import SECTION as TARGETS
from svcq.config.targets import Target, read_targets
from svcq.errors import ConfigError, NotFound

if TYPE_CHECKING:
    from pathlib import Path

    from tomlkit import TOMLDocument


_SQLITE = b"SQLite format 3\0"  # what every database begins with


def set_value(home: Path, key: str, text: str) -> None:
    """Set one setting from the text a person gave. The file stays as it was if that is refused."""
    value = _known(key).from_text(text)
    checked(key, value, "the command")
    if key == "store":
        _refuse_unusable(home, str(value))
    document = _read(home)
    section, _, name = key.rpartition(".")
    _section(document, section)[name] = value
    _write(home, document)


def _refuse_unusable(home: Path, store: str) -> None:
    """A setting that could never be used; a file need not be there yet."""
    if "://" in store:
        return
    path = home / store
    if path.is_dir() or store.endswith(os.sep):
        raise ConfigError(
            f"The store {path} is a directory: name a file in it, such as {path / 'svcq.db'}."
        )
    # Not what is in use: who opens and closes a file gives up all locks that it has on it.
    if path.exists() and not path.with_name(f"{path.name}-wal").exists():
        _refuse_others_file(path)


def _refuse_others_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            is_database = file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise ConfigError(
            f"The store {path} cannot be read ({error.strerror}): name a file of yours."
        ) from error
    if not is_database:
        raise ConfigError(f"{path} is not a svcq store: name another file, or move it away.")


def unset_value(home: Path, key: str) -> None:
    """Return one setting to its default; nothing happens if it has it already."""
    _known(key)
    document = _read(home)
    section, _, name = key.rpartition(".")
    table: Any = document.get(section, {}) if section else document
    if name in table:
        del table[name]
        _write(home, document)


def add_project(home: Path, project: Project) -> None:
    """Write a project's section, in place of one of the same name."""
    values: dict[str, Any] = {"python": project.python, "path": list(project.path)}
    _put(home, SECTION, project.name, {**values, "import": list(project.imports)})


def remove_project(home: Path, name: str) -> None:
    _remove(home, SECTION, name, "project")


def add_target(home: Path, target: Target) -> None:
    """Write a target's section, in place of one of the same name."""
    values: dict[str, Any] = {"urls": list(target.urls), "queues": list(target.queues)}
    _put(home, TARGETS, target.name, {**values, "tell": target.tell})


def remove_target(home: Path, name: str) -> None:
    _remove(home, TARGETS, name, "target")


def _put(home: Path, section: str, name: str, values: dict[str, Any]) -> None:
    import tomlkit

    document = _read(home)
    table = tomlkit.table()
    table.update(values)
    if section not in document:
        document.add(section, tomlkit.table(is_super_table=True))
    sections: Any = document[section]
    sections[name] = table
    _write(home, document)


def _remove(home: Path, section: str, name: str, what: str) -> None:
    document = _read(home)
    sections: Any = document.get(section, {})
    if name not in sections:
        raise NotFound(f"There is no {what} {name!r}: svcq {section} list shows those there are.")
    del sections[name]
    _write(home, document)


def _known(key: str) -> Kind:
    if key not in SETTINGS:
        raise ConfigError(f"There is no setting {key!r}: {suggestion(key)}")
    return SETTINGS[key].kind


def _read(home: Path) -> TOMLDocument:
    """The document as it is written; one that could not be loaded is not built upon."""
    import tomlkit

    file = str(config_file(home))
    text = read_text(file)
    checked_values(parse(text, file), file)
    return tomlkit.parse(text)


def _section(document: TOMLDocument, name: str) -> Any:
    import tomlkit

    if name and name not in document:
        document.add(name, tomlkit.table())
    return document[name] if name else document


def _write(home: Path, document: TOMLDocument) -> None:
    from svcq import host

    file = config_file(home)
    text = document.as_string()
    parsed = parse(text, str(file))
    checked_values(parsed, str(file))
    read_projects(parsed.get(SECTION, {}), str(file))
    read_targets(parsed.get(TARGETS, {}), str(file))
    host.private_directory(home)
    host.write_private(file, text)
