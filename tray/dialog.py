"""The dialogs, each in a process of its own: `python -m svcq_tray.dialog add|settings|about`.

A toolkit wants a main thread for itself, and what goes wrong in it must not take the tray along.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

from svcq.config import set_value
from svcq.config.settings import SETTINGS
from svcq.config.shown import said_values
from svcq.host.autostart import add_to_session, is_in_session, remove_from_session
from svcq.version import __version__

from . import door
from .door import Door
from .form import CONDITIONS, MOST_FROM_CLIPBOARD, SHOWN, TIMES, Form, changed
from .state import last_commands, remember


def main(which: str) -> int:
    try:
        from .window import Window
    except ImportError:
        print(  # noqa: T201  (whoever started the tray reads it)
            "svcq: The dialogs of the tray need tkinter: install python3-tk, or use svcq open.",
            file=sys.stderr,
        )
        return 1
    found = door.find()
    _DIALOGS[which](found, Window)
    return 0


def _add(found: Door, window: Any, command: str = "") -> None:
    made = window("Queue a command")
    before = last_commands(found.own)
    queues, default, trouble = _queues(found)
    said, box = made.choice("Command", command, tuple(before), hint="As in a terminal")
    folder = made.entry("Folder", os.path.expanduser("~"))
    queue, _ = made.choice("Queue", default, queues)
    priority = made.entry("Priority", "0", "higher goes first, -1000 to 1000")
    time, _ = made.choice("When", "now", TIMES)
    condition, _ = made.choice("Only while", "", CONDITIONS)
    notify = made.check("Tell me when it has ended", on=True)
    made.error.set(trouble)

    def go() -> None:
        form = Form(
            said.get(), folder.get(), queue.get(), priority.get(), time.get(), condition.get(),
            notify.get(),
        )  # fmt: skip
        made.work(lambda: _queue(found, form), lambda _: made.close())

    made.buttons("Queue", go)
    made.first = box
    made.show()


def _queue(found: Door, form: Form) -> None:
    command, options = form.job()
    with closing(found.client()) as client:
        client.command(command, **options)
    remember(found.own, command)


def _queues(found: Door) -> tuple[tuple[str, ...], str, str]:
    """The queues there are and the usual one; without a service, why not."""
    try:
        with closing(found.client()) as client:
            default = client.config.queue
            return tuple(sorted({default, *(one.name for one in client.queues())})), default, ""
    except door.WRONG as error:
        return (), "", door.says(error, found)


def _clipboard(found: Door, window: Any) -> None:
    """Shown before it is queued: what is in a clipboard may surprise."""
    import tkinter as tk

    root = tk.Tk()
    root.withdraw()
    try:
        text = str(root.clipboard_get())[:MOST_FROM_CLIPBOARD]
    except (tk.TclError, UnicodeError):
        text = ""
    root.destroy()
    _add(found, window, " && ".join(line.strip() for line in text.splitlines() if line.strip()))


def _settings(found: Door, window: Any) -> None:
    made = window("svcq settings")
    before = _shown(found)
    fields = {}
    for one in SHOWN:
        kind: Any = SETTINGS[one.key].kind
        words = getattr(kind, "words", None)
        if words and one.key != "tray.rules":
            fields[one.key], _ = made.choice(
                one.label, str(before[one.key]), words, free=False, hint=one.hint
            )
        else:
            fields[one.key] = made.entry(one.label, str(before[one.key]), one.hint)
    session = made.check("Start the tray with my session", on=is_in_session())
    made.text("svcq config list shows all settings.")

    def go() -> None:
        now = {key: field.get() for key, field in fields.items()}
        wish = session.get()
        made.work(lambda: _save(found, before, now, in_session=wish), lambda _: made.close())

    made.buttons("Save", go)
    made.show()


def _shown(found: Door) -> dict[str, Any]:
    said = said_values(found.own)
    return {one.key: said.get(one.key, SETTINGS[one.key].default) for one in SHOWN}


def _save(found: Door, before: dict[str, Any], now: dict[str, str], *, in_session: bool) -> None:
    for key, value in changed(before, now).items():
        set_value(found.own, key, value)
    if in_session != is_in_session():
        if in_session:
            add_to_session([sys.executable, "-m", "svcq_tray"], str(found.home))
        else:
            remove_from_session()


def _about(found: Door, window: Any) -> None:
    made = window("About svcq")
    made.text(f"svcq {__version__}: a job queue that a computer runs as a service.")
    made.text(_standing(found))
    made.text(f"Home: {found.home}\nPython {sys.version.partition(' ')[0]}, licence MIT")
    made.buttons("Close", made.close, leave="")
    made.show()


def _standing(found: Door) -> str:
    try:
        with closing(found.client()) as client:
            said = client.ask("GET", "/service")
        return f"The service is svcq {said['version']}, pid {said['pid']}."
    except door.WRONG as error:
        return door.says(error, found)


_DIALOGS: dict[str, Callable[[Door, Any], None]] = {
    "add": _add,
    "clipboard": _clipboard,
    "settings": _settings,
    "about": _about,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "add"))
