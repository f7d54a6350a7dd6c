"""The password of a store's address: hidden where people see it, left out where programs get it.

Also of an address that was written wrongly: nobody should read half of a password in the sentence
that says so.
"""

from __future__ import annotations

from svcq.errors import InvalidInput

MASK = "********"
# What an address may say after its question mark that is no secret.
_HARMLESS = frozenset(
    ["application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname",
     "fallback_application_name", "gssencmode", "host", "hostaddr", "keepalives",
     "keepalives_count", "keepalives_idle", "keepalives_interval", "load_balance_hosts",
     "options", "passfile", "port", "require_auth", "service", "sslcert", "sslkey", "sslmode",
     "sslnegotiation", "sslrootcert", "target_session_attrs", "tcp_user_timeout", "user"]
)  # fmt: skip


def has_password(address: str) -> bool:
    return hide_password(address) != address


def need_no_password(address: str) -> None:
    """For what is kept in a unit of the system, which others may read."""
    if has_password(address):
        raise InvalidInput(
            "SVCQ_STORE holds a password, which would stand in a unit that others can read: put "
            "the address into the configuration (svcq config set store), and the password in "
            "~/.pgpass."
        )


def hide_password(address: str) -> str:
    return _with(address, MASK)


def strip_password(address: str) -> str:
    return _with(address, None)


def _with(address: str, instead: str | None) -> str:
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address
    place, asked, query = rest.partition("?")
    before, at, _ = query.partition("@")
    if at and "=" not in before:
        # The question mark was one of the password's, which should have been %3F.
        user, _, after = rest.rpartition("@")
        place, asked, query = after.partition("?")
        place = f"{user}@{place}"
    user, at, hosts = place.rpartition("@")
    name, colon, password = user.partition(":")
    if colon and password:
        user = _joined(name, ":", instead)
    said = [_option(one, instead) for one in query.split("&")]
    options = "&".join(one for one in said if one)
    return f"{scheme}://{user}{at}{_hosts(hosts, instead)}{asked if options else ''}{options}"


def _hosts(place: str, instead: str | None) -> str:
    """What stands where the port should be is the password of one who forgot the @."""
    hosts, slash, database = place.partition("/")
    shown = []
    for one in hosts.split(","):
        host, colon, port = one.rpartition(":")
        fine = not colon or not port or port.isdigit() or one.endswith("]")
        shown.append(one if fine else _joined(host, ":", instead))
    return f"{','.join(shown)}{slash}{database}"


def _option(option: str, instead: str | None) -> str:
    from urllib.parse import unquote

    name = option.partition("=")[0]
    return option if not option or unquote(name) in _HARMLESS else _joined(name, "=", instead)


def _joined(name: str, sign: str, instead: str | None) -> str:
    if instead is None:
        return name if sign == ":" else ""
    return f"{name}{sign}{instead}"
