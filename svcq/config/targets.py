"""Targets: where ends are told beyond the desktop, through Apprise.

[notify.phone]
urls = ["ntfy://svcq-of-ada"]
queues = ["video"]
tell = "failures"

The URLs hold passwords, so they are shown nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from svcq.config.projects import words
from svcq.errors import ConfigError
from svcq.tuples import NamedTuple

SECTION = "notify"
TELL = ("failures", "all", "asked")


class Target(NamedTuple):
    name: str
    urls: tuple[str, ...]
    queues: tuple[str, ...] = ()
    """None: of all."""
    tell: str = "failures"
    """asked: only of jobs that were queued with --notify, or of queues that say so."""

    def __repr__(self) -> str:
        return f"Target({self.name!r})"


def read_targets(section: object, file: str) -> tuple[Target, ...]:
    if not isinstance(section, Mapping):
        raise ConfigError(f"{file} has a [notify] of its own: give it a name, as [notify.phone].")
    return tuple(_read(str(name), values, file) for name, values in section.items())


def _read(name: str, values: object, file: str) -> Target:
    where = f"[notify.{name}] in {file}"
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} is not a section: write its settings below that line.")
    unknown = sorted(set(values) - {"urls", "queues", "tell"})
    if unknown:
        raise ConfigError(
            f"{where} has the unknown setting {unknown[0]!r}: use urls, queues or tell."
        )
    urls = words(values, "urls", where)
    if not urls or not all("://" in url for url in urls):
        raise ConfigError(f"{where} has no URLs of Apprise: give urls = a list of them.")
    tell = values.get("tell", "failures")
    if tell not in TELL:
        raise ConfigError(f"{where} has tell = {tell!r}: give one of {', '.join(TELL)}.")
    return Target(name, urls, words(values, "queues", where), str(tell))
