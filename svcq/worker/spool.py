"""Outcomes that could not be written: kept as files in the home, delivered later by anyone.

A file is complete or not there. Delivering one twice does no harm: the second report comes too
late and changes nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from pathlib import Path

from svcq import host
from svcq.jobs import How, Outcome
from svcq.store import Report, Store

FORMAT = 1


def save(folder: Path, reports: Sequence[Report]) -> Path:
    """Keep reports on the disk; where."""
    text = json.dumps(
        {
            "svcq_spool": FORMAT,
            "reports": [
                {"job": r.job, "run": r.run, "worker": r.worker, "outcome": r.outcome._asdict()}
                for r in reports
            ],
        }
    )
    path = folder / f"{reports[0].job}.{reports[0].run}-{secrets.token_hex(4)}.json"
    host.write_private(path, text)
    return path


def deliver(folder: Path, store: Store) -> int:
    """Write what was kept, oldest first, and remove it; how many reports there were."""
    delivered = 0
    try:
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    except OSError:
        return 0
    for path in files:
        reports = _read(path)
        if reports is None:
            continue
        store.finish(reports)
        path.unlink(missing_ok=True)
        delivered += len(reports)
    return delivered


def _read(path: Path) -> list[Report] | None:
    """The reports of a file; None for one of a newer program, or one that someone else took."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        if kept["svcq_spool"] != FORMAT:
            return None
        return [
            Report(r["job"], r["run"], r["worker"], _outcome(r["outcome"])) for r in kept["reports"]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _outcome(kept: dict[str, object]) -> Outcome:
    known = {k: v for k, v in kept.items() if k in Outcome._fields}
    return Outcome(**{**known, "how": How(str(kept["how"]))})  # type: ignore[arg-type]
