"""Private files and directories, on the real file system."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs
import pytest

from svcq import host
from svcq.errors import InvalidInput, NotPermitted
from svcq.host import linux, windows


@pytest.fixture
def of_another_user(tmp_path: Path) -> Path:
    """A file that is not ours: root can give one away, everyone else finds root's everywhere."""
    if os.geteuid() != 0:
        return Path("/etc/passwd")
    file = tmp_path / "theirs"
    file.touch(mode=0o600)
    os.chown(file, 1, 1)
    return file


@pytest.fixture
def loose_umask() -> object:
    before = os.umask(0)
    yield before
    os.umask(before)


@pytest.fixture
def strict_umask() -> object:
    before = os.umask(0o777)
    yield before
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_this_system_is_picked() -> None:
    assert host.check_private is linux.check_private


def test_both_systems_offer_the_same_functions() -> None:
    for name in set(host.__all__) - {"write_private"}:
        ours, theirs = getattr(linux, name), getattr(windows, name)
        assert callable(ours) == callable(theirs)
        assert callable(ours) or type(ours) is type(theirs)


class TestPrivateDirectory:
    def test_is_made_with_its_parents_for_the_owner_alone(
        self, tmp_path: Path, loose_umask: object
    ) -> None:
        linux.private_directory(tmp_path / "a" / "b")
        assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700

    def test_is_usable_under_a_strict_umask(self, tmp_path: Path, strict_umask: object) -> None:
        linux.private_directory(tmp_path / "a" / "b")
        assert mode(tmp_path / "a" / "b") == 0o700

    def test_is_accepted_when_it_exists(self, tmp_path: Path) -> None:
        linux.private_directory(tmp_path / "home")
        linux.private_directory(tmp_path / "home")

    def test_is_refused_when_others_may_write_it(self, tmp_path: Path) -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "home").chmod(0o770)
        with pytest.raises(NotPermitted, match=r"mode 0770\).*chmod go-w"):
            linux.private_directory(tmp_path / "home")

    def test_is_judged_where_a_link_leads(self, tmp_path: Path) -> None:
        target, link = tmp_path / "target", tmp_path / "link"
        target.mkdir(mode=0o700)
        link.symlink_to(target)
        linux.private_directory(link)
        target.chmod(0o707)
        with pytest.raises(NotPermitted, match="mode 0707"):
            linux.private_directory(link)

    def test_is_refused_when_it_is_a_link_to_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "nothing")
        with pytest.raises(InvalidInput, match=r"a link to .*nothing, which is missing"):
            linux.private_directory(tmp_path / "link")

    def test_is_refused_when_it_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch(mode=0o600)
        with pytest.raises(InvalidInput, match="is not a directory"):
            linux.private_directory(tmp_path / "file")
        with pytest.raises(InvalidInput, match="cannot be made"):
            linux.private_directory(tmp_path / "file" / "home")

    def test_is_not_made_where_others_could_replace_it(self, tmp_path: Path) -> None:
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        with pytest.raises(NotPermitted, match="is not safe"):
            linux.private_directory(tmp_path / "open" / "home")
        assert not (tmp_path / "open" / "home").exists()

    def test_that_the_system_refuses_is_a_sentence(self) -> None:
        with pytest.raises((NotPermitted, InvalidInput), match=r"cannot be made .*SVCQ_HOME"):
            linux.private_directory(Path("/proc/svcq/home"))


class TestCheckPrivate:
    def test_accepts_what_others_may_only_read(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch(mode=0o600)
        (tmp_path / "file").chmod(0o644)
        linux.check_private(tmp_path / "file")

    @pytest.mark.parametrize("bits", [0o620, 0o602, 0o666])
    def test_refuses_what_others_may_write(self, tmp_path: Path, bits: int) -> None:
        file = tmp_path / "file"
        file.touch()
        file.chmod(bits)
        with pytest.raises(NotPermitted, match=rf"{file} .*mode 0{bits:o}\).*chmod go-w {file}"):
            linux.check_private(file)

    def test_refuses_what_belongs_to_another(self, of_another_user: Path) -> None:
        with pytest.raises(NotPermitted, match=r"belongs to \w+, not to .*sudo -u \w+ svcq"):
            linux.check_private(of_another_user)

    @pytest.mark.parametrize("bits", [0o770, 0o707])
    def test_refuses_what_lies_in_an_open_directory(self, tmp_path: Path, bits: int) -> None:
        file = tmp_path / "open" / "closed" / "file"
        file.parent.mkdir(parents=True)
        file.touch(mode=0o600)
        (tmp_path / "open").chmod(bits)
        with pytest.raises(NotPermitted, match=rf"{tmp_path}/open may be written by others"):
            linux.check_private(file)

    def test_accepts_what_lies_in_a_sticky_directory(self, tmp_path: Path) -> None:
        file = tmp_path / "shared" / "file"
        file.parent.mkdir()
        file.touch(mode=0o600)
        file.parent.chmod(0o1777)
        linux.check_private(file)

    def test_refuses_a_link_through_an_open_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch(mode=0o600)
        (tmp_path / "open").mkdir()
        (tmp_path / "open" / "link").symlink_to(tmp_path / "file")
        (tmp_path / "open").chmod(0o777)
        with pytest.raises(NotPermitted, match="is not safe"):
            linux.check_private(tmp_path / "open" / "link")

    def test_refuses_a_file_that_a_link_finds_in_an_open_directory(self, tmp_path: Path) -> None:
        (tmp_path / "open").mkdir()
        (tmp_path / "open" / "file").touch(mode=0o600)
        (tmp_path / "link").symlink_to(tmp_path / "open" / "file")
        (tmp_path / "open").chmod(0o777)
        with pytest.raises(NotPermitted, match="is not safe"):
            linux.check_private(tmp_path / "link")

    def test_says_that_a_file_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="does not exist"):
            linux.check_private(tmp_path / "nothing")


class TestCreatePrivate:
    def test_is_for_the_owner_alone(self, tmp_path: Path, loose_umask: object) -> None:
        os.close(linux.create_private(tmp_path / "file"))
        assert mode(tmp_path / "file") == 0o600

    def test_never_takes_what_exists(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "nothing")
        (tmp_path / "file").touch()
        for path in (tmp_path / "link", tmp_path / "file"):
            with pytest.raises(FileExistsError):
                linux.create_private(path)
        assert not (tmp_path / "nothing").exists()


class TestWritePrivate:
    def test_replaces_the_whole_file(self, tmp_path: Path, loose_umask: object) -> None:
        file = tmp_path / "file"
        file.write_text("a long text that was there before")
        file.chmod(0o644)
        host.write_private(file, "new\n")
        assert file.read_text() == "new\n"
        assert mode(file) == 0o600
        assert os.listdir(tmp_path) == ["file"]

    def test_keeps_a_link_and_writes_where_it_leads(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "file")
        host.write_private(tmp_path / "link", "new\n")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "elsewhere" / "file").read_text() == "new\n"

    def test_leaves_everything_as_it_was_when_it_fails(self, tmp_path: Path) -> None:
        directory = tmp_path / "directory"
        directory.mkdir()
        with pytest.raises(OSError, match="directory"):
            host.write_private(directory, "new\n")
        assert os.listdir(tmp_path) == ["directory"]


@pytest.mark.parametrize("named", [None, "", "/srv/data"])
def test_data_is_where_other_programs_keep_theirs(
    named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    if named is not None:
        monkeypatch.setenv("XDG_DATA_HOME", named)
    assert linux.data_directory() == platformdirs.user_data_dir()
