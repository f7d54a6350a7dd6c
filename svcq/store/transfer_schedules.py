"""Schedules in an export and an import: one line each, with their history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from svcq.schedules import OURS, due_at
from svcq.store.engine import Transaction
from svcq.store.schedules import find
from svcq.triggers import Trigger

BATCH = 500

_COLUMNS = [
    "name", "cron", "zone", "every_ms", "at", "start_at", "end_at", "anchor", "jitter_ms",
    "missed", "overlap", "paused", "fired_by", "task", "command", "args", "options", "owner",
    "created_at", "set_at", "next_at", "last_at", "last_job", "firings", "env",
]  # fmt: skip
_FIRING_COLUMNS = ["number", "nominal", "at", "how", "job", "missed", "ran", "note"]
_NEWEST = 1 << 62


def export_schedules(tx: Transaction, *, environments: bool) -> Iterator[str]:
    after = ""
    while rows := tx.rows("export_schedules", after_name=after, n=BATCH):
        after = rows[-1][0]
        for row in rows:
            schedule = dict(zip(_COLUMNS, row, strict=True))
            if not environments:
                schedule["env"] = None
            history = tx.rows("firings", schedule=row[0], before=_NEWEST, n=_NEWEST)
            schedule["history"] = [
                dict(zip(_FIRING_COLUMNS, one[1:], strict=True)) for one in reversed(history)
            ]
            said = {key: value for key, value in schedule.items() if value not in (None, "", [])}
            yield json.dumps({"schedule": said})


def import_schedule(
    tx: Transaction, schedule: Mapping[str, Any], new_ids: Mapping[int, int]
) -> None:
    """A schedule that is new here; an existing one stays as it is.

    Times that have passed since the export are missed ones. What a timer of the system fired there
    our clock fires here, from now on: the timer is not in the file.
    """
    if find(tx, schedule["name"]) is not None:
        return
    next_at = schedule["next_at"]
    if schedule["fired_by"] != OURS and next_at is not None:
        next_at = _trigger(schedule).next_after(tx.now)
    values = {name: schedule[name] for name in _COLUMNS}
    values.update(fired_by=OURS, next_at=next_at, last_job=new_ids.get(schedule["last_job"]))
    due = None if schedule["paused"] else due_at(next_at, schedule["jitter_ms"])
    tx.run("import_schedule", **values, due_at=due)
    tx.many(
        "add_firings",
        [
            (schedule["name"], one["number"], one["nominal"], one["at"], one["how"],
             new_ids.get(one["job"]), one["missed"], one["ran"], one["note"])
            for one in schedule["history"]
        ],
    )  # fmt: skip


def _trigger(schedule: Mapping[str, Any]) -> Trigger:
    return Trigger(
        schedule["cron"], schedule["zone"], schedule["every_ms"], schedule["at"],
        schedule["start_at"], schedule["end_at"], schedule["anchor"],
    )  # fmt: skip
