"""Why a job is where it is: one or two sentences for each state, with the numbers behind them.

`explain` is pure: facts in, sentences out. Of several things that keep a job from starting, the one
that would have to change first is told.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from svcq.conditions import Verdict, judge
from svcq.host.facts import fact
from svcq.jobs import Job, State
from svcq.later import Later
from svcq.store import LONGEST_LINE, Facts, Limit, Parent, Running, Store, Worker
from svcq.times import DAY, HOUR, MINUTE, SECOND, iso

if TYPE_CHECKING:
    import signal

    from svcq.host import processes
else:
    signal = Later("signal")
    processes = Later("svcq.host.processes")

# A worker that could take a job has done so by then.
PATIENCE = 5 * SECOND
_NAMED = 3  # jobs named one by one in a sentence
_LONGEST_ERROR = 200
_START_ONE = "start one: svcq worker start"


class Why(NamedTuple):
    job: int
    state: State
    cause: str  # one word for programs, such as `paused` or `queue_limit`
    text: str
    at: int | None = None  # when that changes by itself, if anyone can say
    jobs: tuple[int, ...] = ()  # the other jobs it is about
    in_front: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "job": self.job, "state": self.state.value, "cause": self.cause, "why": self.text,
            "at": iso(self.at), "jobs": list(self.jobs), "in_front": self.in_front,
        }  # fmt: skip


class Cause(NamedTuple):
    """The answer before it has a job's number and state in front of it."""

    word: str
    says: str
    at: int | None = None
    jobs: tuple[int, ...] = ()


def why(store: Store, job: int) -> Why:
    """Look at the store and, for what it says of this machine, at the machine."""
    facts = store.facts(job)
    here = socket.gethostname()

    def lives(worker: Worker) -> bool:
        if worker.lease_until is not None:
            return worker.lease_until >= facts.now
        if worker.host != here:
            return True  # who looks after that machine would have ended it
        # `born` also numbers the workers of one process.
        born = (worker.born or "").partition("-")[0]
        same_boot = worker.boot == processes.boot_id()
        return same_boot and processes.process_born(worker.pid) == born

    def left_over() -> list[int]:
        marker = f"{job}.{facts.job.run}.{store.id()}"
        return [one.pid for one in processes.tree_of(marker)]

    def judged(condition: str) -> Verdict:
        if facts.job.host not in (None, here):
            return Verdict(None, f"that is for {facts.job.host} to tell")
        return judge(condition, fact)

    return explain(facts, lives, left_over, judged)


def explain(
    facts: Facts,
    lives: Callable[[Worker], bool],
    left_over: Callable[[], Sequence[int]] = tuple,
    judged: Callable[[str], Verdict] = lambda _: Verdict(None, "nobody has looked"),
) -> Why:
    """`lives` says whether a worker is still there, `left_over` which processes a lost run left,
    `judged` whether a condition holds on this machine."""
    job = facts.job
    match job.state:
        case State.PENDING:
            cause = _pending(facts, lives, judged)
        case State.PROCESSING:
            cause = _processing(facts, lives, left_over)
        case State.SCHEDULED:
            cause = _scheduled(facts, lives)
        case State.RETRYING:
            cause = _retrying(facts, lives)
        case State.BLOCKED:
            cause = _blocked(facts)
        case State.HELD:
            cause = Cause("held", f"it is parked until someone lets it go: svcq release {job.id}.")
        case State.COMPLETED:
            cause = _completed(job)
        case State.DEAD:
            cause = _dead(job)
        case State.CANCELLED:
            cause = _cancelled(job)
    in_front = facts.in_front if job.state is State.PENDING else None
    text = f"{job.state}: {cause.says}"
    return Why(job.id, job.state, cause.word, text, cause.at, cause.jobs, in_front)


# Pending


def _pending(
    facts: Facts, lives: Callable[[Worker], bool], judged: Callable[[str], Verdict]
) -> Cause:
    queue = facts.queue
    if queue.paused:
        return Cause("paused", f"queue {queue.name} is paused: svcq resume {queue.name}")
    cause = (
        _nobody(facts, lives)
        or _at_a_limit(facts)
        or _rated(facts)
        or _conditional(facts, judged)
        or _taken_or_not(facts, lives)
    )
    return cause._replace(says=f"{cause.says}{_line(facts)}")


def _nobody(facts: Facts, lives: Callable[[Worker], bool]) -> Cause | None:
    """Whether there is no worker at all that could take it."""
    living = [worker for worker in facts.workers if lives(worker)]
    host = facts.job.host
    if host is not None:
        living = [worker for worker in living if worker.host == host]
    where = "" if host is None else f" on {host}, where alone it may run"
    remedy = _START_ONE if host is None else f"{_START_ONE} there"
    if not living:
        died = len(facts.workers) if host is None else 0
        lost = "" if not died else f" ({_counted(died, 'worker')} died)"
        return Cause("no_worker", f"no worker is alive{where}{lost}; {remedy}.")
    if all(worker.state == "draining" for worker in living):
        return Cause("draining", f"every worker{where} is ending and takes nothing new; {remedy}.")
    return None


def _at_a_limit(facts: Facts) -> Cause | None:
    name = facts.queue.name
    limit = facts.queue_limit
    if limit is not None and limit.most == 0:
        return Cause(
            "queue_limit", f"queue {name} has a limit of 0, so nothing in it starts: "
            f"svcq queue set {name} concurrency=",
        )  # fmt: skip
    if limit is not None and limit.running >= limit.most:
        return _limited(
            "queue_limit", f"queue {name} is at its limit of {limit.most:,}", limit, facts
        )
    limit = facts.key_limit
    if limit is not None and limit.running >= limit.most:
        what = f"key {facts.job.concurrency_key} is at its limit of {limit.most:,}"
        return _limited("key_limit", what, limit, facts)
    return None


def _limited(word: str, what: str, limit: Limit, facts: Facts) -> Cause:
    running = limit.jobs
    names = _names([one.id for one in running], max(limit.running, len(running)))
    verb = "is" if limit.running == 1 else "are"
    says = f"{what}; {names} {verb} running"
    first = _first_to_end(running, facts)
    if first is not None:
        says += f", {first[0] if limit.running > 1 else 'it'} ends in about {_span(first[1])}"
    at = None if first is None else facts.now + first[1]
    return Cause(word, f"{says}.", at, tuple(one.id for one in running))


def _first_to_end(running: Sequence[Running], facts: Facts) -> tuple[int, int] | None:
    """The job that ends first, and in how many milliseconds, if that can be told."""
    left = [
        (ms, one.id)
        for one in running
        if (ms := time_left(facts.now - one.started_at, one.progress, facts.usual_ms)) is not None
    ]
    if not left:
        return None
    ms, job = min(left)
    return job, ms


def time_left(elapsed: int, progress: float | None, usual: int | None) -> int | None:
    """From what it says of itself, or else from what others took; None when nobody can tell."""
    if progress is not None and progress > 0:
        return round(elapsed * (1 - progress) / progress)
    if usual is None or elapsed >= usual:
        return None
    return usual - elapsed


def _rated(facts: Facts) -> Cause | None:
    queue = facts.queue
    if queue.rate is None or facts.next_start is None or facts.next_start <= facts.now:
        return None
    starts, period = queue.rate
    wait = _span(facts.next_start - facts.now)
    return Cause(
        "rate",
        f"queue {queue.name} starts at most {starts:,} in {_span(period)}, "
        f"and the next may start in {wait}.",
        facts.next_start,
    )


def _conditional(facts: Facts, judged: Callable[[str], Verdict]) -> Cause | None:
    """What it waits for and does not hold: its own condition, or that of its queue."""
    queue = facts.queue
    for who, condition in (
        ("it waits", facts.job.condition),
        (f"queue {queue.name} waits", queue.options.get("when")),
    ):
        if not condition:
            continue
        holds, says = judged(condition)
        if holds is None:
            says = f"{who} for {condition}, and whether that holds is unknown: {says}."
            return Cause("condition", says)
        if not holds:
            return Cause("condition", f"{who} for {condition}: {says}.")
    return None


def _taken_or_not(facts: Facts, lives: Callable[[Worker], bool]) -> Cause:
    job = facts.job
    living = _working(facts, lives)
    full = _busy(living)
    if full is not None:
        return full
    slots, used = _slots(living)
    busy = _counted(len(living), "worker")
    # Since when a condition holds, nobody knows: a worker may be about to notice.
    conditional = job.condition is not None or "when" in facts.queue.options
    waited = 0 if conditional else facts.now - (facts.ready_at or facts.now)
    # While workers run what is in front of it, its turn may come; when all stand idle, it does not.
    if waited < PATIENCE or (facts.in_front and (used or conditional)):
        free = f"{slots - used:,} of {_counted(slots, 'slot')} free"
        return Cause("soon", f"it starts as soon as its turn comes; {busy} with {free}.")
    which = f"queue {job.queue}"
    if job.task is not None:
        told = "svcq project add tells where tasks are to workers started after it"
        which += f" and the task {job.task} ({told})"
    has = "has a free slot" if len(living) == 1 else "have free slots"
    none = "it does not take it" if len(living) == 1 else "none takes it"
    return Cause("not_served", f"{busy} {has}, but {none}; start one that serves {which}.")


def _working(facts: Facts, lives: Callable[[Worker], bool]) -> list[Worker]:
    """The workers that take new jobs where it may run."""
    host = facts.job.host
    living = [one for one in facts.workers if lives(one) and one.state == "running"]
    return [one for one in living if host in (None, one.host)]


def _slots(workers: Sequence[Worker]) -> tuple[int, int]:
    """How many they have, and how many of these are in use."""
    return sum(one.slots for one in workers), sum(one.running for one in workers)


def _busy(workers: Sequence[Worker]) -> Cause | None:
    slots, used = _slots(workers)
    if used < slots:
        return None
    which = f"all {slots:,} slots" if slots > 1 else "the only slot"
    verb = "is" if slots == 1 else "are"
    return Cause("busy", f"{which} of {_counted(len(workers), 'worker')} {verb} in use.")


def _line(facts: Facts) -> str:
    n = facts.in_front
    if n > LONGEST_LINE:
        return f" More than {LONGEST_LINE:,} jobs are in front of it."
    if n:
        return f" {_counted(n, 'job')} {'is' if n == 1 else 'are'} in front of it."
    return ""


# Waiting for something else


def _scheduled(facts: Facts, lives: Callable[[Worker], bool]) -> Cause:
    job = facts.job
    at = _ms(job.run_at) or facts.now
    asked = "its task asked for a later time; " if job.snoozes else ""
    if job.snoozes and job.error:
        asked = f"it {_first_line(job.error)}; "
    if at > facts.now:
        says = f"{asked}its time is in {_span(at - facts.now)}, at {clock_time(job.run_at)}."
        return Cause("time", says, at)
    late = _late(facts, lives, at, "time")
    return late._replace(says=f"{asked}{late.says}")


def _retrying(facts: Facts, lives: Callable[[Worker], bool]) -> Cause:
    job = facts.job
    at = _ms(job.run_at) or facts.now
    failed = f"attempt {job.failures} of {job.max_attempts} failed{_because(job)}"
    if at > facts.now:
        when = f"the next is in {_span(at - facts.now)}, at {clock_time(job.run_at)}"
        return Cause("failed", f"{failed}; {when}.", at)
    late = _late(facts, lives, at, "failed")
    return late._replace(says=f"{failed}; {late.says}")


def _late(facts: Facts, lives: Callable[[Worker], bool], at: int, word: str) -> Cause:
    """Its time has come, and the next claim of any worker lets it go."""
    said = f"its time came {_span(facts.now - at)} ago"
    nobody = _nobody(facts, lives)
    if nobody is not None:
        return Cause(nobody.word, f"{said}, but {nobody.says}", at)
    if facts.queue.paused:
        name = facts.queue.name
        return Cause("paused", f"{said}, but queue {name} is paused: svcq resume {name}", at)
    busy = _busy(_working(facts, lives))
    if busy is not None:
        return Cause(busy.word, f"{said}, but {busy.says}", at)
    return Cause(word, f"{said}; it starts as soon as its turn comes.", at)


def _blocked(facts: Facts) -> Cause:
    job, parents = facts.job, facts.parents
    failed = [one for one in parents if one.needs == "success" and _ended_badly(one)]
    ids = tuple(one.id for one in parents)
    if failed:
        first = failed[0]
        says = (
            f"job {first.id}, which must complete first, is {first.state}, and this one was told "
            f"to wait all the same: svcq retry {first.id}, or svcq cancel {job.id}"
        )
        return Cause("parent_failed", says, jobs=ids)
    waits = [f"{one.id} ({one.state})" for one in parents[:_NAMED]]
    if len(parents) > _NAMED:
        waits.append(f"{len(parents) - _NAMED:,} more")
    noun = "job" if len(parents) == 1 else "jobs"
    ends = {one.needs for one in parents}
    goal = {"success": "to complete", "end": "to end"}.get(ends.pop() if len(ends) == 1 else "", "")
    return Cause("parents", f"it waits for {noun} {_and(waits)} {goal or 'to end'}.", jobs=ids)


def _ended_badly(parent: Parent) -> bool:
    return parent.state in (State.DEAD, State.CANCELLED)


# Running


def _processing(
    facts: Facts, lives: Callable[[Worker], bool], left_over: Callable[[], Sequence[int]]
) -> Cause:
    job = facts.job
    elapsed = facts.now - (_ms(job.started_at) or facts.now)
    worker = next((one for one in facts.workers if one.id == job.worker), None)
    if worker is None or not lives(worker):
        return _lost(job, worker, left_over())
    said = f"worker {worker.id} on {worker.host} (pid {worker.pid}) has run it for {_span(elapsed)}"
    if job.cancel_requested:
        grace = _span(facts.policy.grace)
        says = (
            f"{said}; it was asked to stop, and ends when its processes have: they have {grace} "
            "to do so, then they are killed."
        )
        return Cause("stopping", says)
    if job.paused:
        says = f"{said}; it stands still: svcq resume --job {job.id} lets it go on."
        return Cause("paused", says)
    left = time_left(elapsed, job.progress, facts.usual_ms)
    parts = [said]
    if job.progress is not None:
        note = f" ({_first_line(job.progress_note)})" if job.progress_note else ""
        parts.append(f"{job.progress:.0%} done{note}")
    if left is not None:
        parts.append(f"it ends in about {_span(left)}")
    if facts.policy.timeout is not None:
        parts.append(f"its timeout is in {_span(max(facts.policy.timeout - elapsed, 0))}")
    at = None if left is None else facts.now + left
    return Cause("running", f"{'; '.join(parts)}.", at)


def _lost(job: Job, worker: Worker | None, pids: Sequence[int]) -> Cause:
    who = f"worker {job.worker}"
    if worker is not None:
        who += f" (pid {worker.pid} on {worker.host})"
    if pids:
        named = ", ".join(map(str, pids))
        noun = "process" if len(pids) == 1 else "processes"
        return Cause(
            "left_over", f"{who} died, and the job goes back when its {noun} {named} "
            f"{'is' if len(pids) == 1 else 'are'} gone; a worker sees to that: svcq worker start",
        )  # fmt: skip
    return Cause("lost", f"{who} died; the next worker on its machine gives it back: "
                 "svcq worker start")  # fmt: skip


# Ended


def _completed(job: Job) -> Cause:
    took = (_ms(job.finished_at) or 0) - (_ms(job.started_at) or 0)
    code = "" if job.exit_code is None else f" with exit code {job.exit_code}"
    again = f" It failed {_times(job.failures)} before." if job.failures else ""
    says = f"it took {_span(max(took, 0))} and ended well{code}, at {clock_time(job.finished_at)}."
    return Cause("completed", f"{says}{again}")


def _dead(job: Job) -> Cause:
    remedy = f"svcq retry {job.id} runs it again."
    match job.reason:
        case "expired":
            says = f"it was to start before {clock_time(job.expires_at)} and did not."
            if job.expires_at is None:
                says = "it had not started by the time it was to."
            return Cause("expired", f"{says} {remedy}")
        case "out of attempts":
            tries = f"attempt {job.failures} of {job.max_attempts} failed"
            return Cause("out_of_attempts", f"{tries}{_because(job)}.{_hint(job)} {remedy}")
        case "timed out":
            tries = f"attempt {job.failures} of {job.max_attempts} took too long"
            return Cause("timed_out", f"{tries}{_because(job)}. {remedy}")
        case "rejected":
            says = f"it was given up at once{_because(job)}.{_hint(job)}"
            return Cause("rejected", f"{says} {remedy}")
        case "lost too often":
            return Cause(
                "lost", f"it lost its worker {_times(job.losses)}{_because(job)}. {remedy}"
            )
        case "interrupted too often":
            says = f"it was interrupted {_times(job.interruptions)}{_because(job)}."
            return Cause("interrupted", f"{says} {remedy}")
    return Cause("dead", f"{job.reason or 'nobody said why'}{_because(job)}. {remedy}")


def _cancelled(job: Job) -> Cause:
    reason = job.reason or "nobody said why"
    parent = next((one for one in job.after if reason.startswith(f"job {one},")), None)
    at = "" if job.finished_at is None else f", at {clock_time(job.finished_at)}"
    if parent is not None:
        remedy = f"svcq retry {parent} brings both back."
        return Cause("parent_failed", f"{reason}{at}. {remedy}", jobs=(parent,))
    return Cause("cancelled", f"{reason}{at}. svcq retry {job.id} runs it again.")


def _because(job: Job) -> str:
    """The last error, in brackets; nothing when there was none."""
    if not job.error:
        return ""
    return f" ({_first_line(job.error)})"


def _hint(job: Job) -> str:
    """What an exit code means to those who know the shell."""
    code = job.exit_code
    if code is None:
        return ""
    if code == 127:
        return " Exit code 127 says that the command was not found: check its name and PATH."
    if code == 126:
        return " Exit code 126 says that the file cannot be run: check its permissions."
    number = -code if code < 0 else code - 128 if 128 < code < 160 else 0
    name = _signal_name(number)
    if name == "SIGKILL":
        return f" {name} ended it; often that is the system, out of memory."
    return f" {name} ended it." if name else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


# Words


def _names(ids: Sequence[int], total: int) -> str:
    """`job 7`, `jobs 7 and 9`, `jobs 7, 9, 11 and 4 more`."""
    if not ids:
        return _counted(total, "job")
    words = [str(one) for one in ids[:_NAMED]]
    if total > len(words):
        words.append(f"{total - len(words):,} more")
    return f"{'job' if total == 1 else 'jobs'} {_and(words)}"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _span(ms: int) -> str:
    """As one would say it: `350 ms`, `40 s`, `4 min`, `1 h 30 min`, `3 d`."""
    if ms < SECOND:
        return f"{ms} ms"
    if ms < 90 * SECOND:
        return f"{round(ms / SECOND)} s"
    if ms < HOUR:
        return f"{round(ms / MINUTE)} min"
    big, small, unit, part = (DAY, HOUR, "d", "h") if ms >= 2 * DAY else (HOUR, MINUTE, "h", "min")
    whole, rest = divmod(round(ms / small), big // small)
    return f"{whole} {unit} {rest} {part}" if rest else f"{whole} {unit}"


def clock_time(moment: datetime | None) -> str:
    """A time as the clock on the wall shows it."""
    return "an unknown time" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * SECOND)


def _first_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    # Of a traceback the last line has the error; a sentence has but one.
    line = lines[-1] if len(lines) > 1 and lines[0].startswith("Traceback") else (lines or [""])[0]
    line = line.strip().rstrip(".")
    return line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}..."
