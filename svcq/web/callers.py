"""Who asks, and what they may do."""

from __future__ import annotations

from typing import NamedTuple

from svcq.client.verbs import Role


class Caller(NamedTuple):
    """Someone who was let in. `name` is the account that owns what they add."""

    name: str | None
    role: Role
    by: str  # token, cookie, or peer

    def may(self, role: Role) -> bool:
        return self.role >= role

    def may_look_into(self, owner: str | None) -> bool:
        """Whether what belongs to `owner` has no secrets from them."""
        return self.may(Role.ADMIN) or (owner is not None and owner == self.name)

    def may_steer(self, owner: str | None) -> bool:
        return self.may(Role.USER) and self.may_look_into(owner)
