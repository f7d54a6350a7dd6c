"""Finding and reading the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping

from svcq.config.check import checked, checked_values
from svcq.config.projects import SECTION, read_projects
from svcq.config.settings import SECTIONS, Config
from svcq.config.targets import SECTION as TARGETS
from svcq.config.targets import read_targets
from svcq.errors import ConfigError, NotPermitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

FILE = "config.toml"


def default_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The directory of this account's svcq: `SVCQ_HOME`, or where the system keeps such data."""
    from pathlib import Path

    return Path(default_directory(environ))


def default_directory(environ: Mapping[str, str]) -> str:
    if named := environ.get("SVCQ_HOME"):
        return os.path.abspath(_expanded(named, "SVCQ_HOME"))
    from svcq import host

    return os.path.join(host.data_directory(), "svcq")


def config_file(home: Path) -> Path:
    return home / FILE


def load(
    home: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ
) -> Config:
    """Read the configuration of `home`; every setting it does not mention has its default."""
    directory = os.path.abspath(home) if home else default_directory(environ)
    file = os.path.join(directory, FILE)
    document = parse(read_text(file), file)
    values = checked_values(document, file)
    values["projects"] = read_projects(document.get(SECTION, {}), file)
    values["targets"] = read_targets(document.get(TARGETS, {}), file)
    values["store"] = _store_address(directory, values.get("store"), environ)
    return _build(directory, values)


def build(directory: str, document: Mapping[str, Any]) -> Config:
    """A configuration of settings by their dotted names, as a file would have them."""
    values = {key: checked(key, value, "the service") for key, value in document.items()}
    return _build(directory, values)


def read_text(file: str) -> str:
    """What the file says; nothing when there is none. One that others may write is refused."""
    if not os.path.lexists(file):
        return ""
    from svcq import host

    host.check_private(file)
    try:
        # "-sig": some editors on Windows begin a file with a byte order mark.
        with open(file, "rb") as opened:
            return opened.read().decode("utf-8-sig")
    except PermissionError as error:
        raise NotPermitted(
            f"{file} may not be read ({error.strerror}): give yourself the right to read it."
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read ({error.strerror}): "
            "put a text file in its place, or remove it for the defaults."
        ) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{file}, line {line}, is not UTF-8: save the file as UTF-8.") from error


def parse(text: str, file: str) -> dict[str, Any]:
    if not text:
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Python counts lines for all errors but the ones it meets at the end.
        reason = str(error).replace("at end of document", f"at line {text.count(chr(10)) + 1}")
        raise ConfigError(f"{file} is not valid TOML: {reason}; correct that line.") from error


def _store_address(home: str, in_file: object, environ: Mapping[str, str]) -> str:
    """A path is relative to the home in the file, to the current directory in the variable."""
    if named := environ.get("SVCQ_STORE"):
        address, base = str(checked("store", named, "SVCQ_STORE")), ""
    else:
        address, base = str(in_file or "svcq.db"), home
    if "://" in address:
        return address
    return os.path.abspath(os.path.join(base, _expanded(address, "store")))


def _expanded(path: str, what: str) -> str:
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise ConfigError(
            f"The {what} {path!r} begins with a user who has no home directory: "
            "write the whole path."
        )
    return expanded


def _build(directory: str, values: Mapping[str, Any]) -> Config:
    sections: dict[str, Any] = {
        name: table(**_inside(f"{name}.", values)) for name, table in SECTIONS.items()
    }
    top = {key: value for key, value in values.items() if "." not in key}
    return Config(directory, **top, **sections)


def _inside(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {k.removeprefix(prefix): value for k, value in values.items() if k.startswith(prefix)}
