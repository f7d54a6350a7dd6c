"""Everything that can be said about a job, as flags: for `add`, `edit` and schedules."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from svcq.cli.parser import Namespace, flat, number, whole, words_of
from svcq.errors import InvalidInput

if TYPE_CHECKING:
    from svcq.client import Client


class Flag(NamedTuple):
    flag: str
    option: str  # its name in svcq.Options
    metavar: str | None  # None for a flag without a value
    about: str
    read: Callable[[str, str], Any] = lambda text, _: text
    repeats: bool = False


def _moment(text: str, _: str) -> float:
    from svcq.when import parse_time

    return parse_time(text).timestamp()


def _codes(text: str, what: str) -> list[int]:
    return [whole(word, what) for word in words_of(text)]


def _words(text: str, _: str) -> list[str]:
    return words_of(text)


GROUPS: Mapping[str, list[Flag]] = {
    "what it is": [
        Flag("--queue", "queue", "QUEUE", "the queue it goes to"),
        Flag("--name", "name", "NAME", "a name, unique among unfinished jobs; not all digits"),
        Flag("--tag", "tags", "TAG", "a word to find it by; may be repeated", _words, True),
        Flag("--priority", "priority", "N", "higher goes first, -1000 to 1000", whole),
        Flag("--notify", "notify", None, "tell when it has ended"),
    ],
    "when it runs": [
        Flag("--in", "delay", "TIME", "not before this has passed, such as 90m"),
        Flag("--at", "run_at", "TIME",
             "not before: 03:00, tomorrow 03:00, fri 18:30, 2031-05-01 03:00", _moment),
        Flag("--expires", "expires", "TIME", "dead if it has not started by then, such as 2h"),
        Flag("--hold", "hold", None, "park it until it is released"),
        Flag("--after", "after", "JOB", "when these jobs have completed: 12,13", _words, True),
        Flag("--after-any", "after_any", "JOB", "when these jobs have ended, however", _words,
             True),
        Flag("--if-parent-fails", "if_parent_fails", "cancel|wait",
             "what becomes of it when such a job fails"),
        Flag("--when", "when", "CONDITION", "start only while this holds: "
             "ac-power, battery>30, idle>10m, load<2, unmetered"),
        Flag("--host", "host", "HOST", "only on this machine"),
        Flag("--key", "concurrency_key", "KEY", "jobs with the same key share a limit"),
        Flag("--key-limit", "concurrency", "N", "how many with that key run at once", whole),
    ],
    "when it fails": [
        Flag("--max-attempts", "max_attempts", "N", "how often it may run", whole),
        Flag("--backoff", "backoff", "exponential|linear|fixed", "how the wait between grows"),
        Flag("--backoff-base", "backoff_base", "SECONDS", "the base of that wait", number),
        Flag("--backoff-cap", "backoff_cap", "TIME", "the longest such wait"),
        Flag("--jitter", "jitter", "PART", "by which part that wait varies, 0 to 1", number),
        Flag("--timeout", "timeout", "TIME", "how long one run may take"),
        Flag("--grace", "grace", "TIME", "from asking it to end to killing it"),
        Flag("--success", "success", "CODES", "exit codes that mean success, such as 0,3",
             _codes),
        Flag("--retry-on", "retry_on", "CODES", "exit codes that mean: try again", _codes),
        Flag("--reject", "reject", "CODES", "exit codes that mean: never again", _codes),
        Flag("--on-lost", "on_lost", "retry|dead", "when its worker died"),
        Flag("--max-losses", "max_losses", "N", "how often it may lose its worker", whole),
        Flag("--max-interruptions", "max_interruptions", "N",
             "how often it may be interrupted", whole),
    ],
    "what it may use": [
        Flag("--nice", "nice", "N", "how politely it runs, -20 to 19", whole),
        Flag("--cpus", "cpus", "N", "how many processors it may use", whole),
        Flag("--memory", "memory", "SIZE", "how much memory it may use, such as 2G"),
        Flag("--keep-awake", "keep_awake", "mains|always|never",
             "whether the machine stays awake meanwhile"),
        Flag("--tty", "tty", None, "give it a pseudo-terminal"),
        Flag("--max-output", "max_output", "SIZE", "how much output is kept, such as 10M"),
        Flag("--when-over", "when_over", "drop|end", "past that: drop the middle, or end the job"),
    ],
    "only once": [
        Flag("--unique", "unique_key", "KEY", "one unfinished job with this key in its queue"),
        Flag("--unique-for", "unique_for", "TIME", "and none for so long after it was added"),
        Flag("--on-duplicate", "on_duplicate", "existing|refuse|replace",
             "if there is one: name it (the default), refuse, or replace it while it waits"),
    ],
}  # fmt: skip

FLAGS = [flag for group in GROUPS.values() for flag in group]

# A schedule says when, and comes after nothing; its own jitter is another.
_OF_ONE_JOB = ("run_at", "after", "after_any", "if_parent_fails")
OF_SCHEDULES: Mapping[str, list[Flag]] = {
    title: [
        flag._replace(flag="--backoff-jitter") if flag.option == "jitter" else flag
        for flag in flags if flag.option not in _OF_ONE_JOB
    ]
    for title, flags in GROUPS.items()
}  # fmt: skip


def add_options(parser: argparse.ArgumentParser, groups: Mapping[str, list[Flag]] = GROUPS) -> None:
    for title, flags in groups.items():
        group = parser.add_argument_group(title)
        for flag in flags:
            _add(group, flag)


def _add(group: argparse._ArgumentGroup, flag: Flag) -> None:
    settings: dict[str, Any] = {"dest": flag.option, "help": flag.about, "default": None}
    if flag.metavar is None:
        group.add_argument(flag.flag, action="store_true", **settings)
        return
    if "|" in flag.metavar:
        settings["choices"] = flag.metavar.split("|")
    else:
        settings["metavar"] = flag.metavar
    if flag.repeats:
        settings["action"] = "append"
    group.add_argument(
        flag.flag,
        type=lambda text: flag.read(text, flag.flag.removeprefix("--")),
        **settings,
    )


def said_options(options: Namespace, client: Client) -> dict[str, Any]:
    """What the flags say, by the names of svcq.Options."""
    said = {}
    for flag in FLAGS:
        value = getattr(options, flag.option, None)
        if value is None:
            continue
        if flag.repeats:
            value = flat(value)
        if flag.option in ("after", "after_any"):
            value = [client.get(parent).id for parent in value]
        said[flag.option] = value
    if "delay" in said and "run_at" in said:
        raise InvalidInput("Both --in and --at are given: give one.")
    return said
