"""A worker whose jobs take no time: claims, finishes and adds new jobs until it is killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from svcq.config import load
from svcq.jobs import completed
from svcq.store import Claimer, Report, WorkerInfo, open_store
from tests.bench.places import new_job


def main(home: str, batch: int) -> None:
    store = open_store(load(Path(home), {}))
    worker = store.register(WorkerInfo("bench", os.getpid()))
    print("busy", flush=True)
    while True:
        claims = store.claim(Claimer(worker), batch)
        if claims:
            store.finish([Report.of(one, completed()) for one in claims])
        if len(claims) < batch:
            store.enqueue([new_job()] * batch)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
