"""Windows: svcq as a service of the whole machine, as an account of its own."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from svcq.errors import Refused
from svcq.host import windows, windows_errors
from svcq.host import windows_account as account
from svcq.host.standing import Standing, Trouble
from svcq.host.windows_account import ACCOUNT, SERVICE, SETTINGS
from svcq.host.windows_filesystems import check_local
from svcq.host.windows_kernel import registry
from svcq.host.windows_program import check_program
from svcq.host.windows_service import Manager, wait_until

OPTION = " --system"
_SHOWN = "svcq, the job queue"
_ABOUT = (
    "Runs the queued commands and functions of svcq, and its schedules, on this machine. "
    "svcq --system status tells how it is."
)
_EVENTS = rf"SYSTEM\CurrentControlSet\Services\EventLog\Application\{SERVICE}"
# A program of Windows that has a message with nothing but a text of ours in it.
_MESSAGES = r"%SystemRoot%\System32\EventCreate.exe"
_PRESHUTDOWN_MS = 180_000
# Anew after a crash: at once, in a while, and then once a minute; forgotten after a day.
_RESTARTS = ((1, 5_000), (1, 30_000), (1, 60_000))
_DAY = 86_400
_NOT_SEEN = (
    f"Its jobs run as {ACCOUNT}: they do not see your files, your PATH, your devices and your "
    "session, but what that account may see (svcq install without --system makes one that sees "
    "what you see)."
)
_NO_SUCH, _NOT_ACTIVE, _RUNS_ALREADY = 1060, 1062, 1056
_SID_UNRESTRICTED = 1


class SystemManager(Manager):
    system = True
    option = OPTION
    way_to_units = "svcq stop --system, then start"
    _where = "of this machine"

    def __init__(self) -> None:
        self.account: str | None = None
        """Another one than its own, by the name it logs on with."""

    def use_account(self, name: str) -> None:
        if name.rpartition("\\")[2].lower() in ("localsystem", "system"):
            raise Refused(
                f"{name} may do anything to this machine, and so could every job: name an account "
                "that may do what the jobs need, or leave --account away."
            )
        self.account = name

    def home(self) -> Path | None:
        return account.home()

    def install(self, python: str, env: Mapping[str, str]) -> list[str]:
        account.need_administrator("install the service")
        check_program(python)
        check_local(account.home())
        said = [self._register(python)]
        account.make_home()
        with self._service("set up the service") as service:
            _configure(service)
        _write_environment({**env, "SVCQ_HOME": str(account.home())})
        _register_events()
        where = f"svcq starts with the machine, as {self.account or ACCOUNT}"
        said += [f"{where}, with its home in {account.home()}.", _NOT_SEEN]
        return [*said, "svcq --system COMMAND speaks to it, for administrators."]

    def _register(self, python: str) -> str:
        """Make the service, or bring the one that is ours up to date."""
        import win32service

        line = _line(python)
        name, password = self._log_on()
        there = _registered_line()
        if there is not None and " -m svcq " not in there:
            raise Refused(
                f"A service named {SERVICE} is there that svcq has not made ({there}): "
                "remove that, or rename it, then install again."
            )
        kind, start = win32service.SERVICE_WIN32_OWN_PROCESS, win32service.SERVICE_AUTO_START
        normal = win32service.SERVICE_ERROR_NORMAL
        with _manager_of_services("install the service") as manager, _told("install the service"):
            if there is None:
                made: Any = win32service.CreateService(
                    manager, SERVICE, _SHOWN, win32service.SERVICE_ALL_ACCESS, kind, start,
                    normal, line, None, False, None, name, password,
                )  # fmt: skip
                win32service.CloseServiceHandle(made)
                return f"Installed the service {SERVICE}."
            with self._service("change the service") as service:
                win32service.ChangeServiceConfig(
                    service, kind, start, normal, line, None, False, None, name, password, _SHOWN
                )
            return f"Brought the service {SERVICE} up to date."

    def _log_on(self) -> tuple[str, str | None]:
        if self.account is None:
            return ACCOUNT, None
        # Never in an argument, where every user of the machine could read it.
        password = getpass.getpass(f"Password of {self.account}: ")
        _grant_log_on(self.account)
        return self.account if "\\" in self.account else f".\\{self.account}", password

    def is_installed(self) -> bool:
        return _registered_line() is not None

    def standing(self) -> Standing:
        import win32service

        if not self.is_installed():
            return Standing(installed=False, running=False)
        with self._service("ask how the service is", win32service.SERVICE_QUERY_STATUS) as service:
            said: Any = win32service.QueryServiceStatusEx(service)
        running = said["CurrentState"] == win32service.SERVICE_RUNNING
        code = int(said["Win32ExitCode"])
        text = None
        if not running and code not in (0, 1077):  # never started since the machine was
            text = windows_errors.why(code)
        return Standing(True, running, int(said["ProcessId"]) or None, text)

    def start(self) -> None:
        import pywintypes
        import win32service

        self.need_right("start")
        with self._service("start the service") as service, _told("start the service"):
            try:
                win32service.StartService(service, None)
            except pywintypes.error as error:
                if error.winerror != _RUNS_ALREADY:
                    raise
        wait_until(lambda: self.standing().running, "The service did not start", 60)

    def stop(self) -> None:
        import pywintypes
        import win32service

        self.need_right("stop")
        with self._service("stop the service") as service, _told("stop the service"):
            try:
                win32service.ControlService(service, win32service.SERVICE_CONTROL_STOP)
            except pywintypes.error as error:
                if error.winerror != _NOT_ACTIVE:
                    raise
        wait_until(lambda: not self.standing().pid, "The service did not stop")

    def need_right(self, doing: str) -> None:
        super().need_right(doing)
        account.need_administrator(f"{doing} the service")

    def uninstall(self) -> list[str]:
        winreg = registry()

        import win32service

        with self._service("remove the service") as service, _told("remove the service"):
            win32service.DeleteService(service)
        with suppress(OSError):
            winreg.DeleteKey(winreg.HKEY_LOCAL_MACHINE, _EVENTS)
        return [f"Removed the service {SERVICE}."]

    def purge(self, home: Path) -> list[str]:
        if not home.exists():
            return []
        with account.acting():
            windows.check_private(home)
        shutil.rmtree(home)
        return [f"Removed {home}."]

    def troubles(self, python: str) -> Iterator[Trouble]:
        import win32service

        again = f"svcq install{OPTION}"
        there = _registered_line() or ""
        if there != _line(python):
            yield Trouble(f"the service runs another svcq than this one ({there})", again)
        if not there.startswith('"'):
            yield Trouble("the path of its program is not in quotes", again)
        with self._service("look at the service", win32service.SERVICE_QUERY_CONFIG) as service:
            start = win32service.QueryServiceConfig(service)[1]
        if start != win32service.SERVICE_AUTO_START:
            yield Trouble("the service does not start with the machine", again)
        code = self._last_error()
        if code:
            yield Trouble(f"it last ended because {windows_errors.why(code)}",
                          windows_errors.remedy(code, OPTION))  # fmt: skip

    def _last_error(self) -> int:
        import win32service

        with self._service("ask how the service is", win32service.SERVICE_QUERY_STATUS) as service:
            said: Any = win32service.QueryServiceStatusEx(service)
        code = int(said["Win32ExitCode"])
        return 0 if said["ProcessId"] or code in (0, 1077) else code

    def host(self, run: Callable[[], int]) -> int:
        from svcq.host.windows_scm import be_service

        return be_service(run)

    @contextmanager
    def _service(self, doing: str, access: int | None = None) -> Iterator[Any]:
        import win32service

        wanted = win32service.SERVICE_ALL_ACCESS if access is None else access
        reads = access is not None
        with _manager_of_services(doing, reads=reads) as manager, _told(doing):
            service: Any = win32service.OpenService(manager, SERVICE, wanted)
            try:
                yield service
            finally:
                win32service.CloseServiceHandle(service)


@contextmanager
def _told(doing: str) -> Iterator[None]:
    """What Windows refuses, in words."""
    import pywintypes

    try:
        yield
    except pywintypes.error as error:
        raise windows_errors.refusal(doing, error.winerror, OPTION) from error


@contextmanager
def _manager_of_services(doing: str, *, reads: bool = False) -> Iterator[Any]:
    import win32service

    most, least = win32service.SC_MANAGER_ALL_ACCESS, win32service.SC_MANAGER_CONNECT
    with _told(doing):
        manager: Any = win32service.OpenSCManager(None, None, least if reads else most)
    try:
        yield manager
    finally:
        win32service.CloseServiceHandle(manager)


def _line(python: str) -> str:
    """What Windows starts, in quotes: a path with a space would otherwise be taken for several."""
    rest = subprocess.list2cmdline(["-I", "-m", "svcq", "--system", "service"])
    return f'"{python}" {rest}'


def _registered_line() -> str | None:
    """As the registry has it, where every user may look."""
    winreg = registry()

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, SETTINGS) as key:
            return str(winreg.QueryValueEx(key, "ImagePath")[0])
    except OSError:
        return None


def _configure(service: Any) -> None:
    """What a service has beside its program; each that this Windows knows."""
    import pywintypes
    import win32service

    change: Any = win32service.ChangeServiceConfig2
    change(service, win32service.SERVICE_CONFIG_DESCRIPTION, _ABOUT)
    for kind, value in settings():
        with suppress(pywintypes.error, NotImplementedError):
            change(service, kind, value)


def settings() -> list[tuple[int, Any]]:
    import win32service

    return [
        (win32service.SERVICE_CONFIG_DELAYED_AUTO_START_INFO, True),
        (win32service.SERVICE_CONFIG_FAILURE_ACTIONS, {
            "ResetPeriod": _DAY, "RebootMsg": None, "Command": None, "Actions": _RESTARTS,
        }),
        # A crash is one, whatever it is reported as.
        (win32service.SERVICE_CONFIG_FAILURE_ACTIONS_FLAG, True),
        (win32service.SERVICE_CONFIG_SERVICE_SID_INFO, _SID_UNRESTRICTED),
        (win32service.SERVICE_CONFIG_PRESHUTDOWN_INFO, _PRESHUTDOWN_MS),
    ]  # fmt: skip


def _write_environment(env: Mapping[str, str]) -> None:
    winreg = registry()

    with winreg.OpenKey(
        winreg.HKEY_LOCAL_MACHINE,
        SETTINGS,
        0,
        winreg.KEY_SET_VALUE,
    ) as key:
        lines = [f"{name}={value}" for name, value in env.items()]
        winreg.SetValueEx(key, "Environment", 0, winreg.REG_MULTI_SZ, lines)


def _register_events() -> None:
    winreg = registry()

    with winreg.CreateKey(winreg.HKEY_LOCAL_MACHINE, _EVENTS) as key:
        winreg.SetValueEx(key, "EventMessageFile", 0, winreg.REG_EXPAND_SZ, _MESSAGES)
        winreg.SetValueEx(key, "TypesSupported", 0, winreg.REG_DWORD, 7)


def _grant_log_on(name: str) -> None:
    """The right to log on as a service, which no account has by itself."""
    import pywintypes
    import win32security as security

    try:
        sid = security.LookupAccountName(None, name.removeprefix(".\\"))[0]
        opened: Any = security.LsaOpenPolicy
        policy = opened(None, security.POLICY_ALL_ACCESS)
        security.LsaAddAccountRights(policy, sid, ("SeServiceLogonRight",))
    except pywintypes.error as error:
        raise windows_errors.refusal(
            f"let {name} log on as a service", error.winerror, OPTION
        ) from error
