"""What a caller may say about a job, checked once, and how what is unsaid is filled in.

Options are the caller's words; a Plan is the same, checked and in the store's units, made once and
used for any number of jobs. A Policy is what holds at run time: the job's own words, over its
task's, over its queue's, over the configuration's.
"""

from __future__ import annotations

import re
from _json import encode_basestring, make_encoder  # json brings its parser along
from collections.abc import Mapping, Sequence
from functools import cached_property

from svcq.config import JobDefaults
from svcq.errors import InvalidArguments, InvalidInput, shown
from svcq.host import EXIT_CODES
from svcq.later import Later
from svcq.times import Duration, Moment, parse_duration, parse_moment
from svcq.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json
    from typing import Any

    from svcq.jobs import Bounds
else:
    json = Later("json")

MAX_PRIORITY = 1000
MAX_TEXT = 255
MAX_SOUGHT = 1000  # characters that a list is narrowed down by
MAX_PARENTS = 1000
MAX_TAGS = 50

_NAME = re.compile(r"\w[\w.:@-]*", re.UNICODE)


def _not_json(value: object) -> None:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


# json makes this anew for each call, which takes as long as the call itself.
_chunks: Any = make_encoder(None, _not_json, encode_basestring, None, ":", ",", False, False, False)


def _encode(value: object) -> str:
    return "".join(_chunks(value, 0))


# Not compiled until they are needed, which is seldom.
_SIZE = r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:I?B)?"
_REAL_NUL = r"(?<!\\)(?:\\\\)*\\u0000"


class Options(NamedTuple):
    """Everything that can be said about a job. None leaves it to the task, queue or configuration.

    Durations are seconds, words ("5m", "1h30m") or timedeltas; times are datetimes, Unix seconds
    or ISO 8601 text.
    """

    queue: str | None = None
    name: str | None = None
    tags: Sequence[str] | None = None
    priority: int | None = None
    delay: Duration | None = None
    run_at: Moment | None = None
    expires: Duration | None = None
    hold: bool | None = None
    max_attempts: int | None = None
    backoff: str | None = None
    backoff_base: float | None = None
    backoff_cap: Duration | None = None
    jitter: float | None = None
    timeout: Duration | None = None
    grace: Duration | None = None
    on_lost: str | None = None
    max_losses: int | None = None
    max_interruptions: int | None = None
    success: Sequence[int] | None = None
    retry_on: Sequence[int] | None = None
    reject: Sequence[int] | None = None
    unique_key: str | None = None
    unique_for: Duration | None = None
    on_duplicate: str | None = None
    after: Sequence[int] | int | None = None
    after_any: Sequence[int] | int | None = None
    if_parent_fails: str | None = None
    when: str | None = None
    host: str | None = None
    concurrency_key: str | None = None
    concurrency: int | None = None
    notify: bool | None = None
    tty: bool | None = None
    max_output: int | str | None = None
    when_over: str | None = None
    nice: int | None = None
    cpus: int | None = None
    memory: int | str | None = None
    keep_awake: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] | None = None

    def over(self, base: Options) -> Options:
        """These options where they say something, `base` elsewhere."""
        said, under = self.said(), base.said()
        if "delay" in said or "run_at" in said:  # two ways to say when: the newer one counts
            under.pop("delay", None)
            under.pop("run_at", None)
        return Options(**{**under, **said}) if said else base

    def said(self) -> dict[str, Any]:
        return {name: value for name in OPTION_NAMES if (value := getattr(self, name)) is not None}


OPTION_NAMES = Options._fields


def read_options(options: Mapping[str, Any]) -> Options:
    try:
        return Options(**options)
    except TypeError:
        from difflib import get_close_matches

        known = OPTION_NAMES
        unknown = next(name for name in options if name not in known)
        close = get_close_matches(unknown, known, 1)
        hint = f"did you mean {close[0]}?" if close else "see svcq.Options for what there is."
        raise InvalidInput(f"There is no option {unknown!r}: {hint}") from None


class _Plan(NamedTuple):
    queue: str
    policy: str = "{}"  # JSON: what Policy reads
    priority: int = 0
    delay_ms: int = 0
    run_at: int | None = None
    expires_ms: int | None = None
    held: bool = False
    name: str | None = None
    tags: tuple[str, ...] = ()
    unique_key: str | None = None
    unique_ms: int | None = None
    on_duplicate: str = "existing"
    after: tuple[int, ...] = ()
    after_any: tuple[int, ...] = ()
    orphaned: str | None = None
    condition: str = ""
    host: str = ""
    key: str = ""
    key_concurrency: int | None = None
    cwd: str | None = None
    env: str | None = None  # JSON
    owner: str | None = None


class Plan(_Plan):
    """Checked options, in the store's units."""

    @cached_property
    def plain(self) -> bool:
        """Whether a job of this plan has no ties to others: it can then be added in bulk."""
        return not (
            self.key or self.name or self.unique_key or self.tags or self.after or self.after_any
        )

    @cached_property
    def usual(self) -> bool:
        """Whether it says nothing but queue, policies, priority and owner, as most do."""
        return self[3:-1] == _UNSAID


_UNSAID = Plan("")[3:-1]


class NewJob(NamedTuple):
    """A job to be added: what to run, and its plan."""

    plan: Plan
    task: str = ""
    args: str | None = None  # JSON: [positional, named]
    command: str | None = None  # JSON: a list is an argv, a string a line for the shell
    copy_of: int | None = None

    @property
    def kind(self) -> str:
        return "task" if self.task else "command"


def make_plan(options: Options, *, default_queue: str, owner: str | None = None) -> Plan:
    """Check every option and put it in the store's units."""
    said = options.said()
    policy = {key: check(said[key]) for key, check in _POLICY_CHECKS.items() if key in said}
    _check_one_meaning(policy)
    if "host" not in said:
        _check_returnable(policy)
    if "delay" in said and "run_at" in said:
        raise InvalidInput(
            f"Both delay {said['delay']!r} and run_at {said['run_at']!r} are given: give one."
        )
    if "unique_for" in said and "unique_key" not in said:
        raise InvalidInput("unique_for is given without unique_key: give both.")
    if "concurrency" in said and "concurrency_key" not in said:
        raise InvalidInput(
            "concurrency is given without concurrency_key: give both, "
            "or set the limit of the whole queue instead."
        )
    placed = {
        field: check(said[key]) for key, (field, check) in _PLAN_CHECKS.items() if key in said
    }
    queue = check_name(said.get("queue", default_queue), "queue")
    return Plan(queue=queue, policy=_encode(policy) if policy else "{}", owner=owner, **placed)


def said_fields(options: Options) -> frozenset[str]:
    """Which fields of a plan the options speak of; `policy` where any policy is named."""
    said = options.said()
    fields_said = {field for key, (field, _) in _PLAN_CHECKS.items() if key in said}
    if said.keys() & _POLICY_CHECKS.keys():
        fields_said.add("policy")
    if "queue" in said:
        fields_said.add("queue")
    return frozenset(fields_said)


def encode_json(value: Any, what: str, limit: int) -> str:
    """JSON text that every engine can keep, or one sentence about why not."""
    try:
        text = "".join(_chunks(value, 0))
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidArguments(
            f"The {what} contain {shown(error.object[error.start])}, a lone surrogate: bytes that "
            "were no UTF-8 text; decode them properly or pass them as base64."
        ) from None
    except RecursionError:
        raise InvalidArguments(
            f"The {what} are nested too deeply or contain themselves: pass plain values."
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidArguments(
            f"The {what} are not JSON ({error}): "
            "pass text, finite numbers, booleans, None, lists and dicts."
        ) from None
    if "\\u0000" in text and re.search(_REAL_NUL, text):
        raise InvalidArguments(
            f"The {what} contain a NUL character, which text in a database cannot hold: "
            "remove it or pass base64."
        )
    if size > limit:
        raise InvalidArguments(
            f"The {what} take {size:,} bytes, over the limit of {limit:,} (max_payload): "
            "put the data in a file and pass its path, or raise the limit."
        )
    return text


def clean_text(value: object, what: str, limit: int = MAX_TEXT) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"The {what} {shown(value)} is not text: give at least one character.")
    if len(value) > limit:
        raise InvalidInput(
            f"The {what} {value[:20]!r}... has {len(value):,} characters: give at most {limit:,}."
        )
    if flaw := flaw_of(value):
        raise InvalidInput(f"The {what} {shown(value)} contains {flaw}: give plain text.")
    return value


def storable_text(value: object, what: str) -> str:
    """Text for people to read, such as an error: what no engine can keep is replaced by �."""
    if not isinstance(value, str):
        raise InvalidInput(f"The {what} {shown(value)} is not text: give str(...) of it.")
    return value.encode("utf-8", "replace").decode().replace("\0", "�")


def flaw_of(value: str) -> str | None:
    """What keeps it from being text that every engine can keep, as a part of a sentence."""
    if "\0" in value:
        return "a NUL character"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "bytes that are not UTF-8 (a lone surrogate)"
    return None


def check_name(value: object, what: str) -> str:
    """The name of a queue, host or worker: it stands in files, commands and patterns."""
    text = clean_text(value, what, 100)
    if not _NAME.fullmatch(text):
        raise InvalidInput(
            f"The {what} {shown(value)} is not a name: "
            "use letters, digits and . _ : @ -, starting with a letter or digit."
        )
    return text


def check_when(value: object) -> str:
    from svcq.conditions import check_condition

    return check_condition(clean_text(value, "condition"))


def check_job_name(value: object) -> str:
    text = clean_text(value, "name")
    if text.isdigit():
        raise InvalidInput(f"The name {shown(value)} is all digits, like an id: add a letter.")
    return text


def check_int(value: object, what: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInput(
            f"The {what} {shown(value)} is not a whole number from {low:,} to {high:,}: give one."
        )
    return value


def check_number(value: object, what: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidInput(f"The {what} {shown(value)} is not a number from {low:g} to {high:g}.")
    return float(value)


def check_choice(value: object, what: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InvalidInput(f"The {what} {shown(value)} is unknown: use {' or '.join(choices)}.")
    return str(value)


def parse_size(value: object, what: str) -> int:
    """`65536`, `"512K"`, `"2G"`: bytes."""
    found = re.fullmatch(_SIZE, value.strip().upper()) if isinstance(value, str) else None
    if found:
        size = int(float(found[1]) * 1024 ** " KMGT".index(found[2] or " "))
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        raise InvalidInput(
            f"The {what} {shown(value)} is not a size: give bytes, or words such as 64K, 512M, 2G."
        )
    if not 4096 <= size <= 1 << 50:
        raise InvalidInput(f"The {what} {shown(value)} is out of range: give 4K to 1024T.")
    return size


def check_bool(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"The option {what} is {shown(value)}: give True or False.")
    return value


def _check_timeout(value: Any) -> int:
    timeout = parse_duration(value, "timeout")
    if timeout == 0:
        raise InvalidInput(
            f"The timeout {shown(value)} would end every run at once: give a longer one, "
            "or none at all."
        )
    return timeout


def _check_one_meaning(policy: Mapping[str, Any]) -> None:
    """An exit code can only mean one thing."""
    meaning: dict[int, str] = {}
    for name in ("success", "retry_on", "reject"):
        for code in policy.get(name, ()):
            if meaning.setdefault(code, name) != name:
                raise InvalidInput(
                    f"The exit code {code} is in {meaning[code]} and in {name}: "
                    "give it one meaning."
                )


def _check_returnable(policy: Mapping[str, Any]) -> None:
    """Whoever waits for an exit code that no process here can have waits for ever. A job for a
    machine by name is spared: that one may run another system."""
    for name in ("success", "retry_on", "reject"):
        for code in policy.get(name, ()):
            if code not in EXIT_CODES:
                codes = f"{EXIT_CODES[0]:,} to {EXIT_CODES[-1]:,}"
                raise InvalidInput(
                    f"The exit code {code:,} in {name} is none that a process here can have: give "
                    f"{codes}, or name the machine of another system that it is for as host."
                )


def _check_codes(value: object, what: str) -> list[int]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInput(f"The option {what} is {shown(value)}: give a list of exit codes.")
    return [check_int(code, f"exit code in {what}", -(2**31), 2**32 - 1) for code in value]


def _check_parents(value: object, what: str) -> tuple[int, ...]:
    given = [value] if isinstance(value, int) else value
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput(f"The option {what} is {shown(value)}: give a job id or a list of them.")
    if len(given) > MAX_PARENTS:
        raise InvalidInput(
            f"The option {what} names {len(given):,} jobs: give at most {MAX_PARENTS:,}."
        )
    return tuple(dict.fromkeys(check_int(one, f"job id in {what}", 1, 2**62) for one in given))


def _check_tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) > MAX_TAGS:
        raise InvalidInput(f"The tags {shown(value)} are not a list of at most {MAX_TAGS} words.")
    return tuple(sorted({check_name(tag, "tag") for tag in value}))


def _check_env(value: object) -> str:
    if not isinstance(value, Mapping):
        raise InvalidInput("The environment is not a mapping of names to text.")
    for name, text in value.items():
        if not isinstance(text, str):
            raise InvalidInput(
                f"The environment variable {shown(name)} is {shown(text)}: give text."
            )
        if not isinstance(name, str) or not name or "=" in name:
            raise InvalidInput(
                f"The environment variable {shown(name)} has no usable name: "
                "give text without =, such as PATH."
            )
        if flaw := flaw_of(name + text):
            raise InvalidInput(
                f"The environment variable {shown(name)} contains {flaw}: "
                "give plain text, or leave it out."
            )
    return encode_json(dict(sorted(value.items())), "environment variables", 1 << 20)


_POLICY_CHECKS: Mapping[str, Any] = {
    "max_attempts": lambda v: check_int(v, "max_attempts", 1, 1000),
    "backoff": lambda v: check_choice(v, "backoff", ("exponential", "linear", "fixed")),
    "backoff_base": lambda v: check_number(v, "backoff_base", 0, 86400),
    "backoff_cap": lambda v: parse_duration(v, "backoff_cap"),
    "jitter": lambda v: check_number(v, "jitter", 0, 1),
    "timeout": _check_timeout,
    "grace": lambda v: parse_duration(v, "grace"),
    "on_lost": lambda v: check_choice(v, "on_lost", ("retry", "dead")),
    "max_losses": lambda v: check_int(v, "max_losses", 0, 1000),
    "max_interruptions": lambda v: check_int(v, "max_interruptions", 0, 1_000_000),
    "success": lambda v: _check_codes(v, "success"),
    "retry_on": lambda v: _check_codes(v, "retry_on"),
    "reject": lambda v: _check_codes(v, "reject"),
    "notify": lambda v: check_bool(v, "notify"),
    "tty": lambda v: check_bool(v, "tty"),
    "max_output": lambda v: parse_size(v, "max_output"),
    "when_over": lambda v: check_choice(v, "when_over", ("drop", "end")),
    "nice": lambda v: check_int(v, "nice", -20, 19),
    "cpus": lambda v: check_int(v, "cpus", 1, 4096),
    "memory": lambda v: parse_size(v, "memory"),
    "keep_awake": lambda v: check_choice(v, "keep_awake", ("mains", "always", "never")),
}


POLICY_NAMES = tuple(_POLICY_CHECKS)


def check_policy(key: str, value: object) -> Any:
    """One policy, as a queue may set it for its jobs."""
    return _POLICY_CHECKS[key](value)


def check_layer(layer: object) -> str:
    """Policies as the store keeps them; what a newer program knows may pass."""
    try:
        said = json.loads(layer) if isinstance(layer, str) else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise InvalidInput(f"The policies {shown(layer)} are not a JSON object.")
    for name, value in said.items():
        if name in DURATIONS:
            check_int(value, name, 0, 1 << 53)
        elif name in _POLICY_CHECKS:
            _POLICY_CHECKS[name](value)
    return str(layer)


_PLAN_CHECKS: Mapping[str, tuple[str, Any]] = {
    "priority": ("priority", lambda v: check_int(v, "priority", -MAX_PRIORITY, MAX_PRIORITY)),
    "delay": ("delay_ms", lambda v: parse_duration(v, "delay")),
    "run_at": ("run_at", lambda v: parse_moment(v, "run_at")),
    "expires": ("expires_ms", lambda v: parse_duration(v, "expires")),
    "hold": ("held", lambda v: check_bool(v, "hold")),
    "name": ("name", check_job_name),
    "tags": ("tags", _check_tags),
    "unique_key": ("unique_key", lambda v: clean_text(v, "unique_key")),
    "unique_for": ("unique_ms", lambda v: parse_duration(v, "unique_for")),
    "on_duplicate": (
        "on_duplicate",
        lambda v: check_choice(v, "on_duplicate", ("existing", "refuse", "replace")),
    ),
    "after": ("after", lambda v: _check_parents(v, "after")),
    "after_any": ("after_any", lambda v: _check_parents(v, "after_any")),
    "if_parent_fails": (
        "orphaned",
        lambda v: check_choice(v, "if_parent_fails", ("cancel", "wait")),
    ),
    "when": ("condition", check_when),
    "host": ("host", lambda v: check_name(v, "host")),
    "concurrency_key": ("key", lambda v: clean_text(v, "concurrency_key")),
    "concurrency": ("key_concurrency", lambda v: check_int(v, "concurrency", 1, 1_000_000)),
    "cwd": ("cwd", lambda v: clean_text(v, "directory", 4096)),
    "env": ("env", _check_env),
}


class Policy(NamedTuple):
    """What holds for one run. Durations in milliseconds."""

    max_attempts: int
    backoff: str
    backoff_base: float
    backoff_cap: int
    jitter: float
    timeout: int | None
    grace: int
    on_lost: str
    max_losses: int
    max_interruptions: int
    success: tuple[int, ...] = (0,)
    retry_on: tuple[int, ...] = ()
    reject: tuple[int, ...] = ()
    notify: bool = False
    tty: bool = False
    max_output: int | None = None
    when_over: str = "drop"  # over max_output: drop the middle of it, or end the job
    nice: int | None = None
    cpus: int | None = None
    memory: int | None = None
    keep_awake: str = "mains"  # the machine, while it runs: on mains power, always or never

    @property
    def bounds(self) -> Bounds:
        from svcq.jobs import Bounds

        losses = 0 if self.on_lost == "dead" else self.max_losses
        return Bounds(self.max_attempts, losses, self.max_interruptions)

    def retry_delay(self, failures: int) -> int:
        """How long to wait after the given number of failures, in milliseconds."""
        if self.backoff == "exponential":
            # A float overflows near 2**1024; past the cap the exact power no longer matters.
            seconds = self.backoff_base ** min(failures, 64)
        elif self.backoff == "linear":
            seconds = self.backoff_base * failures
        else:
            seconds = self.backoff_base
        ms = min(seconds * 1000, self.backoff_cap)
        from random import uniform

        return round(ms * (1 + self.jitter * uniform(-1, 1)))


def policy_of(defaults: JobDefaults, *layers: str) -> Policy:
    """The defaults of the configuration under JSON layers, the last of which wins."""
    policy = Policy(
        max_attempts=defaults.max_attempts,
        backoff=defaults.backoff,
        backoff_base=defaults.backoff_base,
        backoff_cap=defaults.backoff_cap,
        jitter=defaults.jitter,
        timeout=defaults.timeout,
        grace=defaults.grace,
        on_lost=defaults.on_lost,
        max_losses=defaults.max_losses,
        max_interruptions=defaults.max_interruptions,
        keep_awake=defaults.keep_awake,
    )
    for layer in layers:
        if layer != "{}":
            said = json.loads(layer)
            # A newer program may have written options this one does not know.
            policy = policy._replace(**{k: v for k, v in said.items() if k in Policy._fields})
    return policy


def shown_policy(said: str) -> dict[str, Any]:
    """A layer of policies as people see it: durations in seconds, as they are given."""
    shown: dict[str, Any] = json.loads(said)
    for name in DURATIONS & shown.keys():
        shown[name] /= 1000
    return shown


DURATIONS = {"backoff_cap", "timeout", "grace"}
