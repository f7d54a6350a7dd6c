"""What is past its retention goes, with its output; nothing else does."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from svcq.client import Client
from svcq.config import load
from svcq.host.files import open_log
from svcq.jobs import State
from svcq.logs import log_file
from svcq.service.janitor import tidy
from svcq.store import open_store
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, QUICK, Home

AT_ONCE = """
[retention]
completed = "0s"
"""


def output_of(client: Client, job: int, run: int = 1) -> Path:
    file = log_file(client.config.home, job, run)
    os.close(open_log(file))
    return file


def client_in(home: Path, settings: str = AT_ONCE) -> Client:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(settings)
    (home / "config.toml").chmod(0o600)
    return Client(config=load(home, {}))


def test_jobs_go_with_all_of_their_output(tmp_path: Path) -> None:
    with client_in(tmp_path / "home") as client:
        jobs = [client.command("true").id for _ in range(3)]
        runs = client.fetch(n=2)
        logs = {job: [output_of(client, job), output_of(client, job, 2)] for job in jobs}
        other = log_file(client.config.home, 1, 1).parent / "notes.log"
        other.touch()
        client.complete(runs[0])
        with closing(open_store(client.config)) as store:
            assert tidy(store, client.config) == (1, 2)
            assert tidy(store, client.config) == (0, 0)
        assert [file.exists() for job in jobs for file in logs[job]] == [False] * 2 + [True] * 4
        assert other.exists()


def test_an_empty_folder_of_output_goes_too(tmp_path: Path) -> None:
    with client_in(tmp_path / "home") as client:
        client.command("true")
        folder = output_of(client, 1).parent
        client.complete(client.fetch()[0])
        with closing(open_store(client.config)) as store:
            tidy(store, client.config)
        assert not folder.exists()


def test_output_of_another_store_in_the_same_home_stays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    client_in(home).close()
    elsewhere = load(home, {"SVCQ_STORE": str(tmp_path / "other.db")})
    with Client(config=elsewhere) as client, closing(open_store(elsewhere)) as store:
        file = output_of(client, 1)
        assert tidy(store, elsewhere) == (0, 0)
        assert file.exists()


def test_svcq_up_tidies_when_it_starts(tmp_path: Path) -> None:
    home = Home(tmp_path, QUICK)
    try:
        worker = home.worker()
        job = home.run("echo hello")
        worker.kill()
        home.configure(QUICK + AT_ONCE)
        home.start("up", "--count", 1)
        eventually(lambda: job.id not in [one.id for one in home.client.list()], PATIENCE)
        eventually(lambda: not home.log(job.id).exists(), PATIENCE)
        assert home.client.counts()[State.COMPLETED] == 0
    finally:
        home.close()
