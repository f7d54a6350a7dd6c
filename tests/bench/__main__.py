"""Run the figures and say which are short of their target."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.bench.cli import cli
from tests.bench.contention import contention
from tests.bench.drain import claim_finish
from tests.bench.enqueue import enqueue_many, enqueue_one
from tests.bench.figures import FULL, HEADING, QUICK, Figure, Scale
from tests.bench.flat import Curve, flat
from tests.bench.places import workplace
from tests.bench.plot import draw
from tests.bench.postgres import pg_claim_finish, pg_enqueue, pg_machines, pg_many, pg_tasks
from tests.bench.postgres_churn import pg_churn, pg_flat
from tests.bench.schedules import schedules
from tests.bench.service import service_idle, service_killed
from tests.bench.tray import tray_flood, tray_idle, tray_shown, tray_told
from tests.bench.web import web_log, web_post, web_streams, web_views
from tests.bench.worker import (
    worker_commands,
    worker_idle,
    worker_killed,
    worker_latency,
    worker_tasks,
)

BENCHES: dict[str, Callable[[Scale, Path], Iterator[Figure]]] = {
    "enqueue_one": enqueue_one,
    "enqueue_many": enqueue_many,
    "claim_finish": claim_finish,
    "flat": flat,
    "contention": contention,
    "cli": cli,
    "worker_tasks": worker_tasks,
    "worker_commands": worker_commands,
    "worker_latency": worker_latency,
    "worker_idle": worker_idle,
    "worker_killed": worker_killed,
    "schedules": schedules,
    "service_idle": service_idle,
    "service_killed": service_killed,
    "web_views": web_views,
    "web_post": web_post,
    "web_streams": web_streams,
    "web_log": web_log,
    "tray_told": tray_told,
    "tray_shown": tray_shown,
    "tray_idle": tray_idle,
    "tray_flood": tray_flood,
    "pg_enqueue": pg_enqueue,
    "pg_many": pg_many,
    "pg_claim_finish": pg_claim_finish,
    "pg_tasks": pg_tasks,
    "pg_flat": pg_flat,
    "pg_churn": pg_churn,
    "pg_machines": pg_machines,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure svcq.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw the curve there")
    asked = parser.parse_args()
    for name in asked.names:
        if name not in BENCHES:
            parser.error(f"there is no figure {name!r}: choose from {', '.join(BENCHES)}")
    curve: Curve = {}
    figures = run(asked.names or list(BENCHES), QUICK if asked.quick else FULL, curve)
    if asked.json:
        asked.json.write_text(json.dumps([figure.as_json() for figure in figures], indent=2))
    if asked.plots and curve:
        draw(asked.plots / "flat.svg", curve)
    return 0 if all(figure.ok for figure in figures) else 1


def run(names: list[str], scale: Scale, curve: Curve) -> list[Figure]:
    """Each figure, printed as soon as it is known."""
    figures = []
    benches = {**BENCHES, "flat": partial(flat, curve=curve)}
    print(HEADING)
    for name in names:
        with workplace() as folder:
            for figure in benches[name](scale, folder):
                print(figure.line(), flush=True)
                figures.append(figure)
    return figures


if __name__ == "__main__":
    sys.exit(main())
