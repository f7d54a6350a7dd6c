"""Tasks for the workers of these tests."""

from __future__ import annotations

import asyncio
import os
import time

import svcq


@svcq.task
def add(a: int, b: int) -> int:
    return a + b


@svcq.task
async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0.01)
    return a + b


@svcq.task
def rest(seconds: float) -> None:
    time.sleep(seconds)


@svcq.task
def which_process() -> int:
    return os.getpid()


@svcq.task
async def speak_async(word: str) -> None:
    print(word)


@svcq.task
def speak(word: str) -> None:
    print(word)
