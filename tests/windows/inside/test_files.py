"""Private files, locks, the doorbell and the store between real processes of Windows."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
import win32security as security

from svcq import host
from svcq.config import load
from svcq.errors import InvalidInput
from svcq.host import bell, files, processes
from svcq.host.filesystems import check_local, place_of
from svcq.host.turn import Turn
from svcq.policy import NewJob, Plan
from svcq.store import open_store
from tests.helpers import eventually

JOB = NewJob(Plan("default"), "work")
OURS = {"S-1-5-32-544", "S-1-5-18"}  # Administrators and Windows itself, who can take any file


def run(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def allowed(path: Path) -> set[str]:
    """Who may do anything with it."""
    found = security.GetNamedSecurityInfo(
        str(path), security.SE_FILE_OBJECT, security.DACL_SECURITY_INFORMATION
    ).GetSecurityDescriptorDacl()
    entries = [found.GetAce(n) for n in range(found.GetAceCount())]
    return {security.ConvertSidToStringSid(entry[-1]) for entry in entries if entry[1] & 0x3}


def test_what_is_private_is_for_its_owner_alone(tmp_path: Path) -> None:
    from svcq.host.windows import my_sid

    folder = tmp_path / "home" / "inner"
    host.private_directory(folder)
    host.write_private(folder / "secret", "text")
    host.check_private(folder / "secret")
    assert (folder / "secret").read_text() == "text"
    for path in (folder.parent, folder, folder / "secret"):
        assert allowed(path) - OURS == {my_sid()}, path


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        host.check_private(tmp_path / "none")


def test_processes_that_make_a_store_at_once_make_one(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from contextlib import closing\n"
        "from svcq.config import load; from svcq.store import open_store\n"
        "from svcq.policy import NewJob, Plan\n"
        "JOB = NewJob(Plan('default'), 'work')\n"
        "with closing(open_store(load(Path(sys.argv[1]), {}))) as store: store.enqueue([JOB] * 5)"
    )
    started = [run(code, tmp_path / "home") for _ in range(4)]
    said = [one.communicate(timeout=120)[0] for one in started]
    assert [one.returncode for one in started] == [0] * 4, said
    with closing(open_store(load(tmp_path / "home", {}))) as store:
        assert sum(store.counts().values()) == 20


def test_what_was_told_survives_a_killed_program(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from svcq.config import load; from svcq.store import open_store\n"
        "from svcq.policy import NewJob, Plan\n"
        "JOB = NewJob(Plan('default'), 'work')\n"
        "open_store(load(Path(sys.argv[1]), {})).enqueue([JOB] * 7)\n"
        "import _winapi; _winapi.TerminateProcess(_winapi.GetCurrentProcess(), 9)"
    )
    one = run(code, tmp_path / "home")
    assert one.wait(60) == 9
    one.communicate()
    with closing(open_store(load(tmp_path / "home", {}))) as store:
        assert sum(store.counts().values()) == 7
        store.enqueue([JOB])


def test_a_lock_is_held_by_whoever_has_inherited_it(tmp_path: Path) -> None:
    import os

    path = tmp_path / "lock"
    lock = processes.hold_lock(path)
    assert lock is not None
    assert processes.hold_lock(path) is None
    os.write(lock, b"kept")
    assert path.read_text() == "kept"  # others may read it
    handle = __import__("msvcrt").get_osfhandle(lock)
    os.set_handle_inheritable(handle, True)
    startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]})
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], startupinfo=startup,
        close_fds=True,
    )  # fmt: skip
    os.close(lock)
    assert processes.lock_is_held(path)
    child.kill()
    child.wait()
    eventually(lambda: not processes.lock_is_held(path))
    path.unlink()
    assert not processes.lock_is_held(path)


def test_a_bell_is_rung_by_another_process(tmp_path: Path) -> None:
    one = bell.Bell(tmp_path, "1")
    assert bell.listening(tmp_path) == ["1"]
    began = time.monotonic()
    ringing = run("import sys; from svcq.host.bell import ring; ring(sys.argv[1])", tmp_path)
    assert one.wait(60)
    assert time.monotonic() - began < 60
    ringing.communicate()
    assert not one.wait(0)
    one.close()
    assert bell.listening(tmp_path) == []


def test_the_bell_of_a_dead_worker_is_taken_away(tmp_path: Path) -> None:
    dead = run(
        "import os, sys; from pathlib import Path; from svcq.host.bell import Bell\n"
        "Bell(Path(sys.argv[1]), '7'); os._exit(0)", tmp_path,
    )  # fmt: skip
    dead.communicate(timeout=60)
    assert (tmp_path / "7.bell").exists()
    bell.ring(tmp_path)
    assert not (tmp_path / "7.bell").exists()


def test_someone_who_waits_is_seen(tmp_path: Path) -> None:
    one, other = Turn(str(tmp_path / "turn")), Turn(str(tmp_path / "turn"))
    assert not other.someone_waits()
    with one.waiting():
        assert other.someone_waits()
    assert not other.someone_waits()
    one.close()
    other.close()


def test_a_log_is_appended_to_by_all_who_have_it(tmp_path: Path) -> None:
    import os

    log = files.open_log(tmp_path / "logs" / "0" / "1.1.log")
    child = subprocess.Popen(
        [sys.executable, "-c", ("import os; os.write(1, b'child\\n'); os.lseek(1, 0, 0);"
         " os.write(1, b'again\\n')")], stdout=log,
    )  # fmt: skip
    child.wait()
    os.write(log, b"ours\n")
    assert files.read_at(log, 100, 0) == b"child\nagain\nours\n"
    os.close(log)


def test_output_in_the_code_page_of_the_console_is_read() -> None:
    assert files.text_of("gr\u00fc\u00dfe".encode()) == "gr\u00fc\u00dfe"
    old = "Zugriff verweigert: Men\u00fc, gr\u00f6\u00dfer".encode("oem", "replace")
    assert "verweigert" in files.text_of(old)
    assert "\ufffd" not in files.text_of(old)


def test_a_share_is_no_place_for_a_home(tmp_path: Path) -> None:
    from svcq.errors import Refused

    assert place_of(tmp_path).kind == "NTFS"
    assert not place_of(Path(rf"\\?\{tmp_path}")).is_network
    with pytest.raises(Refused, match="on another machine"):
        check_local(Path(r"\\server\share\home"))


def test_a_process_is_known_by_when_it_was_born() -> None:
    import os

    born = processes.process_born(os.getpid())
    assert born == processes.process_born(os.getpid())
    child = run("import time; time.sleep(600)")
    assert processes.process_born(child.pid) not in (None, born)
    age = processes.process_age(child.pid)
    assert age is not None
    assert age < 60
    child.kill()
    child.communicate()
    assert processes.process_born(child.pid) is None


@pytest.mark.parametrize("name", ["with space", "quote's", "tr\u00e9s-\u4e2d", "percent%PATH%"])
def test_a_home_may_be_named_as_it_likes(tmp_path: Path, name: str) -> None:
    with closing(open_store(load(tmp_path / name, {}))) as store:
        assert len(store.enqueue([JOB])) == 1


def test_a_name_that_is_too_long_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="choose a folder of at most"):
        open_store(load(tmp_path / ("x" * 200), {}))
