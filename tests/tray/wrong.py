"""Services that are not as they should be, on a real socket in the place of the real one."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path


class Wrong:
    """Answers every request with the same bytes; with none, it never does."""

    def __init__(self, path: Path, answer: bytes) -> None:
        self._answer = answer
        self._kept: list[socket.socket] = []
        path.unlink(missing_ok=True)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(os.fspath(path))
        self._server.listen(50)
        self._path = path
        self.asked = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()
        for end in self._kept:
            end.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                end, _ = self._server.accept()
                self._kept.append(end)
                threading.Thread(target=self._talk, args=(end,), daemon=True).start()

    def _talk(self, end: socket.socket) -> None:
        with suppress(OSError):
            while end.recv(1 << 16):
                self.asked += 1
                if self._answer:
                    end.sendall(self._answer)


def answer(status: str, body: bytes, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
