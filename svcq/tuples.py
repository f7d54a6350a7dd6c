"""Named tuples for what every start of `svcq add` imports.

As typing's to a reader and to a type checker. But typing itself takes as long to import as a third
of svcq, and then looks at each annotation; of these, only the names are taken. A file that uses it
has its annotations as text (`from __future__ import annotations`).
"""

from __future__ import annotations

from collections import namedtuple

__all__ = ["NamedTuple"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _Maker(type):
        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.pop("__annotations__")
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body.pop("__module__"))  # noqa: PYI024
            made.__annotations__ = fields
            for word, value in body.items():
                setattr(made, word, value)
            return made

    class NamedTuple(metaclass=_Maker):
        pass
