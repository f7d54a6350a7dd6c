"""`svcq config`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import Column, clean, print_json, print_table


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

    set_value(_home(), options.key, options.value)
    print(f"{options.key} is set.")


def _unset(options: Namespace) -> None:
    from svcq.config import unset_value

    unset_value(_home(), options.key)
    print(f"{options.key} has its default.")


def _list(options: Namespace) -> None:
    from svcq.config import SETTINGS

    values = _values()
    if options.json:
        print_json(values)
        return
    said = _document()
    columns = [
        Column("setting"), Column("value", least=8), Column("", dispensable=2),
        Column("what it is", least=12, dispensable=3),
    ]  # fmt: skip
    print_table(
        columns,
        [
            [key, _shown(value), "set" if key in said else "default", SETTINGS[key].about]
            for key, value in values.items()
        ],
    )


def _path(options: Namespace) -> None:
    from svcq.config import config_file

    path = str(config_file(_home()))
    print_json({"path": path}) if options.json else print(path)


def _home() -> Path:
    from svcq.config import home

    return home()


def _values() -> dict[str, Any]:
    """Every setting as it would stand in the file; a file that is wrong is refused."""
    from svcq.config import SETTINGS, load

    config = load()
    said = _document()
    values = {key: said.get(key, setting.default) for key, setting in SETTINGS.items()}
    if os.environ.get("SVCQ_STORE"):
        values["store"] = config.store
    values["store"] = _without_password(str(values["store"]))
    return values


def _document() -> dict[str, Any]:
    """What the file says, by dotted names."""
    from svcq.config import config_file
    from svcq.config.load import parse, read_text

    file = str(config_file(_home()))
    flat: dict[str, Any] = {}
    for name, value in parse(read_text(file), file).items():
        if isinstance(value, dict):
            flat.update({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            flat[name] = value
    return flat


def _shown(value: Any) -> str:
    return '""' if value == "" else str(value)


def _without_password(store: str) -> str:
    scheme, separator, rest = store.partition("://")
    user, at, host = rest.rpartition("@")
    if not separator or not at:
        return store
    return f"{scheme}://{user.partition(':')[0]}:********@{host}"


PARSERS = {"config": _config_parser}
