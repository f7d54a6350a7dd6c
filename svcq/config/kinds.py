"""The kinds of values a setting may have: what each allows, in words and in code."""

from __future__ import annotations

import re

from svcq.errors import InvalidInput
from svcq.times import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    N = TypeVar("N", int, float)
else:
    Protocol = object

TomlValue = int | float | str


class Kind(Protocol):
    @property
    def allowed(self) -> str:
        """What may be given, to end the sentence "it must be ..."."""

    def read(self, value: object) -> object:
        """The value as the program uses it; ValueError when it is not allowed."""

    def from_text(self, text: str) -> TomlValue:
        """What the file should hold when a person types `text`; `read` judges it afterwards."""


class Whole:
    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most

    @property
    def allowed(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    def read(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(value)
        return _within(self.least, value, self.most)

    def from_text(self, text: str) -> TomlValue:
        return _number_if_it_is_one(text)


class Number:
    def __init__(self, least: float, most: float) -> None:
        self.least = least
        self.most = most

    @property
    def allowed(self) -> str:
        return f"a number from {self.least:g} to {self.most:g}"

    def read(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(value)
        return float(_within(self.least, value, self.most))

    def from_text(self, text: str) -> TomlValue:
        return _number_if_it_is_one(text)


class Choice:
    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    @property
    def allowed(self) -> str:
        return "one of " + ", ".join(f'"{word}"' for word in self.words)

    def read(self, value: object) -> str:
        if value not in self.words:
            raise ValueError(value)
        return str(value)

    def from_text(self, text: str) -> TomlValue:
        return text


class Duration:
    """Read as milliseconds; `none`, where given, is the word for "no limit" and read as None."""

    def __init__(self, least: str, most: str, none: str | None = None) -> None:
        self.least = least
        self.most = most
        self.none = none

    @property
    def allowed(self) -> str:
        span = f'a duration from "{self.least}" to "{self.most}", such as "90s", "5m" or "1h30m"'
        return span if self.none is None else f'{span}, or "{self.none}"'

    def read(self, value: object) -> int | None:
        if value == self.none:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(value)
        try:
            return _within(
                parse_duration(self.least), parse_duration(value), parse_duration(self.most)
            )
        except InvalidInput as error:
            raise ValueError(value) from error

    def from_text(self, text: str) -> TomlValue:
        return text


class Name:
    allowed: str = (
        "a name of up to 100 letters, digits and . _ : @ -, starting with a letter or digit"
    )

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"\w[\w.:@-]{0,99}", value):
            raise ValueError(value)
        return value

    def from_text(self, text: str) -> TomlValue:
        return text


class StoreAddress:
    allowed: str = "the path of a file, or a postgresql:// URL"

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise ValueError(value)
        scheme, separator, _ = value.partition("://")
        if separator and scheme not in {"postgresql", "postgres"}:
            raise ValueError(value)
        return value

    def from_text(self, text: str) -> TomlValue:
        return text


class Place:
    """The path of a file, in full; empty for none."""

    allowed: str = "the whole path of a file, beginning with /, or nothing"

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value.isprintable():
            raise ValueError(value)
        if value and not value.startswith("/"):
            raise ValueError(value)
        return value

    def from_text(self, text: str) -> TomlValue:
        return text


class Address:
    """An address of a network card of this machine; empty for none."""

    allowed: str = "an address such as 192.168.1.5, 0.0.0.0 for all, or nothing"

    def read(self, value: object) -> str:
        if value == "":
            return ""
        from ipaddress import ip_address

        if not isinstance(value, str):
            raise ValueError(value)
        return str(ip_address(value))

    def from_text(self, text: str) -> TomlValue:
        return text


class HostName:
    allowed: str = "a name such as box.example.org, or nothing"

    def read(self, value: object) -> str:
        if not isinstance(value, str) or len(value) > 253:
            raise ValueError(value)
        if value and not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9-]+)*", value):
            raise ValueError(value)
        return value

    def from_text(self, text: str) -> TomlValue:
        return text


class Hours:
    """From one time of the day to another, in minutes; the second may be on the next day."""

    allowed: str = "two times of the day such as 22:00-07:00, or nothing"

    def read(self, value: object) -> tuple[int, int] | None:
        if value == "":
            return None
        found = re.fullmatch(r"(\d\d?):(\d\d)\s*-\s*(\d\d?):(\d\d)", str(value).strip(), re.ASCII)
        if not isinstance(value, str) or found is None:
            raise ValueError(value)
        begin, first, end, second = map(int, found.groups())
        if max(begin, end) > 23 or max(first, second) > 59 or (begin, first) == (end, second):
            raise ValueError(value)
        return 60 * begin + first, 60 * end + second

    def from_text(self, text: str) -> TomlValue:
        return text


class QueueRules:
    """What is told of which queue."""

    words = ("all", "failures", "never")
    allowed: str = "queues with all, failures or never, such as video=all, night=never, or nothing"

    def read(self, value: object) -> dict[str, str]:
        if not isinstance(value, str) or len(value) > 10_000:
            raise ValueError(value)
        rules = {}
        for part in filter(None, (one.strip() for one in value.split(","))):
            queue, _, rule = (word.strip() for word in part.partition("="))
            if rule not in self.words:
                raise ValueError(value)
            rules[Name().read(queue)] = rule
        return rules

    def from_text(self, text: str) -> TomlValue:
        return text


def _within(least: N, value: N, most: N) -> N:
    # Written so that nan, which compares false with everything, is refused.
    if not least <= value <= most:
        raise ValueError(value)
    return value


def _number_if_it_is_one(text: str) -> TomlValue:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
