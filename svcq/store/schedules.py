"""Schedules as rows: said, changed, removed, looked at. firing.py fires them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from svcq.errors import NotFound, Refused, WrongState
from svcq.schedules import CORRECTION, OURS, Definition, Schedule, check_fires, due_at
from svcq.store.engine import Row, Transaction
from svcq.times import MINUTE


def add(tx: Transaction, definition: Definition, *, replace: bool, paused: bool) -> Schedule:
    old = find(tx, definition.name)
    if old is None:
        definition = _anchored(definition, tx.now)
        first: int | None = check_fires(definition, tx.now)
        if paused:
            first = None
        tx.run(
            "add_schedule", **_said(definition), paused=int(paused), fired_by=OURS, now=tx.now,
            next_at=first, due_at=due_at(first, definition.jitter_ms),
        )  # fmt: skip
    elif replace:
        _save(tx, old, definition)
        if paused:
            place(tx, definition.name, paused=True)
    else:
        raise Refused(
            f"There is a schedule {definition.name!r} already: "
            "edit or remove that, or use another name."
        )
    return get(tx, definition.name)


def change(
    tx: Transaction, name: str, change: Callable[[Schedule, str | None], Definition]
) -> Schedule:
    old = get(tx, name)
    row = tx.row("schedule_environment", name=name)
    _save(tx, old, change(old, None if row is None else row[0]))
    return get(tx, name)


def remove(tx: Transaction, name: str) -> None:
    get(tx, name)
    tx.run("delete_schedule", name=name)
    tx.run("delete_firings", name=name)


def place(
    tx: Transaction, name: str, *, paused: bool | None = None, fired_by: str | None = None
) -> Schedule:
    """Pause a schedule or let it go on; let someone else fire it, or our clock again.

    A time that has come and was not fired is the next one's to fire, or to miss.
    """
    old = as_it_stands(tx, name)
    paused = bool(old.paused) if paused is None else paused
    fired_by = fired_by or old.fired_by
    if (paused, fired_by) == (bool(old.paused), old.fired_by):
        return get(tx, name)
    first = old.next_ms
    if paused:
        first = None
    elif old.paused:
        first = old.trigger.next_after(tx.now)
        if first is None:
            raise WrongState(
                f"The schedule {name!r} is over, none of its times is to come: "
                "edit it to give it others."
            )
    due = due_at(first, old.jitter_ms) if fired_by == OURS else None
    _guarded(tx, "place_schedule", old, name=name, paused=int(paused), fired_by=fired_by,
             now=tx.now, next_at=first, due_at=due)  # fmt: skip
    return get(tx, name)


def set_back(tx: Transaction) -> list[Schedule]:
    """The clock was set back: times that were worked out by how it went before count from now.

    As in cron(8), what follows the clock goes on with the new time at once, while a fixed time
    that has been is not repeated within three hours; what is set back by more was wrong. A moment
    that has come does not come again.
    """
    changed = []
    for row in tx.rows("set_later_than", at=tx.now + MINUTE):
        old = Schedule._make(row)
        trigger = old.trigger
        corrected = old.set_ms - tx.now >= CORRECTION
        if trigger.at is not None or not (corrected or trigger.follows_the_clock):
            continue
        anchor = old.anchor_ms if trigger.start is not None else min(old.anchor_ms, tx.now)
        next_at = trigger._replace(anchor=anchor).next_after(tx.now)
        tx.run("void_firings", schedule=old.name, now=tx.now, note="by a clock that was ahead")
        _guarded(tx, "set_back_schedule", old, name=old.name, anchor=anchor, now=tx.now,
                 next_at=next_at, due_at=due_at(next_at, old.jitter_ms))  # fmt: skip
        changed.append(old)
    return changed


def _save(tx: Transaction, old: Schedule, definition: Definition) -> None:
    """A schedule whose times stay the same keeps its next one."""
    next_at, due = old.next_ms, old.due_ms
    same_times = definition.trigger._replace(anchor=old.anchor_ms) == old.trigger
    definition = _anchored(definition, old.anchor_ms if same_times else tx.now)
    if not same_times or definition.jitter_ms != old.jitter_ms:
        next_at = check_fires(definition, tx.now)
        due = due_at(next_at, definition.jitter_ms)
    if old.paused:
        next_at = None
    if old.paused or old.fired_by != OURS:
        due = None
    _guarded(tx, "save_schedule", old, **_said(definition), now=tx.now, next_at=next_at,
             due_at=due)  # fmt: skip


def _guarded(tx: Transaction, statement: str, old: Schedule, **values: Any) -> None:
    if not tx.run(statement, revision=old.revision, **values):
        raise WrongState(f"The schedule {old.name!r} changed while it was looked at: try again.")


def _anchored(definition: Definition, since: int) -> Definition:
    """An interval counts from its start, or from when it was said."""
    trigger = definition.trigger
    anchor = since if trigger.start is None else trigger.start
    return definition._replace(trigger=trigger._replace(anchor=anchor))


def _said(definition: Definition) -> dict[str, Any]:
    trigger = definition.trigger
    said = definition._asdict()
    del said["trigger"]
    return {
        **said, "cron": trigger.cron, "zone": trigger.zone, "every_ms": trigger.every,
        "at": trigger.at, "start_at": trigger.start, "end_at": trigger.end,
        "anchor": trigger.anchor,
    }  # fmt: skip


def find(tx: Transaction, name: str) -> Schedule | None:
    row = tx.row("schedule", name=name)
    return None if row is None else _seen(row, tx.now)


def get(tx: Transaction, name: str) -> Schedule:
    found = find(tx, name)
    if found is None:
        raise _unknown(name)
    return found


def as_it_stands(tx: Transaction, name: str) -> Schedule:
    """Its row itself, whose next time may have passed."""
    row = tx.row("schedule", name=name)
    if row is None:
        raise _unknown(name)
    return Schedule._make(row)


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no schedule {name!r}: svcq schedule list shows those there are.")


def listed(
    tx: Transaction, *, after: str, n: int, paused: bool | None, task: str | None,
    fired_by: str | None,
) -> list[Schedule]:  # fmt: skip
    rows = tx.rows(
        "schedules", after_name=after, n=n, paused=None if paused is None else int(paused),
        task=task, fired_by=fired_by,
    )  # fmt: skip
    return [_seen(row, tx.now) for row in rows]


def due(tx: Transaction, n: int) -> list[Schedule]:
    return [Schedule._make(row) for row in tx.rows("due_schedules", now=tx.now, n=n)]


def coming(tx: Transaction, n: int) -> list[Schedule]:
    """Those that a clock of ours fires next, the first of them first."""
    return [Schedule._make(row) for row in tx.rows("due_schedules", now=1 << 62, n=n)]


def environment(tx: Transaction, name: str) -> dict[str, str] | None:
    get(tx, name)
    row = tx.row("schedule_environment", name=name)
    found: dict[str, str] | None = json.loads(row[0]) if row and row[0] else None
    return found


def _seen(row: Row, now: int) -> Schedule:
    """Nobody moves on the next time of a schedule that another scheduler fires."""
    schedule = Schedule._make(row)
    if schedule.fired_by != OURS and schedule.next_ms is not None and schedule.next_ms <= now:
        return schedule._replace(next_ms=schedule.trigger.next_after(now))
    return schedule
