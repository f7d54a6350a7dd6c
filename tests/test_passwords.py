"""Passwords in addresses: whatever way they are written, nobody sees them."""

from __future__ import annotations

import pytest

from svcq.config import load
from svcq.environment import masked
from svcq.errors import ConfigError, InvalidInput
from svcq.passwords import has_password, hide_password, need_no_password, strip_password
from tests.clients import assert_sentence

WITH = {
    "postgresql://me:hunter2@h/db": "postgresql://me@h/db",
    "postgresql://me:hunter2%40x@h:5432/db?sslmode=require": "postgresql://me@h:5432/db?sslmode=require",
    "postgresql://h/db?user=me&password=hunter2": "postgresql://h/db?user=me",
    "postgresql://h/db?p%61ssword=hunter2": "postgresql://h/db",
    "postgresql://h/db?password=hun@ter2": "postgresql://h/db",
    "postgresql://h/db?sslpassword=hunter2&port=5": "postgresql://h/db?port=5",
    "postgresql://h/db?unheard_of=hunter2": "postgresql://h/db",
    "postgresql://me:hun@ter2@h1,h2:5/db": "postgresql://me@h1,h2:5/db",
    "postgresql://me:hun/ter2@h/db": "postgresql://me@h/db",
    "postgresql://me:hun?ter2@h/db": "postgresql://me@h/db",
    "postgresql://me:hunter2": "postgresql://me",
    "postgresql://:hunter2@h": "postgresql://@h",
}
WITHOUT = (
    "/srv/svcq.db", "svcq.db", "postgresql://h/db", "postgresql://me@h:5432/db",
    "postgresql://me@/db?host=/run/postgresql", "postgresql://[::1]:5432/db", "postgresql:///db",
    "postgresql://h1:1,h2:2/db?target_session_attrs=read-write&application_name=a@b",
)  # fmt: skip


@pytest.mark.parametrize("address", WITH)
def test_a_password_is_hidden_however_it_is_written(address: str) -> None:
    shown = hide_password(address)
    assert "hun" not in shown
    assert "ter2" not in shown
    assert "****" in shown
    assert strip_password(address) == WITH[address]
    assert has_password(address)
    with pytest.raises(InvalidInput) as caught:
        need_no_password(address)
    assert_sentence(caught.value, ".pgpass")
    assert "hun" not in str(caught.value)
    assert masked({"DATABASE": address})["DATABASE"] == "********" or "@" not in address


@pytest.mark.parametrize("address", WITHOUT)
def test_an_address_without_one_is_shown_as_it_is(address: str) -> None:
    assert hide_password(address) == strip_password(address) == address
    need_no_password(address)


@pytest.mark.parametrize("address", ["mysql://h/db?password=hunter2", "mysql://me:hunter2@h/db"])
def test_a_refused_address_is_not_repeated(tmp_path: object, address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(str(tmp_path), {"SVCQ_STORE": address})
    assert "hunter2" not in str(caught.value)
