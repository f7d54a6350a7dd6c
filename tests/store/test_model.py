"""The store beside a naive model of its rules: the same verbs, the same answers, the same rows.

`SVCQ_MODEL_EXAMPLES=2000` makes it a long hunt.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from svcq.config import Config, load
from svcq.jobs import (
    FINISHED,
    TRANSITIONS,
    Claim,
    How,
    Outcome,
    State,
    cancelled,
    completed,
    failed,
    interrupted,
    lost,
    rejected,
    snoozed,
    timed_out,
)
from svcq.policy import NewJob, Options, make_plan
from svcq.store import Claimer, Report, Store, WorkerInfo, open_store
from tests.store.conftest import Desk
from tests.store.model import Asker, Defaults, End, Model, Run, Wish, error_class
from tests.store.tables import COUNTS, empty, look

DEFAULTS = Defaults(
    max_attempts=2,
    backoff_ms=5000,
    max_losses=1,
    max_interruptions=1,
    aging_ms=10_000,
    keep_ms=30_000,
)


def model_config(home: Path, environ: Mapping[str, str]) -> Config:
    config = load(home, environ)
    return config._replace(
        jobs=config.jobs._replace(
            max_attempts=DEFAULTS.max_attempts,
            backoff="fixed",
            backoff_base=DEFAULTS.backoff_ms / 1000,
            jitter=0.0,
            max_losses=DEFAULTS.max_losses,
            max_interruptions=DEFAULTS.max_interruptions,
        ),
        queues=config.queues._replace(aging=DEFAULTS.aging_ms),
        retention=config.retention._replace(
            completed=DEFAULTS.keep_ms,
            dead=DEFAULTS.keep_ms,
            cancelled=DEFAULTS.keep_ms,
        ),
    )


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


# What is drawn: few values each, so that they meet.

QUEUES = ("red", "blue", "letters")
SECONDS = st.sampled_from((1000, 5000, 10_000, 40_000))
NOBODY = 10**6

# Each run of the machine uses some of these, so that what it does use meets often.
FEATURES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "queues": {"queue": st.sampled_from(QUEUES[:2])},
    "kinds": {"task": st.sampled_from(("work", "play", ""))},
    "priorities": {"priority": st.integers(-1, 2)},
    "keys": {
        "key": st.sampled_from(("", "disk", "user")),
        "key_limit": st.sampled_from((None, None, 1, 2)),
    },
    "hosts": {"host": st.sampled_from(("", "here"))},
    "conditions": {"condition": st.sampled_from(("", "idle>10m"))},
    "delays": {"delay_ms": st.sampled_from((0, 1000, 5000))},
    "expiry": {"expires_ms": st.sampled_from((None, 0, 1000, 5000))},
    "holds": {"held": st.sampled_from((False, False, True))},
    "attempts": {"max_attempts": st.sampled_from((None, 1, 3))},
    "names": {"name": st.sampled_from((None, None, "nightly"))},
    "unique": {
        "unique_key": st.sampled_from((None, "a")),
        "unique_ms": st.sampled_from((None, 10_000)),
        "on_duplicate": st.sampled_from(("existing", "refuse", "replace")),
    },
    "parents": {"if_parent_fails": st.sampled_from(("cancel", "cancel", "wait"))},
    "limits": {},
    "letters": {},
    "removal": {},
}


def wishes(features: Collection[str]) -> st.SearchStrategy[Wish]:
    drawn = {name: how for feature in features for name, how in FEATURES[feature].items()}
    return st.builds(Wish, **{"queue": st.just("red"), **drawn})


ends = st.one_of(
    st.sampled_from((End(How.COMPLETED), End(How.FAILED))),
    st.sampled_from([End(how) for how in How if how is not How.SNOOZED]),
    st.builds(End, st.sampled_from((How.SNOOZED, How.FAILED)), SECONDS),
)


@dataclass(frozen=True)
class Verb:
    """What a person does with a job, on either side."""

    name: str
    options: tuple[tuple[str, bool], ...] = ()

    def __call__(self, side: Store | Model, job: int) -> Any:
        return getattr(side, self.name)(job, **dict(self.options))


EDITS = {
    "priorities": "priority",
    "queues": "queue",
    "keys": "key",
    "hosts": "host",
    "conditions": "condition",
    "names": "name",
    "unique": "unique_key",
    "parents": "after",
    "delays": "delay_ms",
    "expiry": "expires_ms",
}
VERBS = (
    Verb("cancel"),
    Verb("hold"),
    Verb("release"),
    Verb("retry"),
    Verb("move", (("to_front", True),)),
    Verb("move", (("to_front", False),)),
)
askers = st.one_of(
    st.just(Asker(0, "here", holding=("idle>10m",))),
    st.builds(
        partial(Asker, 0),
        host=st.sampled_from(("", "here")),
        kinds=st.sampled_from((("task", "command"), ("task",))),
        holding=st.sampled_from(((), ("idle>10m",))),
    ),
)


def outcome_of(end: End) -> Outcome:
    match end.how:
        case How.COMPLETED:
            return completed()
        case How.FAILED:
            return failed("broken", delay_ms=end.delay_ms)
        case How.REJECTED:
            return rejected("no")
        case How.TIMED_OUT:
            return timed_out("slow")
        case How.CANCELLED:
            return cancelled()
        case How.INTERRUPTED:
            return interrupted()
        case How.LOST:
            return lost("gone")
        case How.SNOOZED:
            return snoozed(end.delay_ms or 0)


def new_job(wish: Wish) -> NewJob:
    options = Options(
        queue=wish.queue,
        priority=wish.priority,
        delay=wish.delay_ms / 1000 if wish.delay_ms else None,
        expires=None if wish.expires_ms is None else wish.expires_ms / 1000,
        hold=wish.held,
        max_attempts=wish.max_attempts,
        name=wish.name,
        unique_key=wish.unique_key,
        unique_for=None
        if wish.unique_key is None or wish.unique_ms is None
        else wish.unique_ms / 1000,
        on_duplicate=wish.on_duplicate,
        after=wish.after,
        after_any=wish.after_any,
        if_parent_fails=wish.if_parent_fails,
        when=wish.condition or None,
        host=wish.host or None,
        concurrency_key=wish.key or None,
        concurrency=wish.key_limit if wish.key else None,
    )
    plan = make_plan(options, default_queue="red")
    return NewJob(plan, wish.task, "[[],{}]") if wish.task else NewJob(plan, command='"true"')


class StoreMachine(RuleBasedStateMachine):
    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="svcq-model-"))
        self.config = model_config(self.home, environ)
        self.clock = Clock()
        self.store = open_store(self.config, clock=self.clock)
        self.model = Model(DEFAULTS, self.clock)
        self.features: list[str] = []
        self.workers: list[int] = []
        self.claims: list[Claim] = []  # every claim there ever was: late reports are reports too
        self.cursor = 0
        self.last_state: dict[int, State] = {}

    def teardown(self) -> None:
        empty(self.store)
        self.store.close()
        shutil.rmtree(self.home)

    def both(self, real: Callable[[Store], Any], model: Callable[[Model], Any]) -> Any:
        """Do the same on both sides; what the store answered, None where both refused."""
        before = self.model.snapshot()
        expected, expected_error = error_class(lambda: model(self.model))
        answer, error = error_class(lambda: real(self.store))
        assert error is expected_error, (error, expected_error)
        assert answer == expected
        if error is not None:
            self.model = before
            # A sequence of PostgreSQL does not take back what it gave to a verb that failed.
            self.model.last_id = self.last_id()
        self.model.forget_idle_keys()
        return answer

    def last_id(self) -> int:
        with self.store.engine.read() as tx:
            row = tx.row("last_id")
        assert row is not None
        return int(row[0])

    def some_job(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from([*self.model.jobs, NOBODY]), "job")

    def some_parents(self, data: st.DataObject, new: int = 0) -> tuple[int, ...]:
        """Existing jobs, those a batch has just added, and seldom one that is not there."""
        ids = [*self.model.jobs, *range(self.model.last_id + 1, self.model.last_id + 1 + new)]
        if not ids:
            return ()
        recent = st.sampled_from(ids[-6:])
        return tuple(data.draw(st.lists(recent, max_size=2, unique=True), "parents"))

    def uses(self, feature: str) -> bool:
        return feature in self.features

    # Adding

    @initialize(
        data=st.data(),
        features=st.lists(st.sampled_from(sorted(FEATURES)), min_size=4, max_size=7, unique=True),
    )
    def begin(self, data: st.DataObject, features: list[str]) -> None:
        self.features = features
        for pid in (1, 2):
            self.workers.append(self.store.register(WorkerInfo("here", pid)))
        if self.uses("letters"):
            self.set_queue("red", 10_000, None, dead_letter="letters")
        self.enqueue(data, 6)

    @rule(data=st.data(), n=st.integers(1, 4))
    def enqueue(self, data: st.DataObject, n: int) -> None:
        wanted = [data.draw(wishes(self.features), "wish") for _ in range(n)]
        for position, wish in enumerate(wanted):
            if self.uses("parents"):
                wish.after = self.some_parents(data, position)
                wish.after_any = self.some_parents(data, position)
        self.enqueue_all(wanted)

    @rule(data=st.data(), n=st.integers(2, 5))
    def enqueue_alike(self, data: st.DataObject, n: int) -> None:
        self.enqueue_all([data.draw(wishes(self.features), "wish")] * n)

    def enqueue_all(self, wanted: list[Wish]) -> None:
        self.both(
            lambda store: [
                (added.id, added.state, added.created)
                for added in store.enqueue([new_job(wish) for wish in wanted])
            ],
            lambda model: model.enqueue(wanted),
        )

    # Running

    @rule(
        asker=askers,
        worker=st.integers(0, 1),
        queue=st.sampled_from(QUEUES),
        n=st.integers(1, 5),
    )
    def claim(self, asker: Asker, worker: int, queue: str, n: int) -> None:
        self.claim_and_replay(asker._replace(worker=self.workers[worker]), n, (queue,))

    @rule(asker=askers, worker=st.integers(0, 1), n=st.integers(1, 6))
    def claim_from_all(self, asker: Asker, worker: int, n: int) -> None:
        self.claim_and_replay(asker._replace(worker=self.workers[worker]), n, QUEUES)

    def claim_and_replay(self, asker: Asker, n: int, queues: tuple[str, ...]) -> list[Claim]:
        """Whose turn it is between queues is not modelled: whom each sends, and that all go, is."""
        claimer = Claimer(asker.worker, asker.host, queues.__contains__, asker.kinds, asker.holding)
        claims = self.store.claim(claimer, n)
        self.claims += claims
        self.model.expire()
        self.model.promote()
        for claim in claims:
            assert claim.queue in queues
            line = self.model.line(claim.queue, asker)
            assert claim.id in [job.id for job in line]
            job = self.model.jobs[claim.id]
            # Weaker than the rule, by which ids break ties: the index of open lanes knows only the
            # rank of a lane's first job, so a job with a key may be passed over by one of its rank.
            assert job is line[0] or (job.rank == line[0].rank and line[0].key)
            assert self.model.start(job, asker.worker) == (claim.id, claim.run, claim.worker)
        if len(claims) < n:
            assert not any(self.model.line(queue, asker) for queue in queues)
        self.model.forget_idle_keys()
        return claims

    @rule(n=st.integers(1, 4), how=st.lists(ends, min_size=1, max_size=3))
    def run_some(self, n: int, how: list[End]) -> None:
        """The common case: able to do all of it, and done at once."""
        asker = Asker(self.workers[0], "here", holding=("idle>10m",))
        claims = self.claim_and_replay(asker, n, QUEUES)
        self.report(list(zip(claims, how, strict=False)))

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), how=st.lists(ends, min_size=1, max_size=4))
    def finish(self, data: st.DataObject, how: list[End]) -> None:
        held = [claim for claim in self.claims if self.holds(claim)] or self.claims
        likely = st.one_of(st.sampled_from(held), st.sampled_from(self.claims))
        self.report([(data.draw(likely, "claim"), end) for end in how])

    def report(self, told: list[tuple[Claim, End]]) -> None:
        self.both(
            lambda store: store.finish(
                [Report(c.id, c.run, c.worker, outcome_of(end)) for c, end in told]
            ),
            lambda model: model.finish([(Run(c.id, c.run, c.worker), end) for c, end in told]),
        )

    def holds(self, claim: Claim) -> bool:
        job = self.model.jobs.get(claim.id)
        return job is not None and job.state is State.PROCESSING and job.run == claim.run

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def tell(self, data: st.DataObject) -> None:
        """Progress, and the report of a worker that never had the job."""
        claim = data.draw(st.sampled_from(self.claims), "claim")
        self.both(
            lambda store: store.progress(claim, 0.5),
            lambda model: model.progress(Run(claim.id, claim.run, claim.worker)),
        )
        report = Report(claim.id, claim.run, claim.worker + 1000, completed())
        assert self.store.finish([report]) == [None]

    @rule(
        worker=st.integers(0, 1),
        end=st.sampled_from((End(How.LOST), End(How.LOST), End(How.INTERRUPTED))),
    )
    def rescue(self, worker: int, end: End) -> None:
        gone = self.workers[worker]
        self.both(
            lambda store: sorted(store.rescue(gone, outcome_of(end))),
            lambda model: model.rescue(gone, end),
        )
        self.workers[worker] = self.store.register(WorkerInfo("here", 1))

    # What people do

    @rule(data=st.data(), verb=st.sampled_from(VERBS))
    def person(self, data: st.DataObject, verb: Verb) -> None:
        job = self.some_job(data)
        self.both(lambda store: verb(store, job), lambda model: verb(model, job))

    @precondition(lambda self: any(not job.live for job in self.model.jobs.values()))
    @rule(data=st.data())
    def retry_finished(self, data: st.DataObject) -> None:
        ended = [job.id for job in self.model.jobs.values() if not job.live]
        job = data.draw(st.sampled_from(ended), "job")
        self.both(lambda store: store.retry(job), lambda model: model.retry(job))

    @precondition(lambda self: any(feature in EDITS for feature in self.features))
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        job = self.some_job(data)
        possible = [EDITS[feature] for feature in self.features if feature in EDITS]
        said = data.draw(st.sets(st.sampled_from(possible), min_size=1, max_size=3), "said")
        wish = replace(data.draw(wishes(self.features), "wish"), unique_ms=None)
        if "after" in said:
            wish.after = self.some_parents(data)
        if "key" not in said:
            wish.key_limit = None
        self.both(
            lambda store: store.edit(
                job, new_job(wish), {*said, "after_any"} if "after" in said else said
            ),
            lambda model: model.edit(job, wish, said),
        )

    # Queues

    @precondition(lambda self: self.uses("limits"))
    @rule(
        name=st.sampled_from(QUEUES),
        aging_ms=st.sampled_from((10_000, 10_000, 1000, 60_000)),
        rate=st.sampled_from((None, None, (1, 5000), (2, 4000))),
        concurrency=st.sampled_from((None, 1, 2, 3)),
        dead_letter=st.sampled_from((None, "letters", "letters", "blue")),
        max_attempts=st.sampled_from((None, None, 1)),
    )
    def limit(self, **given: Any) -> None:
        self.set_queue(**given)

    def set_queue(
        self,
        name: str,
        aging_ms: int,
        rate: tuple[int, int] | None,
        concurrency: int | None = None,
        dead_letter: str | None = None,
        max_attempts: int | None = None,
    ) -> None:
        rest = {
            "concurrency": concurrency,
            "dead_letter": dead_letter,
            "max_attempts": max_attempts,
        }
        in_seconds = None if rate is None else (rate[0], rate[1] / 1000)

        def real(store: Store) -> None:
            store.set_queue(name, {**rest, "rate": in_seconds, "aging": aging_ms / 1000})

        self.both(real, lambda model: model.set_queue(name, aging_ms=aging_ms, rate=rate, **rest))

    @precondition(lambda self: self.uses("limits"))
    @rule(name=st.sampled_from(QUEUES), paused=st.booleans())
    def pause(self, name: str, paused: bool) -> None:
        self.both(
            lambda store: store.pause(name, paused=paused),
            lambda model: model.pause(name, paused=paused),
        )

    # Time

    @rule(ms=SECONDS)
    def advance(self, ms: int) -> None:
        self.clock.now += ms

    @rule(verb=st.sampled_from(("promote", "expire", "reopen")))
    def wait(self, verb: str) -> None:
        if verb == "reopen":
            self.store.close()
            self.store = open_store(self.config, clock=self.clock)
        else:
            self.both(lambda store: getattr(store, verb)(), lambda model: getattr(model, verb)())

    @precondition(lambda self: self.uses("removal"))
    @rule(
        states=st.sets(st.sampled_from(State), min_size=1, max_size=3),
        queue=st.sampled_from((None, *QUEUES)),
    )
    def purge(self, states: set[State], queue: str | None) -> None:
        self.both(
            lambda store: store.purge(states, queue),
            lambda model: model.purge(states, queue),
        )

    @precondition(lambda self: self.uses("removal"))
    @rule(ms=SECONDS, name=st.sampled_from(QUEUES))
    def clean_up(self, ms: int, name: str) -> None:
        self.clock.now += ms
        self.both(lambda store: store.cleanup(), lambda model: model.cleanup())
        self.both(lambda store: store.delete_queue(name), lambda model: model.delete_queue(name))

    # What must always be true

    def rows(self, sql: str) -> list[Any]:
        """A look past the store's own verbs, at the tables."""
        return look(self.store, sql)

    @invariant()
    def both_sides_agree(self) -> None:
        self.jobs_are_the_same()
        self.counters_are_a_count_of_the_rows()
        self.unique_keys_are_the_same()
        self.parents_are_the_same()
        self.keyed_lanes_say_what_the_rows_say()
        self.every_job_is_in_its_lane()
        self.changes_tell_every_transition_once()
        self.states_own_their_columns()

    def jobs_are_the_same(self) -> None:
        columns = (
            "jobs.id, state, priority, run, failures, losses, interruptions, snoozes, "
            "CASE WHEN finished_at IS NULL THEN waits_on END, "
            "cancel_requested, ready_at, rank, expires_at, finished_at, reason, queue, copy_of"
        )
        found = self.rows(f"SELECT {columns} FROM jobs JOIN specs ON specs.id = jobs.id")
        expected = [
            (job.id, job.state, job.priority, job.run,
             *(job.tally[name] for name in ("failures", "losses", "interruptions", "snoozes")),
             job.waits_on if job.live else None, job.cancel_requested, job.ready_at, job.rank,
             job.expires_at, job.finished_at, job.reason, job.queue, job.copy_of)
            for job in self.model.jobs.values()
        ]  # fmt: skip
        assert sorted(found) == sorted(expected)

    def counters_are_a_count_of_the_rows(self) -> None:
        counted = self.rows(COUNTS)
        real = self.rows(
            "SELECT queue, state, task, count(*) FROM jobs JOIN specs ON specs.id = jobs.id "
            "GROUP BY 1, 2, 3"
        )
        assert sorted(counted) == sorted(real)
        by_state = Counter(job.state.value for job in self.model.jobs.values())
        assert self.store.counts() == {state.value: by_state[state.value] for state in State}
        for queue in QUEUES:
            expected = Counter(job.state.value for job in self.model.jobs.values()
                               if job.queue == queue)  # fmt: skip
            assert +Counter(self.store.counts(queue)) == expected

    def unique_keys_are_the_same(self) -> None:
        found = self.rows("SELECT scope, key, job, until FROM unique_keys")
        taken = self.model.taken.items()
        assert sorted(found) == sorted((*at, who.job, who.until) for at, who in taken)

    def parents_are_the_same(self) -> None:
        found = self.rows("SELECT parent, child, needs, met FROM parents")
        expected = [
            (parent, job.id, edge.needs, edge.met)
            for job in self.model.jobs.values()
            for parent, edge in job.parents.items()
        ]
        assert sorted(found) == sorted(expected)

    def keyed_lanes_say_what_the_rows_say(self) -> None:
        live: Counter[tuple[str, ...]] = Counter()
        heads: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for job in self.model.jobs.values():
            if job.key and job.live:
                lane = (job.key, job.queue, job.kind, job.host, job.condition)
                live[lane] += 1
                if job.rank is not None:
                    heads[lane].append(job.rank)
        limits = self.model.key_limits
        running = {key: self.model.running(key=key) for key in limits}
        assert sorted(self.rows("SELECT key, concurrency, running FROM keys")) == sorted(
            (key, limit, running[key]) for key, limit in limits.items()
        )
        expected = [
            (
                *lane,
                n,
                min(heads[lane], default=None) if running[lane[0]] < limits[lane[0]] else None,
            )
            for lane, n in live.items()
        ]
        found = self.rows(
            "SELECT key, queue, kind, host, condition, live, head FROM lanes WHERE key <> ''"
        )
        assert sorted(found, key=str) == sorted(expected, key=str)

    def every_job_is_in_its_lane(self) -> None:
        """Of finished jobs the lane may be gone; no job that lives is out of reach of a claim."""
        lost_jobs = self.rows(
            "SELECT jobs.id FROM jobs JOIN specs ON specs.id = jobs.id "
            "LEFT JOIN lanes ON lanes.id = jobs.lane AND lanes.queue = specs.queue "
            "AND lanes.key = specs.key AND lanes.host = specs.host "
            "AND lanes.condition = specs.condition "
            "AND lanes.kind = CASE specs.task WHEN '' THEN 'command' ELSE 'task' END "
            "WHERE jobs.finished_at IS NULL AND lanes.id IS NULL"
        )
        assert lost_jobs == []

    def changes_tell_every_transition_once(self) -> None:
        told: dict[int, list[str]] = defaultdict(list)
        for change in self.store.changes(self.cursor):
            assert change.seq > self.cursor
            self.cursor = change.seq
            told[change.job].append(change.kind)
        expected: dict[int, list[str]] = defaultdict(list)
        for job, kind in self.model.told:
            expected[job].append(kind)
        self.model.told.clear()
        assert told == expected
        for job, kinds in told.items():
            for state in [State(kind) for kind in kinds if kind in set(State)]:
                if job in self.last_state:
                    assert state in TRANSITIONS[self.last_state[job]]
                self.last_state[job] = state

    def states_own_their_columns(self) -> None:
        """The partial indexes rely on it."""
        for state, rank, due, finished in self.rows(
            "SELECT state, rank IS NOT NULL, due_at IS NOT NULL, finished_at IS NOT NULL FROM jobs"
        ):
            assert rank == (state == State.PENDING)
            assert due == (state in (State.SCHEDULED, State.RETRYING))
            assert finished == (state in FINISHED)


@pytest.mark.early
@pytest.mark.parametrize(("engine", "examples"), [("sqlite", 300), ("postgres", 100)])
def test_the_store_does_what_the_model_does(
    engine: str, examples: int, request: pytest.FixtureRequest
) -> None:
    environ = {}
    if engine == "postgres":
        environ["SVCQ_STORE"] = request.getfixturevalue("postgres").database()
    run_state_machine_as_test(
        partial(StoreMachine, environ),
        settings=settings(
            max_examples=int(os.environ.get("SVCQ_MODEL_EXAMPLES", examples)),
            stateful_step_count=40,
            # The same examples for everyone; a hunt looks for new ones.
            derandomize="SVCQ_MODEL_EXAMPLES" not in os.environ,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        ),
    )


# What the machine, or the reading that went into the model, has found: each as its own small test.


def rows(desk: Desk, sql: str) -> list[Any]:
    return look(desk.store, sql)


def test_a_parent_and_its_child_may_expire_together(desk: Desk) -> None:
    """It once made every later claim fail, since a cancelled job cannot become dead."""
    desk.store.set_queue("default", {"dead_letter": "letters"})
    parent = desk.add(expires=5)
    child = desk.add(expires=5, after=[parent])
    other = desk.add()
    desk.clock.advance(5)
    assert desk.claimed(5) == [other]
    assert desk.state(parent) is State.DEAD
    assert desk.state(child) is State.CANCELLED
    assert rows(desk, "SELECT copy_of FROM specs WHERE queue = 'letters'") == [(parent,)]


def test_an_expiry_may_be_given_to_a_job_that_is_retrying(desk: Desk) -> None:
    job = desk.add(max_attempts=3)
    desk.run(failed("broken", delay_ms=60_000))
    desk.store.edit(job, desk.new(expires=5), {"expires_ms"})
    desk.clock.advance(5)
    assert desk.claim() == []
    assert desk.state(job) is State.DEAD


def test_a_job_with_a_key_is_taken_by_the_claim_that_finds_it_due(desk: Desk) -> None:
    job = desk.add(delay=5, concurrency_key="disk")
    desk.clock.advance(5)
    assert desk.claimed() == [job]


def test_a_claim_from_several_queues_fills_up_from_one_with_many_keys(desk: Desk) -> None:
    for key in "abcd":
        desk.add(queue="red", concurrency_key=key)
    desk.add(queue="blue")
    assert len(desk.claim(5)) == 5


def test_a_key_that_one_queue_fills_does_not_hide_the_other_keys_of_the_next(desk: Desk) -> None:
    desk.add(queue="a", concurrency_key="disk")
    desk.add(queue="b", concurrency_key="disk")
    free = desk.add(queue="b", concurrency_key="user")
    assert free in desk.claimed(2)


def test_a_job_after_two_that_fail_at_once_leaves_its_lane_once(desk: Desk) -> None:
    parent = desk.add()
    child = desk.add(after=[parent])
    desk.add(after=[parent, child], concurrency_key="disk")
    bystander = desk.add(hold=True, concurrency_key="disk")
    desk.store.cancel(parent)
    assert rows(desk, "SELECT live FROM lanes WHERE key = 'disk'") == [(1,)]
    desk.store.cancel(bystander)
    assert rows(desk, "SELECT live FROM lanes WHERE key = 'disk'") == []


def test_a_job_is_retried_within_its_own_window(desk: Desk) -> None:
    job = desk.add(unique_key="a", unique_for=60)
    desk.run()
    assert desk.store.retry(job) is State.PENDING
    assert desk.run() == job
    assert desk.add(unique_key="a") == job, "the window was lost"


def test_a_purge_takes_what_it_has_itself_let_go(desk: Desk) -> None:
    """Its key, name and place in line went on without it."""
    first = desk.add()
    parent = desk.add(after=[first])
    desk.add(after_any=[parent], concurrency_key="disk", name="nightly", unique_key="a")
    assert desk.store.purge([State.BLOCKED]) == 2
    for table in ("lanes WHERE key <> ''", "keys", "unique_keys", "parents"):
        assert rows(desk, f"SELECT * FROM {table}") == []
    assert desk.claimed(5) == [first]


@pytest.mark.parametrize("hold", [False, True])
def test_a_parent_that_is_waited_for_is_neither_purged_nor_cleaned_up(
    desk: Desk, hold: bool
) -> None:
    parent = desk.add()
    child = desk.add(after=[parent], if_parent_fails="wait", hold=hold)
    desk.store.cancel(parent)
    assert desk.store.purge([State.CANCELLED]) == 0
    desk.clock.advance(100 * 86_400)
    assert desk.store.cleanup() == 0
    desk.store.retry(parent)
    assert desk.run() == parent
    if hold:
        desk.store.release(child)
    assert desk.run() == child


def test_a_parent_that_has_done_its_part_is_cleaned_up(desk: Desk) -> None:
    done, unfinished = desk.add(), desk.add(hold=True)
    child = desk.add(after=[done, unfinished])
    assert desk.run() == done
    desk.clock.advance(100 * 86_400)
    assert desk.store.cleanup() == 1
    desk.store.release(unfinished)
    assert [desk.run(), desk.run()] == [unfinished, child]


def test_a_purge_of_several_states_has_one_order(desk: Desk) -> None:
    """Blocked jobs first: as the children of others they would be cancelled, and stay."""
    parent = desk.add()
    desk.add(after=[parent])
    assert desk.store.purge({State.PENDING, State.BLOCKED}) == 2
    assert set(desk.store.counts().values()) == {0}
