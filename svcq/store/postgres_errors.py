"""PostgreSQL's errors as sentences of ours."""

from __future__ import annotations

import psycopg

from svcq import errors
from svcq.store.engine import Conflict

# What an attempt to connect is refused with has no code: the server's own words must do.
_NO_ROOM = "it has no connections left: raise max_connections there, or run fewer workers"
_REFUSALS = (
    ("password authentication failed", "its password is wrong: correct the store's address"),
    ("no pg_hba.conf entry", "it lets nobody in from here: add a line to its pg_hba.conf"),
    ("authentication failed", "it does not let that user in: correct the store's address"),
    ("is starting up", "it is starting: wait for it"),
    ("is shutting down", "it is going down: start it again"),
    ("too many clients", _NO_ROOM),
    ("remaining connection slots", _NO_ROOM),
)


# Of these, what passes without anyone's doing.
_PASSING = ("is starting up", "is shutting down", "too many clients", "remaining connection slots")


def refused(error: psycopg.Error, where: str) -> errors.SvcqError:
    """Why no connection could be made."""
    said = _said(error)
    if "database" in said and "does not exist" in said:
        return errors.StoreError(
            f"There is no such database as in {where}: make it (createdb), "
            "or correct the store's address."
        )
    if "role" in said and "does not exist" in said:
        return errors.StoreError(
            f"There is no such user as in {where}: make it (createuser), "
            "or correct the store's address."
        )
    if "no password supplied" in said:
        return errors.PasswordMissing(
            f"The store {where} wants a password: put it in ~/.pgpass, or set PGPASSWORD."
        )
    for words, remedy in _REFUSALS:
        if words in said:
            kind = errors.StoreAway if words in _PASSING else errors.StoreError
            return kind(f"The store {where} was not opened, since {remedy}.")
    return errors.StoreAway(
        f"The store {where} cannot be reached ({said}): check that PostgreSQL runs there, and the "
        "store's address."
    )


def explain(error: psycopg.Error, where: str, *, committing: bool = False) -> errors.SvcqError:
    """What went wrong in a transaction."""
    state = error.sqlstate or ""
    said = _said(error)
    if state in _BY_CODE:
        kind, sentence = _BY_CODE[state]
        return kind(sentence.format(where=where, said=said))
    if committing:
        return errors.StoreAway(
            f"The connection to the store {where} was lost while something was written, so that "
            "nobody can say whether it was: look before you do it again."
        )
    if not state or state.startswith(("08", "57")):
        return errors.StoreAway(
            f"The store {where} does not answer ({said}): check that PostgreSQL runs there; "
            "what was not told as done was not done."
        )
    return errors.StoreError(
        f"The store {where} could not be used ({said}): check the server's log and try again."
    )


_FOREIGN = (
    errors.NotAStore,
    (
        "The schema svcq in {where} is not that of a store ({said}): use another database, "
        "or restore it."
    ),
)
_IN_THE_WAY = (
    Conflict,
    "The store {where} was asked for two things that wait for each other: try again.",
)
_DAMAGED = (
    errors.StoreDamaged,
    "The store {where} is damaged ({said}): stop svcq and restore it from a backup.",
)
_NO_TEXT = (
    errors.InvalidInput,
    "The store {where} cannot hold such text ({said}): leave out NUL characters.",
)
_BY_CODE: dict[str, tuple[type[errors.SvcqError], str]] = {
    "40P01": _IN_THE_WAY,
    "40001": _IN_THE_WAY,
    "55P03": (
        errors.StoreBusy,
        (
            "The store {where} was locked by another transaction for too long: end what holds it "
            "(pg_stat_activity names it), or raise busy_wait."
        ),
    ),
    "42501": (
        errors.NotPermitted,
        (
            "The user of the store {where} may not do that ({said}): use a role that may, or grant "
            "it the right."
        ),
    ),
    "25006": (
        errors.StoreReadOnly,
        (
            "The store {where} may not be written, as when it is a standby or in recovery: use the "
            "address of the primary."
        ),
    ),
    "53100": (
        errors.StoreFull,
        "The disk under the store {where} is full; nothing was written: free some space.",
    ),
    "42P01": _FOREIGN,
    "3F000": _FOREIGN,
    "42883": _FOREIGN,
    "42703": _FOREIGN,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
    "22021": _NO_TEXT,
    "22P05": _NO_TEXT,
}


def _said(error: psycopg.Error) -> str:
    """The server's words, in one line and without the places they are about."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    words = lines[0] if lines else type(error).__name__
    for line in lines:
        if "FATAL:" in line:
            words = line.partition("FATAL:")[2].strip()
            break
    return words.rstrip(".")
