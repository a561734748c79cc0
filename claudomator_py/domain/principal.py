"""The principal behind a request, what its role permits, and which organisation's work it sees."""

from enum import StrEnum
from typing import Final, Protocol

from claudomator_py.domain.units import DAY_MS
from claudomator_py.values import dataclass


class Role(StrEnum):
    """What a principal may do. Each of read, operate and admin includes the ones before it.

    read: look. operate: also submit, change and answer tasks and schedules. admin: everything else, such as tokens,
    holds and draining. run: a run of a task; it may only do what is declared for ``run``, within its own task.
    """

    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"
    RUN = "run"

    def permits(self, needed: "Role") -> bool:
        """Return whether this role may do what requires the other one."""
        if Role.RUN in (self, needed):
            return self is needed
        return _ORDER.index(self) >= _ORDER.index(needed)


_ORDER = (Role.READ, Role.OPERATE, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a request. id: its name in records, such as the name of its token. organisation: the only one whose
    work it sees; None for all. run_id: for role ``run``, the run that it acts for."""

    id: str
    role: Role
    organisation: str | None = None
    run_id: str | None = None

    @property
    def sees_all(self) -> bool:
        """True if it sees everybody's work."""
        return self.organisation is None and self.role is not Role.RUN

    @property
    def names(self) -> tuple[str, ...]:
        """The ids under which it creates things: the inbox is a folder of the operator's."""
        both = (OPERATOR.id, INBOX.id)
        return both if self.id in both and self.organisation is None else (self.id,)

    def sees(self, organisation: str | None) -> bool:
        """Return whether it sees all work of that organisation; None is the daemon's own work."""
        return self.sees_all or (self.organisation == organisation and self.role is not Role.RUN)


OPERATOR: Final = Principal("operator", Role.ADMIN)
"""The user who owns the daemon: whoever has the token in the state folder."""

INBOX: Final = Principal("inbox", Role.OPERATE)
"""Anybody who can write into the inbox."""


class Created(Protocol):
    """What somebody has created: a row of a task or a channel."""

    creator: str
    organisation: str | None


def creator_of(thing: Created) -> Principal:
    """Return the principal in whose name it acts; it determines which specialists may be given its work."""
    return Principal(thing.creator, Role.OPERATE, thing.organisation)


OWN: Final = ""
"""The tenant of the operator's own work."""
_OF_ORGANISATION, _OF_CREATOR = "org:", "by:"


def tenant_of(creator: str, organisation: str | None) -> str:
    """Return the tenant with which that creator's work shares resources: an organisation, as ``org:NAME``; a creator
    without one, as ``by:ID``; or the operator, see ``OWN``.

    The database computes the same for each task; see ``store.tables.tasks.TENANT``.
    """
    if organisation is not None:
        return f"{_OF_ORGANISATION}{organisation}"
    return OWN if creator in (OPERATOR.id, INBOX.id) else f"{_OF_CREATOR}{creator}"


def tenant_named(tenant: str) -> dict[str, str]:
    """Return how to name a tenant other than the operator: as an ``organisation`` or a ``creator``."""
    organisation = tenant.removeprefix(_OF_ORGANISATION)
    return {"creator": tenant.removeprefix(_OF_CREATOR)} if organisation == tenant else {"organisation": organisation}


MAX_KEY_LENGTH: Final = 255
KEPT_MS: Final = DAY_MS
"""How long a response is kept for repeated requests, in milliseconds."""
MAX_KEPT: Final = 10_000
"""Maximum number of responses kept; the oldest are dropped first."""


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The client's name for a request. fingerprint: digest of the request, which reveals a different request under the
    same key."""

    key: str
    fingerprint: str
