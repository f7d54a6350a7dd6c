"""The settings as people are shown them: as they would stand in the file, without passwords."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from svcq.config.load import config_file, default_home, load, parse, read_text
from svcq.config.settings import SETTINGS


def shown_values(home: Path | None = None) -> dict[str, Any]:
    """Every setting; a file that is wrong is refused."""
    config = load(home)
    said = said_values(home or default_home())
    values = {key: said.get(key, setting.default) for key, setting in SETTINGS.items()}
    if os.environ.get("SVCQ_STORE"):
        values["store"] = config.store
    values["store"] = without_password(str(values["store"]))
    return values


def said_values(home: Path) -> dict[str, Any]:
    """What the file says, by dotted names."""
    file = str(config_file(home))
    flat: dict[str, Any] = {}
    for name, value in parse(read_text(file), file).items():
        if isinstance(value, dict):
            flat.update({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            flat[name] = value
    return flat


MASK = "********"
# What an address may say after its question mark that is no secret.
_HARMLESS = frozenset(
    ["application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname",
     "fallback_application_name", "gssencmode", "host", "hostaddr", "keepalives", "keepalives_count",
     "keepalives_idle", "keepalives_interval", "load_balance_hosts", "options", "passfile", "port",
     "require_auth", "service", "sslcert", "sslkey", "sslmode", "sslnegotiation", "sslrootcert",
     "target_session_attrs", "tcp_user_timeout", "user"]
)  # fmt: skip


def has_password(store: str) -> bool:
    return without_password(store) != store


def without_password(store: str) -> str:
    """The address without what could be a secret, also where it was written wrongly."""
    scheme, separator, rest = store.partition("://")
    if not separator:
        return store
    place, question, query = rest.partition("?")
    before, at, _ = query.partition("@")
    if at and "=" not in before:
        # The question mark was one of the password's, which should have been %3F.
        user, _, after = rest.rpartition("@")
        place, question, query = after.partition("?")
        place = f"{user}@{place}"
    user, at, host = place.rpartition("@")
    name, colon, password = user.partition(":")
    shown = f"{name}:{MASK}" if colon and password else user
    options = "&".join(map(_shown_option, query.split("&"))) if query else query
    return f"{scheme}://{shown}{at}{_shown_host(host)}{question}{options}"


def _shown_host(place: str) -> str:
    """What stands where the port should be is the password of one who forgot the @."""
    hosts, slash, database = place.partition("/")
    shown = []
    for one in hosts.split(","):
        host, colon, port = one.rpartition(":")
        fine = port.isdigit() or not port or one.endswith("]")
        shown.append(f"{host}:{MASK}" if colon and not fine else one)
    return f"{','.join(shown)}{slash}{database}"


def _shown_option(option: str) -> str:
    from urllib.parse import unquote

    name = option.partition("=")[0]
    return option if not option or unquote(name) in _HARMLESS else f"{name}={MASK}"
