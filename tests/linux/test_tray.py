"""The tray and the service of a user's own systemd: it starts with the session, and steers it."""

from __future__ import annotations

import sys

from tests.helpers import eventually
from tests.linux.manager import Manager
from tests.linux.namespaces import PATIENCE


def test_install_lets_it_start_with_the_session_and_uninstall_no_more(installed: Manager) -> None:
    file = installed.home / ".config" / "autostart" / "svcq-tray.desktop"
    text = file.read_text()
    assert f'"SVCQ_HOME={installed.svcq_home}"' in text
    assert '"svcq_tray"' in text
    installed.svcq("uninstall")
    assert not file.exists()


def test_it_can_be_declined(manager: Manager) -> None:
    manager.svcq("install", "--no-linger", "--no-start", "--no-tray")
    assert not (manager.home / ".config" / "autostart").exists()


def clicked(manager: Manager, verb: str) -> None:
    code = f"from svcq_tray import door, service; service.Service(door.find()).{verb}()"
    ran = manager.run(sys.executable, "-c", code, check=False)
    assert ran.returncode == 0, ran.stderr


def test_its_menu_steers_the_unit(installed: Manager) -> None:
    clicked(installed, "stop")
    assert installed.systemctl("is-active", "svcq.service", check=False) == "inactive"
    clicked(installed, "start")
    eventually(lambda: installed.systemctl("is-active", "svcq.service") == "active", PATIENCE)
    before = installed.service_pid()
    clicked(installed, "restart")
    eventually(lambda: installed.service_pid() not in (0, before), PATIENCE)
    assert not (installed.svcq_home / "logs" / "up.log").exists()
