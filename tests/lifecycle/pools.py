"""A project with pools of processes: some it keeps, some it forgets."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.pool import Pool

import svcq
from tests.lifecycle.sample import append_and_sleep

executor = ProcessPoolExecutor(2)
pools: list[Pool] = []


@svcq.task
def use_executor() -> list[int]:
    """The executor is made by the import, its processes by the first call."""
    list(executor.map(abs, range(50)))
    return children()


@svcq.task
async def use_executor_async() -> list[int]:
    found: list[int] = use_executor.function()
    return found


@svcq.task
def use_pool() -> list[int]:
    if not pools:
        pools.append(multiprocessing.get_context("fork").Pool(2))
    pools[0].map(abs, range(50))
    return children()


@svcq.task
def forget_a_pool(file: str) -> None:
    forgotten = ProcessPoolExecutor(1)
    forgotten.submit(append_and_sleep, file)
    while not os.path.exists(file):
        pass


@svcq.task
def leave_one_beside_the_pool(file: str) -> list[int]:
    found: list[int] = use_executor.function()
    multiprocessing.get_context("fork").Process(target=append_and_sleep, args=(file,)).start()
    while not os.path.exists(file):
        pass
    return found


def children() -> list[int]:
    return sorted(one.pid or 0 for one in multiprocessing.active_children())
