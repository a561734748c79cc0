"""Slots: how many runs there may be at a time, here and on remote agents, and how many of them of one tenant."""

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from claudomator_py.domain.blocked import BlockCode, Blocked, blocked
from claudomator_py.domain.principal import OWN, tenant_named
from claudomator_py.scheduler.snapshot import Rules
from claudomator_py.values import dataclass

SHARES: Final = frozenset({BlockCode.ORGANISATION_SLOTS, BlockCode.KEPT_SLOTS})
"""What is said of a tenant that has as much as it may have, whatever becomes free."""
NEWCOMER: Final = "new"
"""A tenant of which nothing runs: no principal's, as theirs begin otherwise."""
KEPT: Final = 1
"""So many slots tenants together leave to the operator, where there are more."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Slots of one sort: those for runs that need a processor here, or those for the others."""

    total: int
    share: int | None
    """How many one tenant may have; None: any number, and nothing is kept for the operator."""
    full: BlockCode
    """What is said when all are in use."""
    setting: str
    """The key of the configuration that says how many there are."""
    share_setting: str
    """The one that says how large a share is."""

    @property
    def for_tenants(self) -> int:
        """How many all tenants together may have."""
        return max(1, self.total - KEPT)


@dataclass(frozen=True, slots=True)
class InUse:
    """Slots of a pool that are in use. tenants: those by tenant, without the operator's own."""

    live: int = 0
    tenants: Mapping[str, int] = field(default_factory=dict)

    def with_one_of(self, tenant: str) -> "InUse":
        """Return the same with one more run, of that tenant."""
        tenants = self.tenants if tenant == OWN else {**self.tenants, tenant: self.tenants.get(tenant, 0) + 1}
        return InUse(self.live + 1, tenants)

    def obstacle(self, tenant: str, pool: Pool) -> Blocked | None:
        """Return why that tenant gets no further slot of the pool; None: it gets one.

        The narrowest bound is named: the end of somebody else's run would not help a tenant that has its share.
        """
        if tenant != OWN and pool.share is not None:
            active, theirs = self.tenants.get(tenant, 0), sum(self.tenants.values())
            if active >= pool.share:
                share = {"active": active, "slots": pool.share, "setting": pool.share_setting}
                return blocked(BlockCode.ORGANISATION_SLOTS, **tenant_named(tenant), **share)
            if theirs >= pool.for_tenants:
                share = {"active": theirs, "slots": pool.for_tenants, "setting": pool.setting}
                return blocked(BlockCode.KEPT_SLOTS, **share)
        return blocked(pool.full, active=self.live, slots=pool.total) if self.live >= pool.total else None


NONE_IN_USE: Final = InUse()


def pool_of(rules: Rules, *, remote: bool) -> Pool:
    """Return the slots of runs that need a processor here or, if remote, of those on remote agents."""
    if remote and rules.remote is not None:
        names = "concurrency.remote", "concurrency.remote_per_organisation"
        return Pool(rules.remote, rules.remote_per_organisation, BlockCode.REMOTE_SLOTS, *names)
    names = "concurrency.total", "concurrency.per_organisation"
    return Pool(rules.total, rules.per_organisation, BlockCode.SLOTS, *names)
