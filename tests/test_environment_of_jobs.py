"""What a job finds in its environment: no password of the store."""

from __future__ import annotations

import pytest

from svcq.environment import capture, environment_of_jobs


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("/home/me/svcq.db", "/home/me/svcq.db"),
        ("postgresql://me:secret@db/jobs", "postgresql://me@db/jobs"),
        ("postgresql://db/jobs?user=me&password=secret", "postgresql://db/jobs?user=me"),
    ],
)
def test_the_store_is_told_without_its_password(address: str, told: str) -> None:
    environ = {"PATH": "/bin", "SVCQ_STORE": address}
    expected = {"PATH": "/bin", "SVCQ_STORE": told}
    assert environment_of_jobs(environ) == expected
    assert capture(environ).variables == expected
