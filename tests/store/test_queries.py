"""The file of statements: each has its reason, is used, and finds its rows without a scan."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from svcq.store import Store
from svcq.store.engine import load_queries
from tests.store.conftest import Desk

QUERIES = load_queries("sqlite").complete()
POSTGRES = load_queries("postgres").complete()
TEXT = files("svcq.store").joinpath("queries.sql").read_text("utf-8")
# Run at each claim, finish or clean-up: their cost must not grow with what waits or has ended.
ONE_ENGINE = {name for name in POSTGRES if name not in QUERIES}
HOT = (
    "candidates", "first_in_lane", "due", "expired", "open_lanes", "held_runs", "finished_before",
    "unique_holder", "running_in", "find_lane", "start_runs", "complete_runs", "settle_run",
    "refresh_lanes", "next_due", "runs_of_worker", "cancel_requests", "children", "count_unmet",
    "changes_after", "last_change", "list_finished", "list_due", "list_standing", "jobs_named",
    "standing", "place_job", "policy_layers", "states_of", "free_stale_windows", "edge_rank",
    "next_in_lane",
    "due_schedules", "next_schedule", "advance_schedule", "fired_for", "unfinished_of", "firings",
    "firing_of", "schedule", "set_last_job", "number_firing", "void_firings",
    "forget_firings", "schedules",
)  # fmt: skip


def sources() -> Iterator[ast.Module]:
    for entry in files("svcq.store").iterdir():
        if entry.name.endswith(".py"):
            yield ast.parse(entry.read_text("utf-8"))


def words_in_code() -> set[str]:
    return {
        node.value
        for tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def statements_called() -> set[str]:
    """The first argument of every tx.row(...), rows, first, run or many."""
    called = set()
    for tree in sources():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name | ast.Attribute)
                and ast.unparse(node.func.value).split(".")[-1].endswith("tx")
                and node.func.attr in ("row", "rows", "first", "run", "many")
                and isinstance(node.args[0], ast.Constant)
            ):
                called.add(str(node.args[0].value))
    return called


def test_every_statement_is_used() -> None:
    assert (set(QUERIES) | set(POSTGRES)) - words_in_code() == set()


def test_every_statement_that_is_used_exists() -> None:
    called = statements_called()
    assert len(called) > 80
    assert called - set(QUERIES) - ONE_ENGINE == set()
    assert called - set(POSTGRES) == set()


def test_every_statement_and_fragment_has_its_reason() -> None:
    headers = list(re.finditer(r"^-- (?:name|fragment): .*\n(.*)\n", TEXT, re.MULTILINE))
    assert len(headers) >= len(QUERIES)
    without = [match[0] for match in headers if not re.match(r"-- [A-Z].+", match[1])]
    assert without == []


def test_no_name_is_given_twice() -> None:
    names = re.findall(r"^-- (?:name|fragment): (.*)$", TEXT, re.MULTILINE)
    assert len(names) == len(set(names))


def test_no_statement_selects_whatever_there_is() -> None:
    """A store may have columns of a newer program."""
    assert [q.name for q in QUERIES.values() if re.search(r"SELECT\s+(\w+\.)?\*", q.sql)] == []
    inserts = [q for q in QUERIES.values() if q.sql.startswith("INSERT")]
    assert [q.name for q in inserts if not re.match(r"INSERT INTO \w+ \(", q.sql)] == []


@pytest.mark.parametrize("name", sorted(QUERIES))
@pytest.mark.parametrize("config", ["sqlite"], indirect=True)
def test_every_statement_can_be_prepared(store: Store, name: str) -> None:
    query = QUERIES[name]
    values = [None] * len(query.parameters)
    assert store.engine.connection().execute(f"EXPLAIN {query.sql}", values).fetchall()


@pytest.mark.parametrize("config", ["postgres"], indirect=True)
def test_every_statement_of_postgresql_can_be_prepared(store: Store) -> None:
    """Its types included: a parameter that may be anything is refused."""
    prepared = 0
    with store.engine.write(durable=False) as tx:
        for name, query in POSTGRES.items():
            if query.sql:
                tx.script(f"PREPARE {name}_now AS {query.sql}")
                prepared += 1
    assert prepared > 150


@pytest.mark.parametrize("name", HOT)
@pytest.mark.parametrize("config", ["sqlite"], indirect=True)
def test_what_runs_often_scans_no_large_table(desk: Desk, name: str) -> None:
    desk.add()
    query = QUERIES[name]
    values = [None] * len(query.parameters)
    connection = desk.store.engine.connection()
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", values)]
    large = r"SCAN (jobs|specs|changes|runs|parents|tags|unique_keys|schedules|firings|s|f)\b"
    assert [step for step in plan if re.match(large, step)] == []
