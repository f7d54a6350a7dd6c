"""A backup beside the store it was made of."""

from __future__ import annotations

from pathlib import Path

from svcq.client import Client
from svcq.config import load
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home


def test_a_backup_that_is_used_leaves_the_jobs_of_the_original_alone(
    home: Home, tmp_path: Path
) -> None:
    """Both hold the same job; to whoever opened the copy, its processes would look left over."""
    worker = home.worker()
    line = 'echo x >> "$SVCQ_HOME/began"; until [ -e "$SVCQ_HOME/go" ]; do sleep 0.05; done'
    job = home.add(line)
    eventually((home.path / "began").exists, PATIENCE)
    home.client.backup(tmp_path / "copy.db")
    other = Home(tmp_path / "other")
    try:
        other.client.close()
        (tmp_path / "copy.db").replace(other.path / "svcq.db")
        other.client = Client(config=load(other.path, {}))
        other.worker()
        eventually((other.path / "began").exists, PATIENCE)
        (other.path / "go").touch()
        assert (other.ended(job).state, other.client.get(job).run) == ("completed", 2)
        assert home.client.get(job).state == "processing"
        (home.path / "go").touch()
        ended = home.ended(job)
        assert (ended.state, ended.run, ended.losses, ended.interruptions) == ("completed", 1, 0, 0)
        assert worker.process.poll() is None
    finally:
        other.close()
