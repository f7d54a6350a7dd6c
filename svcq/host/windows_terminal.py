"""Windows: no pseudo-terminal yet, which is said where a job asks for one."""

from __future__ import annotations

from collections.abc import Mapping


class Terminal:
    inner = -1

    def __init__(self, output: int, env: Mapping[str, str]) -> None:  # noqa: ARG002 (there is none)
        raise OSError(0, "svcq has no terminals for jobs on Windows: queue it without --tty")

    def begin(self) -> None:
        """Never called: there is none."""

    def close(self) -> None:
        """Never called: there is none."""
