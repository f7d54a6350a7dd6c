"""Conditions of the machine that a job waits for: `ac-power`, `battery>30`, `idle>10m`, `load<2`.

Pure: a condition and what is known of the machine in, an answer and its reason out. Facts are asked
for by name (`mains`, `battery`, `idle`, `load`, `unmetered`), and only those that are needed, since
some cost a process. What is unknown does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from svcq.errors import InvalidInput, shown
from svcq.host.unknown import Unknown
from svcq.times import SECOND, format_duration, parse_duration
from svcq.tuples import NamedTuple

Fact = Callable[[str], float | Unknown]

_FORM = re.compile(r"(battery|idle)\s*>\s*(\S+)|(load)\s*<\s*(\S+)")
_EXAMPLES = "ac-power, battery>30, idle>10m, load<2 or unmetered"


class Verdict(NamedTuple):
    holds: bool | None  # None when nobody can tell
    says: str  # why, as a part of a sentence


def check_condition(value: object) -> str:
    """A condition as it is kept: `battery > 30 %` and `battery>30` are one."""
    try:
        name, bound = _parse(str(value))
    except ValueError:
        raise InvalidInput(
            f"The condition {shown(value)} is not understood: give {_EXAMPLES}."
        ) from None
    if bound is None:
        return name
    number = _words(bound) if name == "idle" else f"{bound:.10g}"
    return f"{name}{'<' if name == 'load' else '>'}{number}"


def judge(condition: str, fact: Fact) -> Verdict:
    """Whether the condition holds, from what `fact` knows of the machine."""
    try:
        name, bound = _parse(condition)
    except ValueError:
        return Verdict(None, f"no worker of this version understands it; it knows {_EXAMPLES}")
    known = fact("mains" if name == "ac-power" else name)
    if isinstance(known, Unknown):
        return Verdict(None, known.missing)
    if bound is None:
        return _on_mains(known, fact) if name == "ac-power" else _unmetered(known)
    match name:
        case "battery":
            is_now, wish = f"the battery is at {known:.0f} %", f"more than {bound:g} %"
        case "idle":
            rest = format_duration(int(known) * SECOND) if known >= 1 else ""
            is_now = f"this machine has been idle for {rest}" if rest else "this machine is in use"
            wish = f"more than {_words(bound)} of idleness"
        case _:
            is_now, wish = f"the load is {known:.2f}", f"less than {bound:g}"
    holds = known < bound if name == "load" else known > bound
    return Verdict(holds, is_now if holds else f"{is_now}, and it waits for {wish}")


def _on_mains(known: float, fact: Fact) -> Verdict:
    if known:
        return Verdict(True, "this machine is on mains power")
    left = fact("battery")
    charge = "" if isinstance(left, Unknown) else f", {left:.0f} %"
    return Verdict(False, f"this machine runs on battery{charge}")


def _unmetered(known: float) -> Verdict:
    return Verdict(bool(known), f"the network is {'not ' if known else ''}metered")


def _parse(text: str) -> tuple[str, float | None]:
    """The name, and the number it is compared with; of `idle` in seconds. Or a ValueError."""
    words = text.strip().lower()
    if words in ("ac-power", "unmetered"):
        return words, None
    found = _FORM.fullmatch(words.removesuffix("%").rstrip() if "battery" in words else words)
    if found is None:
        raise ValueError(text)
    name, value = found[1] or found[3], found[2] or found[4]
    if name == "idle":
        try:
            return name, parse_duration(value) / SECOND
        except InvalidInput as error:
            raise ValueError(text) from error
    bound = float(value)
    if not 0 <= bound <= (100 if name == "battery" else 1e6):
        raise ValueError(text)
    return name, bound


def _words(seconds: float) -> str:
    """Words that can be read back: the usual ones leave out what is small beside the rest."""
    ms = round(seconds * SECOND)
    words = format_duration(ms)
    return words if parse_duration(words) == ms else f"{ms}ms"
