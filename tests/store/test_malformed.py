"""Exports that are none: the line is named, and nothing is imported. They are read before any store
has a part in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svcq.client import Client
from svcq.errors import DependencyCycle, InvalidInput
from svcq.jobs import State
from tests.clients import assert_sentence

GOOD_JOB: dict[str, Any] = {
    "id": 5, "state": "pending", "queue": "q", "command": '"true"', "options": "{}",
    "created_at": 1,
}  # fmt: skip
GOOD_QUEUE: dict[str, Any] = {
    "name": "q", "paused": 0, "weight": 1, "concurrency": None, "rate_count": None,
    "rate_ms": None, "aging_ms": 3_600_000, "dead_letter": None, "options": "{}",
}  # fmt: skip
GOOD_RUN: dict[str, Any] = {"run": 1, "started_at": 1, "ended_at": 2, "how": "failed"}
HEAD = '{"svcq": 1}'

BAD_JOBS: list[dict[str, Any]] = [
    {"id": 0}, {"id": -5}, {"id": "5"}, {"id": 2**70}, {"id": None}, {"id": True},
    {"state": "processing"}, {"state": "gone"}, {"state": None}, {"state": ["pending"]},
    {"state": "completed"}, {"finished_at": 5},
    {"queue": None}, {"queue": "a b"}, {"queue": "\ud800"}, {"queue": 5},
    {"command": None}, {"command": "true"}, {"command": "[]"}, {"command": "[5]"},
    {"command": '""'}, {"task": "t"}, {"task": "t", "command": None, "args": "{}"},
    {"task": "t", "command": None, "args": "[[],[]]"}, {"task": 5, "command": None},
    {"options": None}, {"options": "x"}, {"options": "[]"}, {"options": '{"max_attempts":"x"}'},
    {"options": '{"timeout":"5m"}'}, {"options": {}},
    {"created_at": None}, {"created_at": "now"}, {"created_at": 2**70},
    {"priority": 5000}, {"run": -1}, {"failures": "x"}, {"run_at": "soon"}, {"progress": 7},
    {"progress": float("nan")}, {"name": "123"}, {"name": "a\0"}, {"tags": "red"},
    {"tags": '{"a":1}'}, {"tags": '["a b"]'}, {"env": "x"}, {"env": '{"A":5}'}, {"cwd": 5},
    {"orphaned": "cry"}, {"unique_key": 5}, {"key": "k", "key_concurrency": 0}, {"copy_of": "x"},
    {"reason": 5}, {"owner": "\ud800"},
    {"parents": 5}, {"parents": [5]}, {"parents": [[1, "success"]]}, {"parents": [[4, "luck", 0]]},
    {"parents": [[404, "success", 0]]}, {"parents": [["1", "success", 0]]},
    {"runs": 5}, {"runs": [5]}, {"runs": [{}]}, {"runs": [{**GOOD_RUN, "how": "magic"}]},
    {"runs": [{**GOOD_RUN, "result": "x"}]}, {"runs": [GOOD_RUN, GOOD_RUN]},
    {"runs": [{**GOOD_RUN, "started_at": None}]},
    {"condition": "moon"}, {"condition": "battery>900"}, {"condition": 5}, {"moved": "up"},
    {"moved": 2**70}, {"options": '{"nice":1,"nice":2}'},
]  # fmt: skip
BAD_QUEUES: list[dict[str, Any]] = [
    {"name": None}, {"name": ""}, {"name": "a b"}, {"name": "\ud800"}, {"paused": 5},
    {"weight": 0}, {"weight": "heavy"}, {"concurrency": -1}, {"rate_count": 5},
    {"rate_count": 0, "rate_ms": 5}, {"aging_ms": 0}, {"aging_ms": None}, {"dead_letter": 5},
    {"options": "x"}, {"options": '{"keep_dead":"1d"}'}, {"weight": 2**70},
    {"options": '{"when":"moon"}'}, {"options": '{"when":5}'},
]  # fmt: skip
BAD_LINES = [
    *(json.dumps({"job": {**GOOD_JOB, **bad}}) for bad in BAD_JOBS),
    *(json.dumps({"queue": {**GOOD_QUEUE, **bad}}) for bad in BAD_QUEUES),
    json.dumps({"job": {**GOOD_JOB, "id": 4}}), '{"job": 5}', '{"queue": []}', '{"job": null}',
    "", "not JSON", "[]", "5", "{}", '{"jobs": []}', HEAD, '{"job": ' + "[" * 100_000,
    f'{{"job": {json.dumps(GOOD_JOB)}, "job": {json.dumps(GOOD_JOB)}}}',
    json.dumps({"job": GOOD_JOB}).replace('"id": 5', '"id": 5, "id": 7'),
]  # fmt: skip


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[-60:].encode("ascii", "replace"))
def test_a_malformed_line_is_named_and_nothing_is_imported(client: Client, line: str) -> None:
    fine = [HEAD, json.dumps({"queue": {**GOOD_QUEUE, "name": "other"}}),
            json.dumps({"job": {**GOOD_JOB, "id": 4}})]  # fmt: skip
    with pytest.raises(InvalidInput) as caught:
        client.import_lines([*fine, line, json.dumps({"job": {**GOOD_JOB, "id": 6}})])
    assert_sentence(caught.value, "Line 4 ")
    assert (client.queues(), client.changes()) == ([], [])
    assert client.command("true").id == 1


def test_the_lines_that_were_made_bad_above_are_good(client: Client) -> None:
    good = {"queue": GOOD_QUEUE}, {"job": {**GOOD_JOB, "runs": [GOOD_RUN]}}
    assert client.import_lines([HEAD, *map(json.dumps, good)]) == 1
    assert client.get(5).state is State.PENDING
    assert [claim.id for claim in client.fetch()] == [5]


@pytest.mark.parametrize("head", ["{}", '{"svcq": 99}', '{"job": {}}', "x"])
def test_something_else_than_an_export(client: Client, head: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        client.import_lines([head])
    assert_sentence(caught.value, "Line 1 ")
    with pytest.raises(InvalidInput) as empty:
        client.import_lines([])
    assert_sentence(empty.value)


def test_jobs_that_wait_for_each_other_are_not_imported(client: Client) -> None:
    ring = [
        {**GOOD_JOB, "id": one, "state": "blocked", "parents": [[other, "success", 0]]}
        for one, other in ((5, 6), (6, 5))
    ]
    with pytest.raises(DependencyCycle) as caught:
        client.import_lines([HEAD, *(json.dumps({"job": job}) for job in ring)])
    assert_sentence(caught.value, 5, 6)
    assert sum(client.counts().values()) == 0
