"""A job as a JSON object: what `svcq enqueue` reads, the API takes and a remote client sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from svcq.adder import Adder
from svcq.errors import InvalidInput
from svcq.policy import OPTION_NAMES, NewJob, shown_policy
from svcq.times import iso

OWN_KEYS = ("command", "task", "args", "kwargs", "id", "max_retries")


def new_job(given: Any, client: Adder, environment: Mapping[str, str] | None) -> NewJob:
    """The job that the object describes; a command gets `environment` under its own variables.

    Where neither has any, it runs with the environment of its worker.
    """
    if not isinstance(given, dict):
        raise InvalidInput('A job is a JSON object, such as {"command": "echo hi"}.')
    _check_keys(given)
    said = {k: v for k, v in given.items() if k not in OWN_KEYS and v is not None}
    _translate(given, said)
    if ("command" in given) == ("task" in given):
        raise InvalidInput("A job has either a command or a task: give one of them.")
    if "task" in given:
        args, kwargs = given.get("args", []), given.get("kwargs", {})
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise InvalidInput("The args of a task are an array, its kwargs an object.")
        return client.new_task(given["task"], args, kwargs, **said)
    if "args" in given or "kwargs" in given:
        raise InvalidInput("args and kwargs are for a task: put them into the command.")
    own = said.pop("env", None)
    if own is not None and not isinstance(own, dict):
        raise InvalidInput('The env is not an object of texts: give {"NAME": "value"}.')
    silent = environment is None and own is None
    env = None if silent else {**(environment or {}), **(own or {})}
    return client.new_command(given["command"], env=env, **said)


def _translate(given: Mapping[str, Any], said: dict[str, Any]) -> None:
    """Words of other queues, as ours."""
    if "id" in given:
        if "name" in said:
            raise InvalidInput("Both id and name are given: give one.")
        if not isinstance(given["id"], str):
            raise InvalidInput(f"The id {given['id']!r} is not text: it becomes the job's name.")
        said["name"] = given["id"]
    if "max_retries" in given:
        retries = given["max_retries"]
        if "max_attempts" in said:
            raise InvalidInput("Both max_retries and max_attempts are given: give one.")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InvalidInput(f"The max_retries {retries!r} is not a whole number from 0 on.")
        said["max_attempts"] = retries + 1


def _check_keys(given: Mapping[str, Any]) -> None:
    known = [*OWN_KEYS, *OPTION_NAMES]
    unknown = next((key for key in given if key not in known), None)
    if unknown is not None:
        from difflib import get_close_matches

        near = get_close_matches(unknown, known, 1)
        hint = f"did you mean {near[0]}?" if near else "svcq enqueue --help says what there is."
        raise InvalidInput(f"A job has no key {unknown!r}: {hint}")


def words_of(new: NewJob) -> dict[str, Any]:
    """The object that describes a job: what `new_job` would make the same job of."""
    plan = new.plan
    what: dict[str, Any] = {"command": json.loads(new.command)} if new.command else {}
    if new.task:
        args, kwargs = json.loads(new.args or "[[], {}]")
        what = {"task": new.task, "args": args, "kwargs": kwargs}
    said = {
        "queue": plan.queue,
        "name": plan.name,
        "tags": list(plan.tags),
        "priority": plan.priority,
        "delay": plan.delay_ms / 1000,
        "run_at": iso(plan.run_at),
        "expires": _seconds(plan.expires_ms),
        "hold": plan.held,
        "unique_key": plan.unique_key,
        "unique_for": _seconds(plan.unique_ms),
        "on_duplicate": plan.on_duplicate if plan.unique_key else None,
        "after": list(plan.after),
        "after_any": list(plan.after_any),
        "if_parent_fails": plan.orphaned,
        "when": plan.condition,
        "host": plan.host,
        "concurrency_key": plan.key,
        "concurrency": plan.key_concurrency,
        "cwd": plan.cwd,
        "env": None if plan.env is None else json.loads(plan.env),
    }
    unsaid: tuple[Any, ...] = (None, 0, False, "", [])
    kept = {name: value for name, value in said.items() if value not in unsaid or name in _EXACT}
    return {**what, **shown_policy(plan.policy), **_given(kept)}


# Nothing, and none at all, are not the same for these.
_EXACT = ("expires", "unique_for", "env")


def _given(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
