"""Windows: a window that nobody sees, by which a program hears that the session ends.

Windows asks every window whether the session may end, and tells it when it does. It waits for an
answer to the second as long as the window has said why; in that time jobs go back.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from svcq.host import windows_kernel as kernel
from svcq.host.windows_service import ending

_QUERY_END, _END, _QUIT = 0x0011, 0x0016, 0x0012
_PATIENCE = 60.0  # seconds, of which Windows may give fewer
_SOON = 5.0  # seconds
_WHY = "svcq puts the jobs back that run"


@contextmanager
def listening_to_windows(title: str) -> Iterator[None]:
    """While it is entered, the end of the session is heard."""
    window = _Window(title)
    thread = threading.Thread(target=window.run, name="window", daemon=True)
    thread.start()
    window.ready.wait(_PATIENCE)
    try:
        yield
    finally:
        window.done.set()
        window.close()
        thread.join(_SOON)


class _Window:
    def __init__(self, title: str) -> None:
        self._title = title
        self._thread = 0
        self.ready = threading.Event()
        self.done = threading.Event()  # what was to be done at the end of the session

    def run(self) -> None:
        import pywintypes
        import win32api
        import win32gui

        try:
            made: Any = win32gui.WNDCLASS()
            made.lpszClassName = f"svcq-{id(self)}"
            made.lpfnWndProc = self._heard
            registered: Any = win32gui.RegisterClass(made)
            win32gui.CreateWindow(registered, self._title, 0, 0, 0, 0, 0, 0, 0, 0, None)
        except pywintypes.error:
            self.ready.set()
            return  # a session without a desktop has nobody who logs off
        self._thread = win32api.GetCurrentThreadId()
        self.ready.set()
        win32gui.PumpMessages()

    def _heard(self, window: int, message: int, one: int, two: int) -> int:
        import win32gui

        if message == _QUERY_END:
            self._say_why(window)
            return 1
        if message == _END:
            if one:
                ending.session_over()
                self.done.wait(_PATIENCE)
            return 0
        return int(win32gui.DefWindowProc(window, message, one, two))

    def _say_why(self, window: int) -> None:
        library = kernel.library("user32")
        library.ShutdownBlockReasonCreate(ctypes.c_void_p(window), ctypes.c_wchar_p(_WHY))

    def close(self) -> None:
        import pywintypes
        import win32api

        with suppress(pywintypes.error):  # it has ended, or has never begun
            win32api.PostThreadMessage(self._thread, _QUIT, 0, 0)
