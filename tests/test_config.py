"""The configuration file: what it may say, what is refused, and how it is changed."""

from __future__ import annotations

import operator
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from svcq import config
from svcq.config.settings import SECTIONS
from svcq.errors import ConfigError, NotPermitted
from svcq.times import DAY, HOUR, SECOND


def load(home: Path, text: str | bytes | None = None, **environ: str) -> config.Config:
    if text is not None:
        write(home, text)
    return config.load(home, environ)


def write(home: Path, text: str | bytes) -> None:
    file = config.config_file(home)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    file.chmod(0o600)


def refused(home: Path, text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        load(home, text)
    return str(caught.value)


class TestDefaults:
    def test_hold_without_a_file(self, tmp_path: Path) -> None:
        found = load(tmp_path)
        assert found.store == str(tmp_path / "svcq.db")
        assert (found.queue, found.busy_wait) == ("default", 30 * SECOND)
        assert (found.jobs.max_attempts, found.jobs.backoff) == (3, "exponential")
        assert (found.jobs.timeout, found.jobs.grace) == (None, 10 * SECOND)
        assert found.jobs.max_payload == 1024 * 1024
        assert found.queues.aging == HOUR
        assert (found.retention.completed, found.retention.changes) == (7 * DAY, DAY)

    def test_hold_for_what_a_file_leaves_out(self, tmp_path: Path) -> None:
        found = load(tmp_path, "[jobs]\nmax_attempts = 7\n")
        assert (found.jobs.max_attempts, found.jobs.jitter) == (7, 0.1)

    def test_are_allowed_by_their_own_rules(self) -> None:
        for setting in config.SETTINGS.values():
            setting.kind.read(setting.default)
            assert setting.about
            assert setting.kind.allowed

    def test_have_the_names_of_the_attributes(self) -> None:
        sections = {**SECTIONS, "": config.Config}
        apart = {"directory", "projects", "targets", *SECTIONS}
        attributes = {
            f"{section}.{name}".lstrip("."): table._field_defaults[name]
            for section, table in sections.items()
            for name in table._fields
            if name not in apart
        }
        declared = {key: one.kind.read(one.default) for key, one in config.SETTINGS.items()}
        assert declared == attributes

    def test_cannot_be_changed_in_memory(self, tmp_path: Path) -> None:
        with pytest.raises(AttributeError):
            load(tmp_path).jobs.max_attempts = 9  # type: ignore[misc]


class TestPlaces:
    def test_home_is_named_by_the_environment(self, tmp_path: Path) -> None:
        assert config.home({"SVCQ_HOME": str(tmp_path)}) == tmp_path
        assert config.load(environ={"SVCQ_HOME": str(tmp_path)}).home == tmp_path

    def test_home_is_the_systems_data_directory_otherwise(self) -> None:
        assert config.home({}).name == "svcq"

    def test_home_of_an_unknown_user_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="SVCQ_HOME '~no_such_user/x'"):
            config.home({"SVCQ_HOME": "~no_such_user/x"})

    def test_store_of_the_file_is_relative_to_the_home(self, tmp_path: Path) -> None:
        assert load(tmp_path, 'store = "data/jobs.db"').store == str(tmp_path / "data/jobs.db")

    def test_store_of_the_environment_wins(self, tmp_path: Path) -> None:
        found = load(tmp_path, 'store = "data/jobs.db"', SVCQ_STORE="/elsewhere/jobs.db")
        assert found.store == "/elsewhere/jobs.db"

    def test_store_of_the_environment_is_relative_to_where_we_are(self, tmp_path: Path) -> None:
        assert load(tmp_path, SVCQ_STORE="jobs.db").store == str(Path.cwd() / "jobs.db")

    def test_store_may_be_a_database_and_keeps_its_password(self, tmp_path: Path) -> None:
        found = load(tmp_path, 'store = "postgresql://me:secret@host/jobs"')
        assert found.store == "postgresql://me:secret@host/jobs"
        assert "secret" not in repr(found)

    def test_store_of_another_kind_is_refused_without_its_password(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"store in SVCQ_STORE is 'mysql://\.\.\.'") as caught:
            load(tmp_path, SVCQ_STORE="mysql://me:secret@host/jobs")
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "section", "name", "value"),
    [
        ("backoff_cap = 90", "jobs", "backoff_cap", 90 * SECOND),
        ('backoff_cap = "1h30m"', "jobs", "backoff_cap", 90 * 60 * SECOND),
        ("grace = 0.5", "jobs", "grace", 500),
        ('timeout = "5m"', "jobs", "timeout", 300 * SECOND),
        ('timeout = ""', "jobs", "timeout", None),
        ("backoff_base = 3", "jobs", "backoff_base", 3.0),
        ('aging = "never"', "queues", "aging", None),
        ('dead = "1d"', "retention", "dead", DAY),
    ],
)
def test_a_value_is_read(tmp_path: Path, text: str, section: str, name: str, value: object) -> None:
    found = getattr(getattr(load(tmp_path, f"[{section}]\n{text}"), section), name)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "key", "shown", "allowed"),
    [
        ("[jobs]\nmax_attempts = 0", "jobs.max_attempts", "0", "from 1 to 1000"),
        ("[jobs]\nmax_attempts = 1001", "jobs.max_attempts", "1001", "from 1 to 1000"),
        ("[jobs]\nmax_attempts = true", "jobs.max_attempts", "True", "a whole number"),
        ("[jobs]\nmax_attempts = 2.5", "jobs.max_attempts", "2.5", "a whole number"),
        ('[jobs]\nmax_attempts = "3"', "jobs.max_attempts", "'3'", "a whole number"),
        ("[jobs]\njitter = nan", "jobs.jitter", "nan", "a number from 0 to 1"),
        ("[jobs]\nbackoff_base = inf", "jobs.backoff_base", "inf", "from 0 to 86400"),
        ('[jobs]\nbackoff = "cubic"', "jobs.backoff", "'cubic'", '"linear"'),
        ("[jobs]\non_lost = [1]", "jobs.on_lost", "[1]", '"retry", "dead"'),
        ('[jobs]\ngrace = "soon"', "jobs.grace", "'soon'", "a duration"),
        ('[jobs]\ngrace = "2h"', "jobs.grace", "'2h'", 'to "1h"'),
        ("[jobs]\ngrace = -1", "jobs.grace", "-1", "a duration"),
        ("[jobs]\ntimeout = 2031-01-01", "jobs.timeout", "2031", "a duration"),
        ("[jobs]\nmax_payload = 1023", "jobs.max_payload", "1023", "from 1024 to 67108864"),
        ('[queues]\naging = "0s"', "queues.aging", "'0s'", 'or "never"'),
        ('queue = ""', "queue", "''", "a name"),
        ('queue = "a b"', "queue", "'a b'", "a name"),
        ("queue = {a = 1}", "queue", "{'a': 1}", "a name"),
        ('store = "a\\u0000b"', "store", "'a\\x00b'", "the path of a file"),
        ('store = " "', "store", "' '", "the path of a file"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(
    tmp_path: Path, text: str, key: str, shown: str, allowed: str
) -> None:
    message = refused(tmp_path, text)
    assert f"The setting {key} in {config.config_file(tmp_path)} is " in message
    assert shown in message
    assert allowed in message


@pytest.mark.parametrize(
    ("text", "named", "advice"),
    [
        ("[jobs]\nmax_attempt = 3", "'jobs.max_attempt'", "did you mean jobs.max_attempts?"),
        ("max_attempts = 3", "'max_attempts'", "did you mean jobs.max_attempts?"),
        ("[retention]\ngrace = 3", "'retention.grace'", "did you mean jobs.grace?"),
        ("quue = 'a'", "'quue'", "did you mean queue?"),
        ("[jobs]\nxyzzy = 3", "'jobs.xyzzy'", "use one of jobs.max_attempts, jobs.backoff"),
        ("[job]", "[job]", "did you mean [jobs]?"),
        ("[xyzzy]", "[xyzzy]", "there are [jobs], [queues], [retention], [workers], [clock],"),
        ("jobs = 3", "jobs = 3", "write [jobs] on a line"),
        ("[[jobs]]", "jobs = [{}]", "write [jobs] on a line"),
        ('"jobs.max_attempts" = 3', "'jobs.max_attempts'", "without"),
        ("home = '/'", "'home'", "use one of store, queue, busy_wait"),
    ],
)
def test_what_is_unknown_is_named_with_advice(
    tmp_path: Path, text: str, named: str, advice: str
) -> None:
    message = refused(tmp_path, text)
    assert str(config.config_file(tmp_path)) in message
    assert named in message
    assert advice in message


class TestFile:
    @pytest.mark.parametrize(
        ("text", "line"),
        [("queue = 'a'\n\nqueue 3\n", 3), ("\nqueue = [\n", 3), ("queue = 'a'\nqueue = 'b'\n", 2)],
    )
    def test_that_is_not_toml_is_refused_with_the_line(
        self, tmp_path: Path, text: str, line: int
    ) -> None:
        message = refused(tmp_path, text)
        assert f"{config.config_file(tmp_path)} is not valid TOML" in message
        assert f"at line {line}" in message

    def test_that_is_absurd_toml_is_refused(self, tmp_path: Path) -> None:
        assert "is not valid TOML" in refused(tmp_path, "queue = " + "9" * 5000)
        assert "is not valid TOML" in refused(tmp_path, "queue = " + "[" * 100_000)

    def test_that_is_not_utf8_is_refused_with_the_line(self, tmp_path: Path) -> None:
        assert "line 2, is not UTF-8" in refused(tmp_path, b"queue = 'a'\n# \xff\n")

    def test_may_begin_as_windows_editors_like(self, tmp_path: Path) -> None:
        assert load(tmp_path, b"\xef\xbb\xbfqueue = 'a'\r\n").queue == "a"

    def test_that_is_a_directory_is_refused(self, tmp_path: Path) -> None:
        config.config_file(tmp_path).mkdir(mode=0o700)
        with pytest.raises(ConfigError, match=r"config.toml cannot be read \(Is a directory\)"):
            load(tmp_path)

    def test_that_others_may_write_is_refused(self, tmp_path: Path) -> None:
        write(tmp_path, "queue = 'a'")
        config.config_file(tmp_path).chmod(0o660)
        with pytest.raises(NotPermitted, match=r"config.toml may be written by others"):
            load(tmp_path)

    def test_that_may_not_be_read_is_refused(self) -> None:
        # Not tmp_path: only root could get there, and no mode keeps root from reading.
        with tempfile.TemporaryDirectory() as home:
            write(Path(home), "queue = 'a'")
            config.config_file(Path(home)).chmod(0)
            assert "config.toml may not be read" in said_without_root(Path(home))


class TestChange:
    def test_makes_home_and_file(self, tmp_path: Path) -> None:
        home = tmp_path / "new" / "home"
        config.set_value(home, "jobs.max_attempts", "5")
        assert load(home).jobs.max_attempts == 5
        assert stat.S_IMODE(config.config_file(home).stat().st_mode) == 0o600

    def test_keeps_comments_and_order(self, tmp_path: Path) -> None:
        write(tmp_path, "# mine\nqueue = 'a'  # why\n\n[jobs] # here\njitter = 0.5\n")
        config.set_value(tmp_path, "jobs.jitter", "0.25")
        config.set_value(tmp_path, "queue", "b")
        text = config.config_file(tmp_path).read_text()
        assert text == '# mine\nqueue = "b"  # why\n\n[jobs] # here\njitter = 0.25\n'

    @pytest.mark.parametrize(
        "before",
        [
            "",
            "# only a comment",
            "[retention]\ndead = '1d'\n",
            "jobs = {jitter = 0.5}\n",
            "jobs.jitter = 0.5\n",
            "[jobs]\r\njitter = 0.5\r\n[queues]\r\n",
        ],
    )
    @pytest.mark.parametrize(("key", "text"), [("queue", "b"), ("jobs.max_attempts", "5")])
    def test_fits_any_file(self, tmp_path: Path, before: str, key: str, text: str) -> None:
        untouched = load(tmp_path, before)
        config.set_value(tmp_path, key, text)
        found = load(tmp_path)
        assert str(operator.attrgetter(key)(found)) == text
        assert found.retention == untouched.retention
        config.unset_value(tmp_path, key)
        assert load(tmp_path) == untouched

    @pytest.mark.parametrize("key", config.SETTINGS)
    def test_sets_every_setting_to_its_own_default(self, tmp_path: Path, key: str) -> None:
        untouched = load(tmp_path)
        config.set_value(tmp_path, key, str(config.SETTINGS[key].default))
        assert load(tmp_path) == untouched

    @pytest.mark.parametrize(
        ("key", "text", "message"),
        [
            ("jobs.max_attempts", "0", "from 1 to 1000"),
            ("jobs.max_attempts", "many", "is 'many'"),
            ("jobs.max_atempts", "3", "did you mean jobs.max_attempts"),
            ("jobs", "3", "no setting 'jobs'"),
            ("queue", "\ud800", "a name"),
        ],
    )
    def test_refuses_before_it_writes(
        self, tmp_path: Path, key: str, text: str, message: str
    ) -> None:
        with pytest.raises(ConfigError, match=message):
            config.set_value(tmp_path, key, text)
        assert os.listdir(tmp_path) == []

    def test_refuses_a_store_that_can_be_none(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "notes.txt").write_text("to do")
        (tmp_path / "fine.db").write_bytes(b"SQLite format 3\0...")
        for store, message in (
            ("folder", "is a directory: name a file in it"),
            ("new/", "is a directory: name a file in it"),
            ("notes.txt", "notes.txt is not a svcq store: name another file, or move it away"),
        ):
            with pytest.raises(ConfigError, match=message):
                config.set_value(tmp_path, "store", store)
            assert not config.config_file(tmp_path).exists()
        for store in ("fine.db", "new.db", "postgresql://box/svcq"):
            config.set_value(tmp_path, "store", store)
            assert load(tmp_path).store.endswith(store)

    def test_refuses_to_build_on_a_bad_file(self, tmp_path: Path) -> None:
        write(tmp_path, "queue = 3\n")
        with pytest.raises(ConfigError, match="The setting queue"):
            config.set_value(tmp_path, "jobs.max_attempts", "5")
        assert config.config_file(tmp_path).read_text() == "queue = 3\n"

    def test_unset_leaves_what_is_not_there(self, tmp_path: Path) -> None:
        config.unset_value(tmp_path, "jobs.jitter")
        assert os.listdir(tmp_path) == []
        with pytest.raises(ConfigError, match="no setting 'jitter'"):
            config.unset_value(tmp_path, "jitter")


class TestFollowed:
    """By a program that runs."""

    def test_hears_of_a_change_once(self, tmp_path: Path) -> None:
        followed = config.Followed(load(tmp_path))
        assert not followed.changed()
        config.set_value(tmp_path, "workers.count", "3")
        assert followed.changed()
        assert followed.config.workers.count == 3
        assert not followed.changed()

    def test_keeps_the_store_that_was_opened(self, tmp_path: Path) -> None:
        followed = config.Followed(load(tmp_path))
        before = followed.config.store
        config.set_value(tmp_path, "store", "other.db")
        assert followed.changed()
        assert (followed.config.store, followed.moved) == (before, True)
        config.unset_value(tmp_path, "store")
        assert followed.changed()
        assert (followed.config.store, followed.moved) == (before, False)


def test_reading_loads_nothing_heavy(tmp_path: Path) -> None:
    """The command line reads the configuration each time it starts."""
    write(tmp_path, "queue = 'a'\n")
    program = (
        "import sys; from pathlib import Path; from svcq import config; "
        f"config.load(Path({str(tmp_path)!r})); "
        "print(sorted({'tomlkit', 'platformdirs', 'difflib'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert answer.stdout.strip() == b"[]"


def said_without_root(home: Path) -> str:
    """What loading says to someone whom the mode of a file binds."""
    program = (
        "import os, pwd, sys; from pathlib import Path; from svcq import config, errors, host\n"
        "home = Path(sys.argv[1])\n"
        "if os.geteuid() == 0:\n"
        "    for path in [home, config.config_file(home)]: os.chown(path, 1, 1)\n"
        "    os.seteuid(1)\n"
        "try: config.load(home, {})\n"
        "except errors.NotPermitted as error: print(error)\n"
    )
    command = [sys.executable, "-c", program, str(home)]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


class TestTheTray:
    @pytest.mark.parametrize(
        ("text", "minutes"),
        [("22:00-07:00", (1320, 420)), (" 9:30 - 10:15 ", (570, 615)), ("", None)],
    )
    def test_hours(self, tmp_path: Path, text: str, minutes: tuple[int, int] | None) -> None:
        assert load(tmp_path, f'[tray]\nquiet = "{text}"\n').tray.quiet == minutes

    @pytest.mark.parametrize(
        "text", ["24:00-07:00", "22:60-07:00", "22:00", "22-7", "7:00-7:00", "x", "٢٢:00-07:00"]
    )
    def test_hours_that_cannot_be(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(ConfigError, match="quiet"):
            load(tmp_path, f'[tray]\nquiet = "{text}"\n')

    def test_rules_of_queues(self, tmp_path: Path) -> None:
        found = load(tmp_path, '[tray]\nrules = "video=all, night = never,"\n')
        assert found.tray.rules == {"video": "all", "night": "never"}

    @pytest.mark.parametrize("text", ["video", "video=loud", "=all", "a b=all"])
    def test_rules_that_cannot_be(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(ConfigError, match="rules"):
            load(tmp_path, f'[tray]\nrules = "{text}"\n')

    def test_a_change_of_what_is_told_is_nothing_to_workers(self, tmp_path: Path) -> None:
        before = load(tmp_path)
        (tmp_path / "more").mkdir(mode=0o700)
        told = '[tray]\nquiet = "22:00-07:00"\n[notify.x]\nurls = ["json://x"]\n'
        after = load(tmp_path / "more", told)._replace(
            directory=before.directory, store=before.store
        )
        assert after != before
        assert after.works_like(before)
        assert not after.works_like(before._replace(queue="other"))
