"""Linux: svcq as a service of the whole machine, as an account of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from svcq.errors import Refused
from svcq.host import linux_account as account
from svcq.host import linux_units as units
from svcq.host.linux_program import check_program
from svcq.host.linux_service import Manager
from svcq.host.linux_systemctl import is_there
from svcq.host.linux_units import ACCOUNT, HOME, Unit
from svcq.host.linux_workers import ask_for_one
from svcq.host.standing import Trouble

_UNITS = (units.SERVICE, units.SOCKET, units.WORKER)
_NOT_SEEN = (
    f"Its jobs run as {ACCOUNT}: they do not see your files, your PATH, your devices and your "
    "session, but what that account may see (svcq install without --system makes a service that "
    "sees what you see)."
)


class SystemManager(Manager):
    system = True
    option = " --system"
    way_to_units = f"systemctl restart {units.SOCKET}, then svcq stop --system and start"
    _where = "of this machine"

    @property
    def folder(self) -> Path:
        return Path("/etc/systemd/system")

    def install(self, python: str, env: Mapping[str, str]) -> list[str]:
        account.need_administrator("install the service")
        if not is_there():
            raise Refused(
                "This machine was not started by systemd, which would run the service: use svcq up."
            )
        check_program(python)
        if os.path.lexists(HOME):
            account.check_home()
        said = [account.make()]
        account.make_home()
        said += self._write(units.system_units(python, env))
        where = f"svcq starts with the machine, as the account {ACCOUNT}, with its home in {HOME}"
        said += [f"Installed {self.unit_file()}: {where}.", _NOT_SEEN]
        said.append("svcq --system COMMAND speaks to it, for root.")
        return [sentence for sentence in said if sentence]

    def _wanted(self, python: str) -> list[Unit]:
        return units.system_units(python, {})

    def troubles(self, python: str) -> Iterator[Trouble]:
        yield from super().troubles(python)
        if not os.path.exists(units.DOOR):
            yield Trouble(
                f"systemd does not listen at {units.DOOR}, so no worker can start",
                f"systemctl start {units.SOCKET}",
            )

    def need_right(self, doing: str) -> None:
        super().need_right(doing)
        account.need_administrator(f"{doing} the service")

    def end_all(self) -> None:
        self._systemctl("stop", units.SERVICE)
        self._systemctl("stop", "svcq-worker@*.service")
        self._systemctl("stop", units.SOCKET)

    def uninstall(self) -> list[str]:
        said = self._remove(_UNITS)
        with suppress(OSError):
            os.rmdir(os.path.dirname(units.DOOR))
        return said

    def purge(self, home: Path) -> list[str]:
        said = []
        if os.path.lexists(home):
            account.check_home()
            shutil.rmtree(home)
            said.append(f"Removed {home}.")
        return [*said, *filter(None, [account.remove()])]

    def start_worker(
        self, _program: Sequence[str], _env: Mapping[str, str], _log: Path, _number: int, /
    ) -> int | None:
        return ask_for_one()
