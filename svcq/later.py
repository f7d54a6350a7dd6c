"""Modules that are imported when they are first used: `svcq add` does not pay for an export.

What a type checker should see stands under `if TYPE_CHECKING`, as the imports it replaces:

    if TYPE_CHECKING:
        from svcq.store import moves
    else:
        moves = Later("svcq.store.moves")

A program that lives long calls `import_all` before it begins: it must not meet, hours later, the
modules of a newer version.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_waiting: list[str] = []


class Later:
    """Stands for a module until one of its names is needed."""

    def __init__(self, module: str) -> None:
        self._module = module
        _waiting.append(module)

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._module), name)
        setattr(self, name, value)
        return value


def import_all() -> None:
    """For a program that will run long: nothing is imported later, from files that may have been
    replaced by then."""
    while _waiting:
        import_module(_waiting.pop())
    gc.freeze()  # it is all there to stay: no collection need look at it again


def names_from(
    package: str, homes: Mapping[str, tuple[str, ...]], namespace: dict[str, Any]
) -> Callable[[str], Any]:
    """A package's `__getattr__`: each name comes from its home in the package, when it is used."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        namespace[name] = value
        return value

    return find
