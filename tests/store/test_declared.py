"""What tasks say of themselves: kept, replaced, forgotten, and laid between queue and job."""

from __future__ import annotations

import json

from svcq.jobs import failed, lost
from svcq.policy import NewJob, Plan
from svcq.store import Declared, Report, Store
from tests.store.conftest import Desk

MAIL = Declared('{"queue": "mail", "max_attempts": 5}', '{"max_attempts":5}')


def policy(**said: object) -> Declared:
    return Declared(policy=json.dumps(said))


def test_what_was_told_is_known(store: Store) -> None:
    assert store.declared("mail.send") == Declared("{}", "{}")
    store.declare({"mail.send": MAIL, "mail.silent": Declared()})
    assert store.declared("mail.send") == MAIL
    assert store.declared("mail.silent") == Declared()


def test_the_newest_holds_and_silence_is_news(store: Store) -> None:
    store.declare({"a": MAIL, "b": MAIL})
    store.declare({"a": policy(max_attempts=2)})
    assert store.declared("a") == policy(max_attempts=2)
    store.declare({"b": Declared()})
    assert (store.declared("a"), store.declared("b")) == (policy(max_attempts=2), Declared())


def test_what_is_known_already_is_not_written(store: Store) -> None:
    store.declare({"a": MAIL})
    before = store.write_mark()
    store.declare({"a": MAIL, "b": Declared()})
    store.declare({})
    assert store.write_mark() == before


def test_it_stands_between_the_queue_and_the_job(desk: Desk) -> None:
    store = desk.store
    store.set_queue("default", {"max_attempts": 7, "on_lost": "dead"})
    store.declare({"work": policy(max_attempts=2, on_lost="retry", max_losses=1)})
    plain = store.enqueue([NewJob(Plan("default"), "work", "[[],{}]")])[0].id
    own = store.enqueue([NewJob(Plan("default", '{"max_attempts":4}'), "work", "[[],{}]")])[0].id
    assert (store.get(plain).max_attempts, store.get(own).max_attempts) == (2, 4)
    assert store.facts(plain).policy.max_losses == 1
    command = store.enqueue([NewJob(Plan("default"), command='["true"]')])[0].id
    assert store.get(command).max_attempts == 7


def test_ends_are_judged_by_it(desk: Desk) -> None:
    store = desk.store
    store.declare({"work": policy(max_attempts=1, on_lost="dead")})
    for outcome, reason in (
        (failed("no"), "out of attempts"),
        (lost("its worker died"), "lost too often"),
    ):
        job = store.enqueue([NewJob(Plan("default"), "work", "[[],{}]")])[0].id
        (claim,) = desk.claim()
        assert store.finish([Report.of(claim, outcome)]) == ["dead"]
        assert store.get(job).reason == reason
