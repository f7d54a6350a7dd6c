"""The tray: how soon it tells and shows, what it costs, and a flood of ends."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.bench.figures import Figure, Scale, limit_figure
from tests.bench.worker import PATIENCE, children, cpu_seconds, pss_megabytes
from tests.helpers import eventually
from tests.tray.desktop import Desktop
from tests.tray.person import SETTINGS, Person

TOLD_MS, SHOWN_MS = 300, 500
FLOOD = (10_000, 60)  # in so many seconds
HANDFUL = 10


def tray_told(scale: Scale, folder: Path) -> Iterator[Figure]:
    """From the end of a job, as the store has it, to its notification on the bus."""
    with at_desktop(folder) as person:
        waits = []
        for n in range(scale.starts):
            job = person.home.run("exit 3", name=f"job {n}")
            assert job.finished_at is not None
            note = eventually(lambda n=n: told(person, f"Failed: job {n}"), PATIENCE)
            waits.append((note - job.finished_at.timestamp()) * 1000)
            eventually(lambda: calm(person), PATIENCE)
    what = "from a job's end to its notification on the bus"
    yield limit_figure("tray_told", what, median(waits), TOLD_MS, "ms")
    yield limit_figure("tray_told", f"{what}, the slowest", max(waits), TOLD_MS, "ms")


def told(person: Person, title: str) -> float | None:
    return next((note.at for note in person.desktop.notes() if note.title == title), None)


def calm(person: Person) -> bool:
    """Three within ten seconds come by themselves; more would come together."""
    notes = person.desktop.notes()
    return len(notes) < 3 or time.time() - notes[-3].at > 10.5


def tray_shown(scale: Scale, folder: Path) -> Iterator[Figure]:
    """From a change, as the store has it, to the icon and the menu that show it."""
    with at_desktop(folder) as person:
        rule = "type='signal',path='/StatusNotifierItem',member='NewIcon'"
        lines = "type='signal',path='/MenuBar',member='LayoutUpdated'"
        person.desktop.start("signals", ["dbus-monitor", "--session", rule, lines])
        eventually(lambda: "NameAcquired" in person.desktop.said("signals"), PATIENCE)
        icons, menus = [], []
        for _ in range(scale.starts):
            job = person.home.add("sleep 600")
            person.home.wait_until_running(job)
            begun = person.home.client.get(job).started_at
            assert begun is not None
            at = begun.timestamp()
            icons.append((eventually(lambda at=at: signalled(person, "NewIcon", at)) - at) * 1000)
            menus.append(
                (eventually(lambda at=at: signalled(person, "LayoutUpdated", at)) - at) * 1000
            )
            person.home.client.cancel(job)
            person.home.ended(job)
            person.sees("nothing to do")
    for what, waits in (("icon", icons), ("menu", menus)):
        said = f"from the start of a job to the {what}"
        yield limit_figure("tray_shown", said, median(waits), SHOWN_MS, "ms")
        yield limit_figure("tray_shown", f"{said}, the slowest", max(waits), SHOWN_MS, "ms")


def signalled(person: Person, member: str, after: float) -> float | None:
    said = person.desktop.said("signals")
    times = re.findall(rf"^signal time=([\d.]+) .*member={member}$", said, re.MULTILINE)
    return next((float(one) for one in times if float(one) > after), None)


def tray_idle(scale: Scale, folder: Path) -> Iterator[Figure]:
    with at_desktop(folder) as person:
        person.home.run("true")
        tray = person.desktop.parts["tray"].pid
        time.sleep(5)
        pids = [tray, *children(tray)]
        before, began = cpu_seconds(pids), time.perf_counter()
        time.sleep(3 * scale.idle)
        share = (cpu_seconds(pids) - before) / (time.perf_counter() - began)
        memory = pss_megabytes(tray)
    yield limit_figure("tray_idle", "idle tray: processor time", share * 100, 0.5, "% of a core")
    yield limit_figure("tray_idle", "idle tray: memory", memory, 80, "MB")


def tray_flood(scale: Scale, folder: Path) -> Iterator[Figure]:
    """So many failures in a minute that each by itself would bury the desktop."""
    n, seconds = FLOOD if scale.starts > 5 else (200, 5)
    with at_desktop(folder) as person:
        client = person.home.client
        client.queue("flood", paused=True)
        new = client.new_command("true", queue="flood", max_attempts=1)
        for start in range(0, n, 1000):
            client.add([new] * min(1000, n - start))
        person.home.started[0].terminate()  # it is `svcq up`, whose worker would take them
        person.home.started[0].wait()
        person.home.configure(f"{SETTINGS}\n[workers]\ncount = 0\n")
        person.home.start("service")
        client.resume("flood")
        person.sees("svcq: ")
        began = time.monotonic()
        fail_steadily(person, n, n / seconds)
        took = time.monotonic() - began
        pid = person.desktop.parts["tray"].pid
        used = cpu_seconds([pid])
        person.sees("svcq: nothing to do")
        eventually(lambda: all_are_told(person, n), PATIENCE)
        notes = len(person.desktop.notes())
        memory = pss_megabytes(pid)
        assert person.desktop.parts["tray"].poll() is None
        assert "Traceback" not in person.desktop.said("tray")
    what = f"{n:,} jobs failing in {took:.0f} s"
    yield limit_figure("tray_flood", f"{what}: notifications", notes, HANDFUL, "notes")
    yield limit_figure("tray_flood", f"{what}: memory of the tray", memory, 150, "MB")
    yield limit_figure("tray_flood", f"{what}: its processor time", used, 30, "s")


def fail_steadily(person: Person, n: int, a_second: float) -> None:
    client, done, began = person.home.client, 0, time.monotonic()
    while done < n:
        due = min(n, int((time.monotonic() - began) * a_second) + 1)
        for held in client.fetch("flood", min(max(due - done, 1), 100)):
            client.fail(held, "it broke")
            done += 1
        time.sleep(0.02)


def all_are_told(person: Person, n: int) -> bool:
    notes = person.desktop.notes()
    single = sum(note.title.startswith("Failed: ") for note in notes)
    together = [note for note in notes if "failed" in note.title and note.title[0].isdigit()]
    return bool(together) and single + int(together[-1].title.split()[0].replace(",", "")) == n


@contextmanager
def at_desktop(folder: Path) -> Iterator[Person]:
    desktop = Desktop("xfce")
    person = Person(desktop, folder)
    try:
        desktop.start_monitor()
        person.home.start("up")
        person.start()
        person.sees("svcq: nothing to do")
        person.follows()
        yield person
    finally:
        person.close()
        desktop.close()
