"""Looking for what is wrong: each check is one line that says what it found, and what to do.

Nothing is changed: a home or a store that is not there is not made.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from svcq import host
from svcq.conditions import judge
from svcq.config import Config, Project, config_file, load
from svcq.config.load import default_home
from svcq.errors import SvcqError
from svcq.finding import Finding, problem, said_by
from svcq.handoff import examine_handed
from svcq.host import processes, service
from svcq.host.autostart import TRAY_IS_HERE, TRAY_NEEDS
from svcq.host.facts import fact
from svcq.host.filesystems import check_local, place_of
from svcq.host.power import Inhibitor
from svcq.host.service import Manager
from svcq.jobs import State
from svcq.service.health import examine_crew, examine_service
from svcq.sizes import format_size
from svcq.store import Store, Worker, open_store
from svcq.store.files import check_file
from svcq.times import DAY, MINUTE, SECOND, format_duration, moment, now_ms
from svcq.worker.places import Places

OLDEST_SQLITE = (3, 37, 0)  # the first with STRICT tables
OLDEST_PYTHON = (3, 9)  # of a project
LEAST_SPACE = 256 << 20
LONG_PAUSE = DAY
CLOCK_JUMP = MINUTE
LONG_OVERDUE = MINUTE
CHECK_TIME = 10.0  # seconds that the look at the whole store may take
_PYTHON_TIME = 20.0
_AWAKE_TIME = 5.0


def examine(
    home: Path | None = None, *, manager: Manager | None = None, check_time: float = CHECK_TIME
) -> Iterator[Finding]:
    """Every check there is, in the order in which trouble spreads; later ones need earlier ones."""
    manager = manager or service.manager()
    where = home or default_home()
    yield _sqlite()
    yield from said_by("home", lambda: _home(where))
    yield from said_by("place", lambda: _place(where))
    yield from examine_service(where, manager)
    try:
        config = load(home)
    except SvcqError as error:
        yield problem("config", str(error))
        return
    yield _config(config_file(config.home))
    yield from said_by("logs", lambda: _logs(config.home))
    yield from said_by("disk", lambda: _disk(config))
    yield _awake(config)
    yield _tray()
    for project in config.projects:
        yield _project(project)
    yield from _store(config, manager, check_time)


# The machine


def _sqlite() -> Finding:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        return Finding("sqlite", False, f"version {version} is older than {wanted}",
                       "use a Python that comes with a newer SQLite")  # fmt: skip
    return Finding("sqlite", True, f"version {version}")


def _home(home: Path) -> Finding:
    if not home.exists():
        return Finding("home", True, f"{home} is not there yet: it is made at the first use")
    host.check_private(home)
    return Finding("home", True, f"{home} is yours alone")


def _place(home: Path) -> Finding:
    place = place_of(home)
    check_local(home)
    return Finding("place", True, f"on a disk of this machine ({place.kind})")


def _config(file: Path) -> Finding:
    says = f"{file} can be read" if file.exists() else "no file: every setting has its default"
    return Finding("config", True, says)


def _logs(home: Path) -> Finding:
    logs = home / "logs"
    if not logs.exists():
        return Finding("logs", True, "no output was written yet")
    if not logs.is_dir():
        return Finding("logs", False, f"{logs} is no directory, so no job can start",
                       f"move {logs} away")  # fmt: skip
    host.check_private(logs)
    if not os.access(logs, os.W_OK | os.X_OK):
        return Finding("logs", False, f"{logs} may not be written, so no job can start",
                       f"chmod u+wx {logs}")  # fmt: skip
    return Finding("logs", True, f"{logs} can be written")


def _disk(config: Config) -> Finding:
    places = [config.home, config.home / "logs"]  # output may go to a disk of its own
    if "://" not in config.store:
        places.append(Path(config.store).parent)
    free = {_existing(place): 0 for place in places}
    for place in free:
        free[place] = shutil.disk_usage(place).free
    place, least = min(free.items(), key=lambda one: one[1])
    if least < LEAST_SPACE:
        return Finding("disk", False, f"only {format_size(least)} are free at {place}",
                       "free some space, or run svcq cleanup")  # fmt: skip
    return Finding("disk", True, f"{format_size(least)} are free at {place}")


def _awake(config: Config) -> Finding:
    """By asking for it. That it cannot be had is no trouble to a machine that never sleeps."""
    if config.jobs.keep_awake == "never":
        return Finding("awake", True, "the machine may sleep while jobs run (jobs.keep_awake)")
    inhibitor, deadline = Inhibitor(), time.monotonic() + _AWAKE_TIME
    inhibitor.hold("svcq doctor")
    while inhibitor.state() == "asked" and time.monotonic() < deadline:
        time.sleep(0.01)
    held = inhibitor.state() == "held"
    inhibitor.close()
    if held:
        return Finding("awake", True, "the machine can be kept awake while jobs run")
    why = inhibitor.trouble or "nobody answered"
    return Finding("awake", True, f"the machine cannot be kept awake while jobs run ({why})")


def _tray() -> Finding:
    """Only where there is a desktop can anything of it be missing."""
    if not TRAY_IS_HERE:
        return Finding("tray", True, "there is none for this system yet")
    missing = [name for name in TRAY_NEEDS if find_spec(name) is None]
    if missing:
        return Finding("tray", True, "it is not installed (pip install svcq[tray])")
    from svcq_tray.desktop import examine, in_session

    if not in_session():
        return Finding("tray", True, "there is no desktop session here")
    lacking = examine()
    if lacking is None:
        return Finding("tray", True, "the desktop shows icons of programs")
    return Finding("tray", True, f"there is no icon: {lacking}; notifications come all the same")


def _existing(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if one.exists())


def _project(project: Project) -> Finding:
    check = f"project {project.name}"
    remedy = (
        f"correct it with svcq project add, or in [project.{project.name}] of the configuration"
    )
    try:
        said = subprocess.run(
            [project.python, "-I", "-c", "import sys; print(*sys.version_info[:3])"],
            capture_output=True, text=True, timeout=_PYTHON_TIME, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        major, minor, micro = map(int, said.stdout.split())
    except OSError as error:
        return Finding(check, False, f"{project.python} cannot be run ({error.strerror})", remedy)
    except (subprocess.SubprocessError, ValueError):
        return Finding(check, False, f"{project.python} does not work as a Python", remedy)
    name = f"{major}.{minor}.{micro}"
    if (major, minor) < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        says = f"{project.python} is Python {name}, older than {wanted}"
        return Finding(check, False, says, remedy)
    missing = next((folder for folder in project.path if not Path(folder).is_dir()), None)
    if missing is not None:
        return Finding(check, False, f"its directory {missing} is not there", remedy)
    return Finding(check, True, f"{project.python} is Python {name}")


# The store


def _store(config: Config, manager: Manager, check_time: float) -> Iterator[Finding]:
    looked = _server if "://" in config.store else _file
    try:
        there = yield from looked(config)
        if not there:
            return
        store = open_store(config)
    except SvcqError as error:
        yield problem("store", str(error))
        return
    with closing(store):
        says = f"{store.engine.where} opens; its schema is {store.program}"
        yield Finding("store", True, says)
        if "://" not in config.store:
            yield from said_by("integrity", lambda: _integrity(Path(config.store), check_time))
        yield from said_by("clock", lambda: _clock(store))
        yield from said_by("schedules", lambda: _schedules(store))
        yield from said_by("timers", lambda: examine_handed(store, config, manager))
        yield from said_by("workers", lambda: _workers(store, Places(config.home)))
        yield from said_by("crew", lambda: examine_crew(store, Places(config.home), manager))
        yield from said_by("running", lambda: _running(store, Places(config.home)))
        yield from said_by("spool", lambda: _spool(Places(config.home)))
        yield from said_by("queues", lambda: _queues(store))
        yield from said_by("conditions", lambda: _conditions(store))


def _file(config: Config) -> Generator[Finding, None, bool]:
    """Whether there is a store to look at."""
    path = Path(config.store)
    if not path.exists():
        yield Finding("store", True, f"{path} is not there yet: it is made with the first job")
        return False
    host.check_private(path)
    check_file(config.store)
    return True


def _server(config: Config) -> Generator[Finding, None, bool]:
    """The same of a database."""
    from svcq.store.opening import need_psycopg

    need_psycopg()
    from svcq.store.postgres_health import examine_server, is_there

    there = is_there(config)
    yield from examine_server(config)
    return there


def _integrity(path: Path, check_time: float) -> Finding:
    """SQLite's own quick check, for as long as one likes to wait."""
    deadline = time.monotonic() + check_time
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
        try:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                return _damaged(path, str(error))
            spent = format_duration(round(check_time * SECOND))
            says = (
                f"nothing wrong was found in {spent}; the store is too large to look at all of it"
            )
            return Finding("integrity", True, says)
        except sqlite3.DatabaseError as error:
            return _damaged(path, str(error))
    if found != "ok":
        return _damaged(path, found)
    return Finding("integrity", True, "the store is whole")


def _damaged(path: Path, how: str) -> Finding:
    first = how.strip().splitlines()[-1]
    return Finding("integrity", False, f"the store {path} is damaged ({first})",
                   "stop svcq and restore it from a backup")  # fmt: skip


def _clock(store: Store) -> Finding:
    newest = store.changes(store.last_change() - 1, 1)
    ahead = 0 if not newest else round(newest[0].at.timestamp() * SECOND) - now_ms()
    if ahead > CLOCK_JUMP:
        return Finding(
            "clock", False,
            f"the newest change in the store is {format_duration(ahead)} ahead of the clock",
            "set the clock right; until then, jobs that wait for a time may start late",
        )  # fmt: skip
    before = round(os.stat(__file__).st_mtime * SECOND) - now_ms()
    if before > DAY:
        says = f"the clock is {format_duration(before)} behind the day on which svcq was put here"
        return Finding("clock", False, says, "set the clock right")
    was_set = store.timetable.clock_set()
    if was_set is not None:
        at, by = was_set
        when = f"{moment(at).astimezone():%Y-%m-%d %H:%M}"
        says = f"the clock agrees with the store; it was set {_way(by)} on {when}"
        return Finding("clock", True, says)
    for worker in store.workers():
        jump = _jump_since(worker)
        if jump > CLOCK_JUMP or worker.started_at - now_ms() > CLOCK_JUMP:
            says = f"it was set {_way(jump)} since worker {worker.id} was started"
            return Finding("clock", False, says, _AFTER_A_JUMP)
    return Finding("clock", True, "the clock agrees with the store, and with how long workers ran")


_AFTER_A_JUMP = "if it is right now, nothing: what waits for a time goes by the clock as it is"


def _jump_since(worker: Worker) -> int:
    """By how much the clock has gone further than time has since a worker of this boot began; below
    0, it may as well be part of a program that is older than itself."""
    if worker.host != socket.gethostname() or worker.boot != processes.boot_id():
        return 0
    age = processes.process_age(worker.pid)
    born, _, _ = (worker.born or "").partition("-")
    if age is None or processes.process_born(worker.pid) != born:
        return 0
    return now_ms() - worker.started_at - round(age * SECOND)


def _way(by: int) -> str:
    return f"{'forward' if by > 0 else 'back'} by {format_duration(abs(by))}"


def _schedules(store: Store) -> Finding:
    stands = store.clocks()
    counted = _counted(stands.schedules, "schedule")
    if stands.next_due is None:
        says = f"{counted}, none of which svcq is to fire" if stands.schedules else "there are none"
        return Finding("schedules", True, says)
    if not stands.clocks:
        return Finding("schedules", False, f"{counted}, and no clock runs",
                       "svcq start, or svcq up")  # fmt: skip
    behind = now_ms() - stands.next_due
    if behind > LONG_OVERDUE:
        says = f"{stands.next_name} should have fired {format_duration(behind)} ago"
        remedy = "see what it says: in the log of the service, or where svcq up runs"
        return Finding("schedules", False, f"{says}, though a clock runs", remedy)
    failing = store.timetable.failing()
    if failing is not None:
        says = f"{failing.name} could not queue its job: {failing.last_note}"
        return Finding("schedules", False, says, f"svcq schedule edit {failing.name}")
    at = f"{moment(stands.next_nominal or 0).astimezone():%Y-%m-%d %H:%M:%S}"
    return Finding("schedules", True, f"{counted}; the next is {stands.next_name}, at {at}")


def _lives(worker: Worker, places: Places) -> bool:
    """As its rescuers would tell; of another machine, or another home, as far as it is heard of."""
    if worker.lease_until is not None:
        return worker.lease_until >= now_ms()
    if worker.host != socket.gethostname():
        return not worker.is_silent(now_ms())
    heard = worker.heard_at is not None and not worker.is_silent(now_ms())
    return heard or processes.lock_is_held(places.worker_lock(worker.pid, worker.born or ""))


def _workers(store: Store, places: Places) -> Finding:
    registered = store.workers()
    dead = [worker for worker in registered if not _lives(worker, places)]
    living = len(registered) - len(dead)
    if dead:
        named = ", ".join(f"{worker.id} (pid {worker.pid} on {worker.host})" for worker in dead[:3])
        more = f" and {len(dead) - 3} more" if len(dead) > 3 else ""
        died = f"{_counted(len(dead), 'worker')} died without a word: {named}{more}"
        return Finding("workers", False, f"{died}; {living} alive",
                       "start one, which gives back what it held: svcq worker start")  # fmt: skip
    waiting = sum(store.counts()[state] for state in (State.PENDING, State.RETRYING))
    if not living and waiting:
        wait = "waits" if waiting == 1 else "wait"
        says = f"none is alive, and {_counted(waiting, 'job')} {wait} for one"
        return Finding("workers", False, says, "svcq worker start")
    return Finding("workers", True, f"{living} alive" if living else "none, and none is needed")


def _running(store: Store, places: Places) -> Finding:
    registered = {worker.id: worker for worker in store.workers()}
    dead = [worker for worker in registered.values() if not _lives(worker, places)]
    lost = [job for worker in dead for job, _ in store.runs_of(worker.id)]
    if lost:
        named = ", ".join(map(str, lost[:5])) + (" ..." if len(lost) > 5 else "")
        are = "is" if len(lost) == 1 else "are"
        says = f"{_counted(len(lost), 'job')} ({named}) {are} held by dead workers"
        remedy = "a worker of that machine gives them back: svcq worker start"
        return Finding("running", False, says, remedy)
    running = store.counts()[State.PROCESSING]
    return Finding("running", True, f"{_counted(running, 'job')}, each with its worker")


def _spool(places: Places) -> Finding:
    kept = sorted(places.spool.glob("*.json")) if places.spool.is_dir() else []
    if kept:
        oldest = min(path.stat().st_mtime for path in kept)
        age = format_duration(max(round((time.time() - oldest) * SECOND), 0))
        what = f"{_counted(len(kept), 'file')} in {places.spool}, the oldest {age} old"
        return Finding("spool", False, f"ends of jobs were not written to the store: {what}",
                       "any worker delivers them: svcq worker start")  # fmt: skip
    return Finding("spool", True, "everything was delivered")


def _queues(store: Store) -> Finding:
    oldest = {one.queue: one.oldest for one in store.stats() if one.oldest is not None}
    paused = [queue.name for queue in store.queues() if queue.paused]
    long = [name for name in paused if oldest.get(name, 0) * SECOND > LONG_PAUSE]
    if long:
        waited = format_duration(round(oldest[long[0]] or 0) * SECOND)
        others = f" (and {len(long) - 1} more)" if len(long) > 1 else ""
        says = f"{long[0]} is paused, and a job in it has waited for {waited}{others}"
        return Finding("queues", False, says, f"svcq resume {long[0]}")
    return Finding("queues", True, f"paused: {', '.join(paused)}" if paused else "none is paused")


def _conditions(store: Store) -> Finding:
    waited_for = store.conditions()
    for condition in waited_for:
        holds, says = judge(condition, fact)
        if holds is None:
            return Finding(
                "conditions", False,
                f"jobs wait for {condition}, and whether that holds here is unknown ({says})",
                "svcq edit JOB takes another --when, svcq queue set QUEUE another when=",
            )  # fmt: skip
    says = f"jobs wait for {', '.join(waited_for)}" if waited_for else "no job waits for one"
    return Finding("conditions", True, says)


def _counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
