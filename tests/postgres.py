"""A real PostgreSQL of the tests' own: Debian's programs, a folder of its own, a socket in it."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from svcq.config import load
from svcq.store import open_store

_SETTINGS = {
    "listen_addresses": "''",
    # What is tested outlives processes; what outlives the machine is PostgreSQL's own promise.
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "150",
    "shared_buffers": "64MB",
    "log_min_messages": "fatal",
    "autovacuum": "off",
    "deadlock_timeout": "200ms",
}


ASKED = "asked"
"""A role whose members are asked for their passwords; all others are let in."""

_TABLES = (
    "queues", "lanes", "keys", "jobs", "specs", "tags", "unique_keys", "parents", "runs",
    "environments", "workers", "changes", "counts", "minutes", "schedules", "firings", "tasks",
    "requests", "services",
)  # fmt: skip
# Whoever left a transaction open would hold up the next test.
_END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
_NUMBERED = {"lanes": "id", "environments": "id", "workers": "id", "changes": "seq"}
_EMPTY = ";".join(
    [
        *(f"DELETE FROM svcq.{table}" for table in _TABLES),
        *(
            f"ALTER TABLE svcq.{table} ALTER {column} RESTART"
            for table, column in _NUMBERED.items()
        ),
        "ALTER SEQUENCE svcq.job_ids RESTART",
        "DELETE FROM svcq.meta WHERE key NOT IN ('version', 'oldest_program', 'store_id')",
    ]
)


def programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    assert found, "The tests need PostgreSQL: ./dev test installs it when run as root."
    return found[-1]


class Server:
    """Runs as a user of no rights, since PostgreSQL refuses root."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, str] | None = None,
        through: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """`through`: what starts its programs elsewhere; `variables`: of its environment."""
        self.folder = folder
        self.through = tuple(through)
        self._variables = dict(variables or {})
        self.data = folder / "data"
        self._settings = {**_SETTINGS, **(settings or {})}
        self._numbers = itertools.count(1)
        self._empty: list[str] = []
        self._spare: list[str] = []
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            shutil.chown(folder, user.pw_uid, user.pw_gid)

    def make(self) -> None:
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "svcq", "-E", "UTF8",
                  "--no-locale", "--no-sync")  # fmt: skip
        rules = self.data / "pg_hba.conf"
        rules.write_text(f"local all +{ASKED} scram-sha-256\n{rules.read_text()}")

    @contextmanager
    def standby(self) -> Iterator[Server]:
        """A second server that follows this one, for as long as the block lasts."""
        with _folder() as folder:
            follower = Server(folder, self._settings)
            follower._run("pg_basebackup", "-D", str(follower.data), "-R", "-c", "fast",
                          "-h", str(self.folder), "-U", "svcq")  # fmt: skip
            follower.start()
            try:
                yield follower
            finally:
                follower.stop("immediate")

    def start(self, **settings: str) -> None:
        said = {**self._settings, **settings, "unix_socket_directories": str(self.folder)}
        options = " ".join(f"-c {name}={value}" for name, value in said.items())
        self._run("pg_ctl", "-D", str(self.data), "-w", "-s", "-l", str(self.folder / "log"),
                  "-o", options, "start")  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash: nothing is said to anyone, and nothing is written."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "-s", "-m", mode, "stop")

    def reload(self) -> None:
        """Read its files anew."""
        self._run("pg_ctl", "-D", str(self.data), "-s", "reload")

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        # Not for what starts it: some of that runs as root.
        variables = [f"{name}={value}" for name, value in self._variables.items()]
        command = ["env", *variables, str(programs() / program), *arguments]
        if os.getuid() == 0:
            command = [
                "setpriv",
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                *command,
            ]
        command = [*self.through, *command]
        # A server keeps what it inherits, and whoever reads its output would wait for its end.
        with (self.folder / f"{program}.out").open("wb") as out:
            done = subprocess.run(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C"},
                check=False, timeout=60,
            )  # fmt: skip
        assert done.returncode == 0, (self.folder / f"{program}.out").read_text()

    def url(self, database: str = "postgres", user: str = "svcq") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def database(self) -> str:
        """The address of a database without a store; to make one takes longer than most tests."""
        if self._empty:
            return self._empty.pop()
        name = f"t{next(self._numbers)}_{os.getpid()}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The address of a database with an empty store. Emptying one is thirty times as fast as
        making one."""
        url = self._spare.pop() if self._spare else self._with_store()
        yield url
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(_END_OTHERS)
                connection.execute(_EMPTY)
        except psycopg.Error:  # a test took it apart
            self.drop(url)
        else:
            self._spare.append(url)

    def _with_store(self) -> str:
        url = self.database()
        with tempfile.TemporaryDirectory() as home:
            open_store(load(home, {"SVCQ_STORE": url})).close()
        return url

    def drop(self, url: str) -> None:
        """Let the next test have it, as new."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_END_OTHERS)
            connection.execute("DROP SCHEMA IF EXISTS svcq CASCADE")
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        self._empty.append(url)


@contextmanager
def serving(
    through: Sequence[str] = (), variables: Mapping[str, str] | None = None, **settings: str
) -> Iterator[Server]:
    """A server for as long as the block lasts."""
    with _folder() as folder:
        server = Server(folder, settings, through, variables)
        server.make()
        server.start()
        try:
            yield server
        finally:
            if (server.data / "postmaster.pid").exists():
                server.stop("immediate")


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="svcq-pg-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
