"""Queues and their settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from svcq.errors import InvalidInput, NotFound, Refused
from svcq.policy import (
    DURATIONS,
    POLICY_NAMES,
    check_bool,
    check_int,
    check_name,
    check_policy,
    check_when,
)
from svcq.store.engine import Transaction
from svcq.store.lanes import NEVER, rank_of
from svcq.store.ledger import Ledger
from svcq.times import format_duration, parse_duration
from svcq.tuples import NamedTuple

RERANK_BATCH = 1000


class Queue(NamedTuple):
    """A queue's settings. `rate` is (starts, milliseconds); `aging_ms` None makes priority strict.

    `options` are the job policies and retention that hold where a job is silent, and `when`, the
    condition that all of its jobs wait for.
    """

    name: str
    paused: bool = False
    weight: int = 1
    concurrency: int | None = None
    rate: tuple[int, int] | None = None
    aging_ms: int | None = None
    dead_letter: str | None = None
    options: Mapping[str, Any] = {}

    def as_json(self) -> dict[str, Any]:
        """As it is given: `rate` and `aging` in words, the durations of jobs in seconds."""
        rate = None if self.rate is None else f"{self.rate[0]}/{_in_words(self.rate[1])}"
        return {
            "name": self.name,
            "paused": self.paused,
            "weight": self.weight,
            "concurrency": self.concurrency,
            "rate": rate,
            "aging": "never" if self.aging_ms is None else _in_words(self.aging_ms),
            "dead_letter": self.dead_letter,
            **{
                key: value / 1000 if key in _IN_MILLISECONDS else value
                for key, value in self.options.items()
            },
        }


RETENTION_KEYS = ("keep_completed", "keep_dead", "keep_cancelled")
_IN_MILLISECONDS = {*DURATIONS, *RETENTION_KEYS}


def read_back(said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the queue that `as_json` wrote."""
    known = {key: value for key, value in said.items() if key in SETTING_NAMES}
    checked = checked_settings(known)
    own = {key: checked.pop(key) for key in _CHECKS}
    aging = own.pop("aging")
    options = {key: value for key, value in checked.items() if value is not None}
    return {**own, "name": said["name"], "options": options,
            "aging_ms": None if aging == NEVER else aging}  # fmt: skip


def _in_words(ms: int) -> str:
    """Words that can be read back: the usual ones leave out what is small beside the rest."""
    words = format_duration(ms)
    return words if parse_duration(words) == ms else f"{ms}ms"


def read_queue(tx: Transaction, name: str) -> Queue:
    row = tx.row("queue", name=name)
    if row is None:
        raise NotFound(f"There is no queue {name!r}: it comes to be with its first job or setting.")
    return _queue(row)


def read_queues(tx: Transaction) -> list[Queue]:
    return [_queue(row) for row in tx.rows("queues")]


def _queue(row: tuple[Any, ...]) -> Queue:
    name, paused, weight, concurrency, rate_count, rate_ms, aging_ms, dead_letter, options = row
    return Queue(
        name=name,
        paused=bool(paused),
        weight=weight,
        concurrency=concurrency,
        rate=None if rate_count is None else (rate_count, rate_ms),
        aging_ms=None if aging_ms == NEVER else aging_ms,
        dead_letter=dead_letter,
        options=json.loads(options),
    )


def checked_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in the store's units; None removes one."""
    return {key: _checked(key, value) for key, value in given.items()}


def _checked(key: str, value: object) -> Any:
    if key not in SETTING_NAMES:
        from difflib import get_close_matches

        close = get_close_matches(key, SETTING_NAMES, 1)
        hint = f"did you mean {close[0]}?" if close else f"use {', '.join(SETTING_NAMES)}."
        raise InvalidInput(f"There is no setting {key!r} of a queue: {hint}")
    if value is None:
        return None
    if key in RETENTION_KEYS:
        return parse_duration(value, key)  # type: ignore[arg-type]
    if key == "when":
        return check_when(value)
    return _CHECKS[key](value) if key in _CHECKS else check_policy(key, value)


def _check_rate(value: object) -> tuple[int, int]:
    """`"10/1m"`, or (10, 60): at most 10 starts a minute."""
    given: Any = value.split("/") if isinstance(value, str) else value
    try:
        starts, period = given
        starts = int(starts) if isinstance(starts, str) else starts
    except (TypeError, ValueError):
        raise InvalidInput(
            f"The rate {value!r} is not a rate: give starts and time, such as 10/1m."
        ) from None
    period_ms = parse_duration(period, "time of the rate")
    if period_ms < 1:
        raise InvalidInput(f"The rate {value!r} is over no time at all: give one, as in 10/1m.")
    return check_int(starts, "number of starts in the rate", 1, 1_000_000), period_ms


def _check_aging(value: object) -> int:
    if value == "never":
        return NEVER
    aging = parse_duration(value, "aging")  # type: ignore[arg-type]
    if not 1000 <= aging <= 365 * 86_400_000:
        raise InvalidInput(f"The aging {value!r} is out of range: give 1s to 365d, or never.")
    return aging


_CHECKS: Mapping[str, Any] = {
    "paused": lambda v: check_bool(v, "paused"),
    "weight": lambda v: check_int(v, "weight", 1, 1000),
    "concurrency": lambda v: check_int(v, "concurrency", 0, 1_000_000),
    "rate": _check_rate,
    "aging": _check_aging,
    "dead_letter": lambda v: check_name(v, "dead letter queue"),
}


SETTING_NAMES = (*_CHECKS, "when", *RETENTION_KEYS, *POLICY_NAMES)


def save_queue(tx: Transaction, name: str, given: Mapping[str, Any], aging_ms: int) -> bool:
    """Change the given settings; return whether pending jobs must be ranked anew."""
    checked = checked_settings(given)
    tx.run("make_queue", name=check_name(name, "queue"), aging_ms=aging_ms)
    queue = read_queue(tx, name)
    letters = checked.get("dead_letter")
    if letters == name:
        raise InvalidInput(f"The queue {name!r} cannot be its own dead letter queue.")
    if letters is not None and tx.row("queue", name=letters) is None:
        # Its jobs have failed before: they wait until someone has decided who handles them.
        tx.run("make_queue", name=letters, aging_ms=aging_ms)
        tx.run("pause_queue", name=letters, paused=1)
    options = {**queue.options, **{k: v for k, v in checked.items() if k not in _CHECKS}}
    rate = checked.get("rate", queue.rate)
    old_aging = NEVER if queue.aging_ms is None else queue.aging_ms
    new_aging = (checked["aging"] or aging_ms) if "aging" in checked else old_aging
    tx.run(
        "save_queue",
        name=name,
        paused=int(checked.get("paused", queue.paused) or False),
        weight=checked.get("weight", queue.weight) or 1,
        concurrency=checked.get("concurrency", queue.concurrency),
        rate_count=rate[0] if rate else None,
        rate_ms=rate[1] if rate else None,
        aging_ms=new_aging,
        dead_letter=checked.get("dead_letter", queue.dead_letter),
        options=json.dumps({k: v for k, v in options.items() if v is not None}),
    )
    return bool(new_aging != old_aging)


def pause(tx: Transaction, name: str, *, paused: bool) -> None:
    if not tx.run("pause_queue", name=name, paused=int(paused)):
        read_queue(tx, name)  # says that there is none


def delete_queue(tx: Transaction, name: str) -> None:
    """Forget an empty queue."""
    read_queue(tx, name)
    left = sum(n for *_, n in tx.rows("counts", queue=name))
    if left:
        raise Refused(f"The queue {name!r} still has {left:,} jobs: purge them first.")
    sender = next((q.name for q in read_queues(tx) if q.dead_letter == name), None)
    if sender is not None:
        raise Refused(
            f"The queue {name!r} gets the dead letters of queue {sender!r}: change that first."
        )
    for statement in ("delete_queue_lanes", "delete_queue_counts", "delete_queue"):
        tx.run(statement, name=name)


def rerank(tx: Transaction, ledger: Ledger, name: str, ids: Sequence[int]) -> None:
    """Rank a batch of a queue's jobs anew, after its aging has changed."""
    queue = read_queue(tx, name)
    aging = NEVER if queue.aging_ms is None else queue.aging_ms
    rows = tx.rows("rank_inputs", ids=json.dumps(ids))
    tx.many("set_ranks", [(rank_of(ready, priority, aging), job) for job, priority, ready in rows])
    for (key,) in tx.rows("keys_in_queue", queue=name):
        ledger.touched(key)
