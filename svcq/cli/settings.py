"""`svcq config`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import Column, clean, print_json, print_table
from svcq.config.shown import said_values, shown_values

if TYPE_CHECKING:
    from svcq.client.connection import Connection


def _config_parser(parser: Parser) -> None:
    get = parser.command("get", "print one setting", _get)
    get.add_argument("key", metavar="SETTING", help="such as jobs.max_attempts")
    add_json(get)
    change = parser.command("set", "change one setting in the file", _set)
    change.add_argument("key", metavar="SETTING", help="such as jobs.max_attempts")
    change.add_argument("value", metavar="VALUE", help="as it would stand in the file")
    unset = parser.command("unset", "return one setting to its default", _unset)
    unset.add_argument("key", metavar="SETTING", help="such as jobs.max_attempts")
    add_json(parser.command("list", "list all settings", _list))
    add_json(parser.command("path", "print where the file is", _path))


def _get(options: Namespace) -> None:
    from svcq.config.check import suggestion
    from svcq.errors import ConfigError

    values = _values()
    if options.key not in values:
        raise ConfigError(f"There is no setting {options.key!r}: {suggestion(options.key)}")
    value = values[options.key]
    print_json(value) if options.json else print(clean(str(value)))


def _set(options: Namespace) -> None:
    from svcq.config import set_value

    if (door := _door()) is not None:
        door.ask("PATCH", "/config", body={options.key: _typed(options.key, options.value)})
    else:
        if options.key == "store":
            from svcq.cli.migrate import warn_of_password

            warn_of_password(options.value)
        set_value(_home(), options.key, options.value)
    print(f"{options.key} is set.{_when(options.key)}")


def _unset(options: Namespace) -> None:
    from svcq.config import unset_value

    if (door := _door()) is not None:
        door.ask("PATCH", "/config", body={options.key: None})
    else:
        unset_value(_home(), options.key)
    print(f"{options.key} has its default.{_when(options.key)}")


def _when(key: str) -> str:
    """What there is to say of those who run on the settings meanwhile."""
    if key != "store":
        return ""
    return " What runs keeps the store it has until it is started anew: svcq restart, or svcq up."


def _list(options: Namespace) -> None:
    from svcq.config import SETTINGS

    values = _values()
    if options.json:
        print_json(values)
        return
    said = _said()
    columns = [
        Column("setting"), Column("value", least=8), Column("from", dispensable=2),
        Column("what it is", least=12, dispensable=3),
    ]  # fmt: skip
    print_table(
        columns,
        [
            [key, _shown(value), _source(key, said), SETTINGS[key].about]
            for key, value in values.items()
        ],
    )


def _path(options: Namespace) -> None:
    from svcq.config import config_file

    path = str(config_file(_home()))
    print_json({"path": path}) if options.json else print(path)


def _door() -> Connection | None:
    """Where the settings of a service are asked for by those who do not own them."""
    from svcq.door import find_socket

    socket = find_socket()
    if socket is None:
        return None
    from svcq.client.connection import LocalConnection

    return LocalConnection(Path(socket))


def _values() -> dict[str, Any]:
    if (door := _door()) is None:
        return shown_values()
    return {key: one["value"] for key, one in door.ask("GET", "/config")["settings"].items()}


def _said() -> dict[str, Any]:
    if (door := _door()) is None:
        return said_values(_home())
    found = door.ask("GET", "/config")["settings"]
    return {key: one["value"] for key, one in found.items() if one["set"]}


def _typed(key: str, text: str) -> Any:
    from svcq.config import SETTINGS

    return SETTINGS[key].kind.from_text(text) if key in SETTINGS else text


def _home() -> Path:
    from svcq.config import home

    return home()


def _source(key: str, said: dict[str, Any]) -> str:
    if key == "store" and os.environ.get("SVCQ_STORE"):
        return "SVCQ_STORE"
    return "file" if key in said else "default"


def _shown(value: Any) -> str:
    return '""' if value == "" else str(value)


PARSERS = {"config": _config_parser}
