"""What the store needs of a database: a few primitives, and its statements by name.

queries.sql holds every statement: `-- name: finish_run`, a line that says why it is so, the SQL.
`-- name: x [sqlite]` is x for one engine alone; `-- fragment: y` is text that others include
as {y}. A statement without SQL is one that its engine has no need of. Parameters are written
:name and numbered in the order of their first appearance; verbs pass them by name, bulk statements
take tuples in that order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache

from svcq.errors import StoreBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, Self

    from svcq.host.bell import Bell

    Row = tuple[Any, ...]
    Statement = tuple[str, Row]
    """A statement by its name, and its values in order."""
else:
    Protocol, Row, Statement = object, tuple, tuple

_HEADER = re.compile(r"^-- (name|fragment): (\w+)(?: \[(\w+)\])?$", re.MULTILINE)
_INCLUDED = re.compile(r"\{(\w+)\}")
_WHOLE = re.compile(r"SELECT ([\w,\s]+?) FROM (\w+)")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)|'[^']*'")


class Query:
    def __init__(self, name: str, sql: str, parameters: tuple[str, ...], reason: str) -> None:
        self.name = name
        self.sql = sql
        self.parameters = parameters
        self.reason = reason

    def ordered(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple([values[name] for name in self.parameters])

    def reads(self) -> tuple[str, list[str]]:
        """The table and the columns of a statement that reads the whole of one."""
        found = _WHOLE.fullmatch(" ".join(self.sql.split()))
        assert found is not None, f"{self.name} does more than read a whole table"
        return found[2], found[1].split(", ")


class Transaction(Protocol):
    """A unit of reading or writing."""

    @property
    def now(self) -> int:
        """Its time, in Unix milliseconds."""

    @property
    def alone(self) -> bool:
        """Whether nobody else may write but what is kept apart by rows: plain jobs that are added,
        claimed and finished."""

    def rows(self, name: str, /, **values: Any) -> list[Row]: ...

    def row(self, name: str, /, **values: Any) -> Row | None: ...

    def first(self, name: str, values: Sequence[Any], /) -> Row | None:
        """As `row`, with values in order: for what runs at every enqueue and every turn."""

    def each(self, *statements: Statement) -> None:
        """Run statements that have no answer, and need none."""

    def all(self, *statements: Statement) -> list[list[Row]]:
        """The rows of each of these statements, which need nothing of each other's."""

    def run(self, name: str, /, **values: Any) -> int:
        """Run a statement and return how many rows it changed."""

    def many(self, name: str, rows: Iterable[Sequence[Any]], /) -> None: ...

    def stream(self, name: str, /, **values: Any) -> Iterator[list[Row]]:
        """As `rows`, some at a time: for what may be larger than the memory."""

    def fill(self, name: str, rows: Sequence[Sequence[Any]], /) -> None:
        """Write whole rows of a table, in the columns and the order in which the statement of
        that name reads them."""

    def script(self, text: str, /) -> None:
        """Run statements one after the other."""


class Engine(Protocol):
    """One database, opened. Safe to use from several threads and after a fork."""

    name: str
    shared: bool
    """Whether programs on other machines may use it too."""
    where: str
    """The store as people are told of it, never with a password."""
    bells: str
    """The folder of the bells of this machine."""

    def clock(self) -> int:
        """The time of the store, in Unix milliseconds."""

    def read(self) -> AbstractContextManager[Transaction]:
        """One consistent view."""

    def look(self, *statements: Statement) -> list[list[Row]]:
        """The rows of each statement, asked for at once; they need not be of one moment."""

    def add_call(self, values: Row, /) -> Row | None:
        """Add a usual call by add_one_call in one message, durable; None where that cannot be."""

    def write(
        self, *, durable: bool, polite: bool = False, alone: bool = True
    ) -> AbstractContextManager[Transaction]:
        """All or nothing. Durable: on the disk when the block has ended, whatever happens next.
        Polite: others that wait go first, for a while. Alone: see Transaction.
        """

    def at_once(self, name: str, /, **values: Any) -> int:
        """Run one statement by itself, which waits for nobody but who holds its row; how many rows
        it changed."""

    def borrowed(
        self, connection: Any, /, *, alone: bool = True
    ) -> AbstractContextManager[Transaction]:
        """A part of the caller's own transaction, which may go on for long: see `write`."""

    def settle(self, tx: Any, /) -> None:
        """Keep even those out who only add jobs, until this transaction ends."""

    def write_mark(self) -> tuple[int, int]:
        """A cheap look: it differs from the last one if someone has written since."""

    def ring(self, whom: str = "", /) -> None:
        """Wake the workers that listen, or the clocks."""

    def hear(self, bell: Bell, whom: str = "", /) -> AbstractContextManager[object]:
        """Let a bell in `bells` ring for those too who cannot reach it."""

    def tidy(self) -> None:
        """Give back what deletions have freed."""

    def size(self) -> int:
        """How much of the disk it takes, in bytes."""

    def keep_copy(self, version: int, /) -> None:
        """Before an upgrade from a version."""

    def fresh(self) -> Self:
        """Another one on the same store."""

    def close(self) -> None: ...


BATCH = 5000
"""How many rows `Transaction.stream` gives at a time."""


class NotAlone(Exception):
    """What a transaction found can only be written by one that is alone."""


class Conflict(StoreBusy):
    """Two transactions waited for each other, and the database ended this one."""


class Queries(dict[str, Query]):
    """Statements by name. Each is made ready when it is first used: most programs use few."""

    def __init__(
        self, engine: str, bodies: Mapping[str, str], fragments: Mapping[str, str]
    ) -> None:
        super().__init__()
        self._engine = engine
        self._bodies = bodies
        self._fragments = fragments

    def __missing__(self, name: str) -> Query:
        reason, sql = _split_reason(self._bodies[name])
        sql = _INCLUDED.sub(lambda found: self._fragments[found[1]], sql)
        query = self[name] = Query(name, *_number_parameters(sql, self._engine), reason)
        return query

    def complete(self) -> Self:
        """With every statement ready, for whoever wants to look at all of them."""
        self.update({name: self[name] for name in self._bodies})
        return self


@cache
def load_queries(engine: str) -> Queries:
    """The statements of `engine`, from queries.sql."""
    with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as file:
        text = file.read()
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    fragments: dict[str, str] = {}
    bodies: dict[str, str] = {}
    for header, end in zip(headers, ends, strict=True):
        kind, name, only = header.groups()
        body = text[header.end() : end]
        if only not in (None, engine):
            continue
        if kind == "fragment":
            sql = _split_reason(body)[1]
            fragments[name] = _INCLUDED.sub(lambda found: fragments[found[1]], sql)
        else:
            bodies[name] = body
    return Queries(engine, bodies, fragments)


def _split_reason(body: str) -> tuple[str, str]:
    lines = [line for line in body.strip().splitlines() if line.strip()]
    reason = [line[2:].strip() for line in lines if line.startswith("--")]
    return " ".join(reason), "\n".join(line for line in lines if not line.startswith("--"))


def _number_parameters(sql: str, engine: str) -> tuple[str, tuple[str, ...]]:
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        n = numbers.setdefault(match[1], len(numbers) + 1)
        return f"?{n}" if engine == "sqlite" else f"${n}{_type_of(match[1])}"

    return _PARAMETER.sub(number, sql).rstrip().rstrip(";"), tuple(numbers)


# What is text; what is a fraction; and what a column alone can tell. All others are whole numbers.
_TEXTS = frozenset((
    "added", "address", "after_name", "args", "boot", "born", "caller", "certificate", "command",
    "condition", "cron", "cwd", "dead_letter", "digest", "error", "fired_by", "grep", "home",
    "host", "how", "ids", "key", "kind", "name", "names", "needs", "note", "old", "options",
    "orphaned", "overlap", "owner", "policy", "progress_note", "queue", "reason", "result",
    "schedule", "schema", "scope", "secret", "site", "state", "states", "tag", "tags", "tail",
    "task", "unique_key", "vars", "version", "zone",
))  # fmt: skip
_FRACTIONS = frozenset(["progress"])
_BY_COLUMN = frozenset(["env", "missed", "value"])


def _type_of(parameter: str) -> str:
    """For PostgreSQL, to which a NULL does not say what it stands for."""
    if parameter in _BY_COLUMN:
        return ""
    if parameter in _TEXTS:
        return "::text"
    return "::double precision" if parameter in _FRACTIONS else "::bigint"
