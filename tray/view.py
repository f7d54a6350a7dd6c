"""From what is known to what is shown: pure, so that it can be tried without a display."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from svcq.ends import counted, plain, title_of
from svcq.jobs import Job, State
from svcq.schedules import Schedule
from svcq.times import moment
from svcq.version import __version__

from .model import MOST_UNSEEN, SEPARATOR, Action, Icon, Item, Look, Situation, Snapshot

MOST_RUNNING = 8
MOST_RECENT = 8
MOST_SCHEDULES = 12
_TITLE = 44  # characters: a menu must not cross the screen
_STEPS = 40  # in which the ring fills
_MARKS = {State.COMPLETED: "✓", State.DEAD: "✗", State.CANCELLED: "-"}
_WAITING = (State.PENDING, State.RETRYING, State.SCHEDULED, State.BLOCKED)


def view(now: Situation) -> Look:
    return Look(icon(now), tooltip(now), tuple(_tidy(_menu(now))))


def icon(now: Situation) -> Icon:
    known, failed = now.snapshot, now.unseen > 0
    if known is None:
        return Icon("down", failed)
    running = known.counts.get(State.PROCESSING, 0)
    if running:
        return Icon("running", failed, running, _progress(known.running))
    return Icon("paused" if known.paused else "idle", failed)


def _progress(running: Sequence[Job]) -> float | None:
    """Of those who tell: how far they are together."""
    known = [job.progress for job in running if job.progress is not None]
    if not known:
        return None
    share = min(max(sum(known) / len(known), 0.0), 1.0)
    return round(share * _STEPS) / _STEPS


# The tooltip


def tooltip(now: Situation) -> tuple[str, ...]:
    """The first line says how it stands."""
    return tuple(_tooltip(now))


def _tooltip(now: Situation) -> Iterator[str]:
    yield headline(now)
    known = now.snapshot
    if known is not None:
        yield from (_running_line(job) for job in known.running[:3])
        if len(known.running) > 3:
            yield f"and {known.counts[State.PROCESSING] - 3:,} more"
    if now.unseen:
        yield f"{_unseen(now)} failed"
    if known is not None and known.version not in ("", __version__):
        yield (
            f"The service is svcq {plain(known.version, 20)}, this tray {__version__}: "
            "quit the tray and start it anew."
        )
    yield from now.troubles


def _unseen(now: Situation) -> str:
    more = "More than " if now.unseen >= MOST_UNSEEN else ""
    return f"{more}{counted(now.unseen - bool(more))}"


def headline(now: Situation) -> str:
    known = now.snapshot
    if known is None:
        return now.says or "svcq is being asked how it stands."
    running = known.counts.get(State.PROCESSING, 0)
    waiting = sum(known.counts.get(state, 0) for state in _WAITING)
    parts = [f"{running:,} running" if running else "", f"{waiting:,} waiting" if waiting else ""]
    said = ", ".join(filter(None, parts)) or "nothing to do"
    return f"svcq: {said}{', paused' if known.paused else ''}"


def _running_line(job: Job) -> str:
    return " · ".join(filter(None, (plain(title_of(job), _TITLE), _share(job))))


def _share(job: Job) -> str:
    if job.paused:
        return "paused"
    if job.cancel_requested:
        return "is being stopped"
    return "" if job.progress is None else f"{job.progress:.0%}"


# The menu


def _menu(now: Situation) -> Iterator[Item]:
    known = now.snapshot
    yield Item("head", headline(now), enabled=False)
    for n, trouble in enumerate(now.troubles):
        yield Item(f"trouble-{n}", plain(trouble, 90), enabled=False)
    yield Item(SEPARATOR)
    if known is not None:
        yield from _of_the_service(now, known)
    yield _service_menu(now)
    yield Item("settings", "Settings...", Action("settings"))
    yield Item("about", f"About svcq {__version__}", Action("about"))
    yield Item("quit", "Quit", Action("quit"))


def _of_the_service(now: Situation, known: Snapshot) -> Iterator[Item]:
    if now.unseen:
        yield Item("seen", f"{_unseen(now)} failed: mark as seen", Action("seen"))
        yield Item(SEPARATOR)
    yield from (_running_menu(job, known) for job in known.running[:MOST_RUNNING])
    more = known.counts.get(State.PROCESSING, 0) - len(known.running[:MOST_RUNNING])
    if more > 0:
        yield Item("more", f"{more:,} more on the page...", Action("page"))
    yield Item(SEPARATOR)
    if known.recent:
        children = tuple(_recent_menu(job, known) for job in known.recent[:MOST_RECENT])
        yield Item("recent", "Ended", children=children)
    yield from _actions(known)
    yield Item("page", "Open page", Action("page"))
    yield Item(SEPARATOR)


def _actions(known: Snapshot) -> Iterator[Item]:
    if known.role == "reader":
        yield Item(
            "read-only", "You may only look: the owner of the service can allow more",
            enabled=False,
        )  # fmt: skip
    may_add, all_of_it = known.role != "reader", known.role == "admin"
    yield Item("add", "Queue a command...", Action("add"), enabled=may_add)
    yield Item("clipboard", "Queue the clipboard...", Action("clipboard"), enabled=may_add)
    if known.schedules:
        shown = [_schedule_menu(one, known) for one in known.schedules[:MOST_SCHEDULES]]
        if len(known.schedules) > MOST_SCHEDULES:
            shown.append(Item("schedules-more", "More on the page...", Action("page")))
        yield Item("schedules", "Schedules", children=tuple(shown))
    if known.paused:
        yield Item("resume", "Resume all", Action("resume"), enabled=all_of_it)
    else:
        yield Item("pause", "Pause all", Action("pause"), enabled=all_of_it)


def _running_menu(job: Job, known: Snapshot) -> Item:
    name, may = f"job-{job.id}", known.may_steer(job)
    still = Item(f"{name}-still", "Pause", Action("suspend", job.id), may)
    if job.paused:
        still = Item(f"{name}-on", "Go on", Action("go on", job.id), may)
    note = " ".join(filter(None, (_share(job), plain(job.progress_note or "", _TITLE))))
    children = [
        Item(f"{name}-note", f"Job {job.id}{f': {note}' if note else ''}", enabled=False),
        Item(f"{name}-output", "Show output", Action("output", job.id)),
        Item(f"{name}-stop", "Stop", Action("stop", job.id), may and not job.cancel_requested),
    ]
    if job.task is None:
        children.append(still)
    return Item(name, f"▶ {_running_line(job)}", children=tuple(children))


def _recent_menu(job: Job, known: Snapshot) -> Item:
    name = f"ended-{job.id}-{job.run}"
    at = "" if job.finished_at is None else f" {job.finished_at.astimezone():%H:%M}"
    words = f"{_MARKS.get(job.state, '?')}{at}  {plain(title_of(job), _TITLE)}"
    why = job.state.value if job.reason is None else f"{job.state.value}: {plain(job.reason)}"
    children = (
        Item(f"{name}-note", f"Job {job.id} is {why}", enabled=False),
        Item(f"{name}-output", "Show output", Action("output", job.id)),
        Item(f"{name}-retry", "Retry", Action("retry", job.id), known.may_steer(job)),
    )
    return Item(name, words, children=children)


def _schedule_menu(schedule: Schedule, known: Snapshot) -> Item:
    own = known.role == "user" and schedule.owner == known.account
    may, name = known.role == "admin" or own, f"schedule-{schedule.name}"
    says = "paused"
    if not schedule.paused:
        says = "over" if schedule.next_ms is None else f"next {_when(moment(schedule.next_ms))}"
    toggle = Item(f"{name}-pause", "Pause", Action("pause schedule", schedule.name), may)
    if schedule.paused:
        toggle = Item(f"{name}-resume", "Resume", Action("resume schedule", schedule.name), may)
    run = Item(f"{name}-run", "Run now", Action("fire", schedule.name), may)
    return Item(name, f"{plain(schedule.name, 30)}  ({says})", children=(run, toggle))


def _when(at: datetime) -> str:
    here = at.astimezone()
    near = here.date() == datetime.now().astimezone().date()
    return f"{here:%H:%M}" if near else f"{here:%a %d %b, %H:%M}"


def _service_menu(now: Situation) -> Item:
    """Nothing of it is for those who only use the service of somebody else."""
    if now.service == "other":
        return Item("service", "Service", enabled=False)
    runs = now.snapshot is not None
    by = "" if now.service == "own" else " (asks for a password)"
    children = (
        Item("start", f"Start{by}", Action("start"), enabled=not runs),
        Item("stop", f"Stop{by}", Action("halt"), enabled=runs),
        Item("restart", f"Restart{by}", Action("restart"), enabled=runs),
    )
    return Item("service", "Service", children=children)


def _tidy(items: Iterator[Item]) -> Iterator[Item]:
    """A line between groups, never at an end or twice; each with a key of its own."""
    waiting, n = False, 0
    for item in items:
        if item.key == SEPARATOR:
            waiting = n > 0
            continue
        if waiting:
            yield Item(f"{SEPARATOR}{n}")
            waiting = False
        n += 1
        yield item
