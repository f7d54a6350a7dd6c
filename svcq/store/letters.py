"""Dead letter queues: a queue may name another, which gets a copy of each job that dies."""

from __future__ import annotations

from svcq.policy import NewJob, Plan
from svcq.store.engine import Transaction
from svcq.store.enqueue import add
from svcq.store.ledger import Ledger


def copy_dead_letter(tx: Transaction, ledger: Ledger, job: int, aging_ms: int) -> None:
    row = tx.row("dead_letter_of", id=job)
    if row is None:
        return
    queue, task, args, command, options, owner, cwd, env, priority = row
    plan = Plan(queue=queue, policy=options, priority=priority, owner=owner, cwd=cwd, env=env)
    add(tx, ledger, [NewJob(plan, task, args, command, copy_of=job)], aging_ms)
