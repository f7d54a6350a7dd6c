"""From what a TOML file says to values the program uses, or one sentence about why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from svcq.config.projects import SECTION
from svcq.config.settings import SECTIONS, SETTINGS
from svcq.config.targets import SECTION as TARGETS
from svcq.errors import ConfigError


def checked_values(document: Mapping[str, object], file: str) -> dict[str, object]:
    """Every setting of the document by its dotted name, as the program uses it."""
    return {key: checked(key, value, file) for key, value in _flat(document, file)}


def checked(key: str, value: object, source: str) -> object:
    """One value as the program uses it; `source` is the file or variable it came from."""
    if key not in SETTINGS:
        raise ConfigError(f"{source} has the unknown setting {key!r}: {suggestion(key)}")
    kind = SETTINGS[key].kind
    try:
        return kind.read(value)
    except ValueError:
        raise ConfigError(
            f"The setting {key} in {source} is {_shown(value)}: give {kind.allowed}."
        ) from None


def suggestion(key: str) -> str:
    """The known setting that was probably meant, or all that could have been."""
    import difflib

    section, _, name = key.rpartition(".")
    if key in SECTIONS:
        return f"use one of {', '.join(_within(key))}."
    for known in SETTINGS:
        if known.rpartition(".")[2] == name:
            return f"did you mean {known}?"
    near = difflib.get_close_matches(key, SETTINGS, n=1)
    if near:
        return f"did you mean {near[0]}?"
    if section in SECTIONS:
        return f"use one of {', '.join(_within(section))}."
    return f"use one of {', '.join(_within(''))}, or of the sections {', '.join(SECTIONS)}."


def _within(section: str) -> list[str]:
    return [known for known in SETTINGS if known.rpartition(".")[0] == section]


def _flat(document: Mapping[str, object], file: str) -> Iterator[tuple[str, object]]:
    for name, value in document.items():
        if name in (SECTION, TARGETS):
            continue
        if "." in name:
            raise ConfigError(f"{file} has the key {name!r} in quotes: write it without them.")
        if name in SECTIONS and not isinstance(value, Mapping):
            raise ConfigError(
                f"{file} has {name} = {_shown(value)}, but {name} is a section: "
                f"write [{name}] on a line, and its settings below."
            )
        if isinstance(value, Mapping) and name not in SETTINGS:
            # An empty section that is unknown would otherwise pass unseen.
            if name not in SECTIONS:
                raise ConfigError(f"{file} has the unknown section [{name}]: {_section(name)}")
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        else:
            yield name, value


def _section(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, SECTIONS, n=1)
    return f"did you mean [{near[0]}]?" if near else f"there are [{'], ['.join(SECTIONS)}]."


def _shown(value: object) -> str:
    """The value, short, and without the password that a URL may hold."""
    text = repr(value)
    if "://" in text:
        text = f"{text.partition('://')[0]}://...{text[-1]}"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"
