"""svcq as a service of Windows: through the real service manager, and as a task of the user."""

from __future__ import annotations

import subprocess
import sys
import winreg
from collections.abc import Iterator
from pathlib import Path

import pytest
import win32service
import win32serviceutil

from svcq.host import processes, windows_system, windows_tasks
from svcq.host.windows_account import SERVICE, home, service_sid
from svcq.host.windows_user import UserManager
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.windows.inside.homes import LOST_BY_WINE, call


def svcq(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return call(words, **env)


def well(*words: str, **env: str) -> str:
    ran = svcq(*words, **env)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def remove_what_is_left() -> None:
    """By a run that was cut off."""
    if windows_system.SystemManager().is_installed():
        svcq("uninstall", "--system", "--purge", "--yes")


# Of the machine


def test_a_service_of_another_program_is_left_alone() -> None:
    remove_what_is_left()
    manager = win32service.OpenSCManager(None, None, win32service.SC_MANAGER_ALL_ACCESS)
    other = win32service.CreateService(
        manager, SERVICE, SERVICE, win32service.SERVICE_ALL_ACCESS,
        win32service.SERVICE_WIN32_OWN_PROCESS, win32service.SERVICE_DEMAND_START,
        win32service.SERVICE_ERROR_NORMAL, r"C:\other.exe", None, False, None, None, None,
    )  # fmt: skip
    try:
        ran = svcq("install", "--system")
        assert ran.returncode == 1
        assert "svcq has not made" in ran.stdout
    finally:
        win32service.DeleteService(other)
        win32service.CloseServiceHandle(other)
        win32service.CloseServiceHandle(manager)


@pytest.fixture(scope="module")
def installed() -> Iterator[str]:
    remove_what_is_left()
    try:
        yield well("install", "--system")
    finally:
        well("uninstall", "--system", "--purge", "--yes")
        assert not home().exists()
        assert svcq("--system", "list").returncode != 0


def test_it_is_installed_and_runs(installed: str) -> None:
    assert "Installed the service svcq" in installed
    state = win32serviceutil.QueryServiceStatus(SERVICE)[1]
    assert state == win32service.SERVICE_RUNNING
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, windows_system.SETTINGS) as key:
        line = winreg.QueryValueEx(key, "ImagePath")[0]
        account = winreg.QueryValueEx(key, "ObjectName")[0]
    assert line == f'"{sys.executable}" -I -m svcq --system service'
    assert account.lower() == r"nt service\svcq"


def test_its_workers_run_jobs(installed: str) -> None:
    number = well("--system", "add", "--", "cmd", "/c", "echo from the service").split()[0]
    well("--system", "wait", number)
    assert "from the service" in well("--system", "log", number)


def test_doctor_finds_it_well(installed: str) -> None:
    said = svcq("--system", "doctor").stdout
    assert "it runs, with pid" in said, said


def test_a_job_outlives_a_stop_and_a_crash_of_the_service(installed: str, tmp_path: Path) -> None:
    done = tmp_path / "done"
    code = f"import os, time\nwhile not os.path.exists({str(done)!r}): time.sleep(0.05)"
    number = well("--system", "add", "--", sys.executable, "-S", "-c", code).split()[0]
    eventually(lambda: "processing" in well("--system", "show", number), PATIENCE)
    assert "1 job that runs goes on to its end" in well("stop", "--system")
    assert win32serviceutil.QueryServiceStatus(SERVICE)[1] == win32service.SERVICE_STOPPED
    well("start", "--system")
    pid = windows_system.SystemManager().standing().pid
    assert pid
    seen = processes.look_at(pid)
    assert seen
    processes.signal_tree([seen], processes.KILL)
    eventually(lambda: processes.look_at(pid) is None, PATIENCE)
    assert "processing" in well("--system", "show", number)
    well("start", "--system")
    done.touch()
    well("--system", "wait", number)


def test_what_is_asked_of_windows_for_it() -> None:
    said = dict(windows_system.settings())
    assert said[win32service.SERVICE_CONFIG_DELAYED_AUTO_START_INFO] is True
    assert said[win32service.SERVICE_CONFIG_PRESHUTDOWN_INFO] >= 60_000
    actions = said[win32service.SERVICE_CONFIG_FAILURE_ACTIONS]["Actions"]
    assert [kind for kind, _ in actions] == [win32service.SC_ACTION_RESTART] * 3


def test_the_sid_of_the_service_is_that_of_its_name() -> None:
    # As `sc showsid svcq` computes it, which needs no such service.
    assert service_sid().startswith("S-1-5-80-")
    assert len(service_sid().split("-")) == 9


def test_by_hand_it_says_who_starts_it() -> None:
    ran = svcq("--system", "service")
    assert ran.returncode != 0
    assert "Traceback" not in ran.stdout


# Of a user


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    env = {"SVCQ_HOME": str(tmp_path / "home"), "LOCALAPPDATA": str(tmp_path / "local")}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    yield env
    svcq("uninstall", "--purge", "--yes", **env)


def test_a_task_of_the_user_is_made_runs_and_goes(own: dict[str, str]) -> None:
    said = well("install")
    assert "starts when you log on" in said, said
    manager = UserManager()
    text = windows_tasks.read(manager.task)
    assert text is not None
    assert windows_tasks.text_of(text, "Settings/ExecutionTimeLimit") == "PT0S"
    assert set(windows_tasks.missing(manager._text(sys.executable), text)) <= LOST_BY_WINE
    number = well("add", "--", "cmd", "/c", "echo mine").split()[0]
    well("wait", number)
    before = started(manager)
    assert "runs anew" in well("restart")
    assert started(manager) != before
    well("stop")
    assert not manager.standing().running
    well("uninstall", "--yes")
    assert windows_tasks.read(manager.task) is None
    assert not manager.is_installed()


def test_a_task_that_someone_has_changed_is_noticed(own: dict[str, str]) -> None:
    well("install", "--no-start")
    manager = UserManager()
    text = windows_tasks.read(manager.task)
    assert text is not None
    before, after = (f"<StartWhenAvailable>{word}" for word in ("true", "false"))
    windows_tasks.create(manager.task, text.replace(before, after))
    changed = windows_tasks.missing(manager._text(sys.executable), _kept(manager))
    assert set(changed) - LOST_BY_WINE == {"StartWhenAvailable"}
    assert "StartWhenAvailable" in next(manager.troubles(sys.executable)).says
    windows_tasks.delete(manager.task)
    assert "gone" in next(manager.troubles(sys.executable)).says


def _kept(manager: UserManager) -> str:
    text = windows_tasks.read(manager.task)
    assert text is not None
    return text


def started(manager: UserManager) -> str:
    """When its process was: the pid alone may be used again."""
    pid = manager.standing().pid
    assert pid is not None
    born = processes.process_born(pid)
    assert born is not None
    return born
