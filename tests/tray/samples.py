"""Jobs and situations as a service would tell of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from svcq_tray.model import Item, Look, Situation, Snapshot

from svcq.jobs import Job, State

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def job(number: int, state: str = "processing", **more: Any) -> Job:
    begun = {} if state in ("pending", "scheduled") else {"started_at": NOW}
    ended = {"finished_at": NOW + timedelta(seconds=more.pop("took", 1))}
    if state not in ("completed", "dead", "cancelled"):
        ended = {}
    said: dict[str, Any] = {
        "id": number, "queue": "default", "state": State(state), "created_at": NOW,
        "command": f"work {number}", **begun, **ended, **more,
    }  # fmt: skip
    return Job(**said)


def situation(*running: Job, **more: Any) -> Situation:
    known: dict[str, Any] = {
        name: more.pop(name) for name in list(more) if name in Snapshot._fields
    }
    known.setdefault("counts", {"processing": len(running)})
    return Situation(Snapshot(running=running, **known), **more)


def lines(look: Look) -> dict[str, Item]:
    """Every line of the menu by its key, those of submenus, too."""
    found: dict[str, Item] = {}

    def take(items: tuple[Item, ...]) -> None:
        for item in items:
            assert item.key not in found, f"{item.key} is there twice"
            found[item.key] = item
            take(item.children)

    take(look.menu)
    return found
