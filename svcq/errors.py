"""What can go wrong, as sentences for the person who reads them.

    SvcqError                    exit code
    ├── Refused                  1   the answer is no, for a stated reason
    │   ├── UniqueTaken              another job holds the unique key
    │   ├── NameTaken                another unfinished job has the name
    │   ├── WrongState               the job is in a state the verb cannot leave
    │   └── NotHeld                  a report about a run that is no longer the reporter's
    ├── InvalidInput             2   a value that cannot be used as given
    │   ├── ConfigError              the configuration file or a setting in it
    │   ├── InvalidArguments         arguments that are not JSON, too large, or do not fit the task
    │   └── DependencyCycle          jobs that would wait for each other
    ├── NotFound                 3   no such job, queue or worker
    ├── StoreError               4   the store cannot be used now
    │   ├── StoreAway                does not answer now, and may again
    │   ├── StoreBusy                locked by another program for too long
    │   ├── StoreFull                no space left
    │   ├── StoreReadOnly            may not be written
    │   ├── StoreDamaged             truncated or corrupt
    │   ├── NotAStore                a file, but not one of ours
    │   ├── PasswordMissing          the database wants one
    │   └── StoreVersion             made for an older or a newer program
    ├── Unreachable              4   the service manager does not answer
    ├── NotPermitted             5   someone else's, or open to others
    └── WaitTimeout              124 a wait that ran out

Every message says what happened, to which value, and what to do now.
"""

from __future__ import annotations


def shown(value: object) -> str:
    """A value as a sentence names it: as Python writes it, but never a page of it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text):,} characters)"


class SvcqError(Exception):
    """The base of every error svcq raises on purpose."""

    exit_code = 1


class Refused(SvcqError):
    exit_code = 1


class UniqueTaken(Refused):
    """`job` is the id of the job that holds the key."""

    def __init__(self, message: str, job: int) -> None:
        super().__init__(message)
        self.job = job


class NameTaken(UniqueTaken):
    pass


class WrongState(Refused):
    pass


class NotHeld(Refused):
    pass


class InvalidInput(SvcqError):
    exit_code = 2


class ConfigError(InvalidInput):
    pass


class InvalidArguments(InvalidInput):
    pass


class DependencyCycle(InvalidInput):
    pass


class NotFound(SvcqError):
    exit_code = 3


class StoreError(SvcqError):
    exit_code = 4


class StoreAway(StoreError):
    pass


class StoreBusy(StoreError):
    pass


class StoreFull(StoreError):
    pass


class StoreReadOnly(StoreError):
    pass


class StoreDamaged(StoreError):
    pass


class NotAStore(StoreError):
    pass


class PasswordMissing(StoreError):
    pass


class StoreVersion(StoreError):
    pass


class Unreachable(SvcqError):
    exit_code = 4


class NotPermitted(SvcqError):
    exit_code = 5


class WaitTimeout(SvcqError):
    exit_code = 124
