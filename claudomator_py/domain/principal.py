"""Who asks: the principal behind a request, what its role permits, and which organisation's work it sees."""

from enum import StrEnum
from typing import Final

from claudomator_py.domain.units import DAY_MS
from claudomator_py.values import dataclass


class Role(StrEnum):
    """What a principal may do. Each of read, operate and admin permits what the ones before it do.

    read: look. operate: submit, change and answer tasks and schedules as well. admin: whatever else there is, such as
    tokens, holds and draining. run: a run of a task; it may do what is said of ``run`` alone, within its own task.
    """

    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"
    RUN = "run"

    def permits(self, needed: "Role") -> bool:
        """Return whether who has this role may do what needs that one."""
        if Role.RUN in (self, needed):
            return self is needed
        return _ORDER.index(self) >= _ORDER.index(needed)


_ORDER = (Role.READ, Role.OPERATE, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. id: how it is named in records, such as the name of its token.

    organisation: it sees the work of this one only; None: of all. run_id: of role ``run``, the run that it speaks for.
    """

    id: str
    role: Role
    organisation: str | None = None
    run_id: str | None = None

    @property
    def sees_all(self) -> bool:
        """Whether everybody's work exists for it."""
        return self.organisation is None and self.role is not Role.RUN

    @property
    def names(self) -> tuple[str, ...]:
        """The ids under which it makes things: the inbox is a folder of the operator's."""
        both = (OPERATOR.id, INBOX.id)
        return both if self.id in both and self.organisation is None else (self.id,)

    def sees(self, organisation: str | None) -> bool:
        """Return whether all work of that organisation, None being the daemon's own, exists for it."""
        return self.sees_all or (self.organisation == organisation and self.role is not Role.RUN)


OPERATOR: Final = Principal("operator", Role.ADMIN)
"""The user whom the daemon belongs to: whoever has the token in the state folder."""

INBOX: Final = Principal("inbox", Role.OPERATE)
"""Whoever may write into the inbox."""


OWN: Final = ""
"""The tenant of the operator's own work."""
_OF_ORGANISATION, _OF_CREATOR = "org:", "by:"


def tenant_of(creator: str, organisation: str | None) -> str:
    """Return with whom the work of that creator shares what is shared out: an organisation, as ``org:NAME``; a creator
    without one, as ``by:ID``; or the operator, see ``OWN``.

    The database says the same of each task, see ``store.tables.tasks.TENANT``.
    """
    if organisation is not None:
        return f"{_OF_ORGANISATION}{organisation}"
    return OWN if creator in (OPERATOR.id, INBOX.id) else f"{_OF_CREATOR}{creator}"


def tenant_named(tenant: str) -> dict[str, str]:
    """Return what a tenant that is not the operator is called: an ``organisation`` or a ``creator``."""
    organisation = tenant.removeprefix(_OF_ORGANISATION)
    return {"creator": tenant.removeprefix(_OF_CREATOR)} if organisation == tenant else {"organisation": organisation}


MAX_KEY_LENGTH: Final = 255
KEPT_MS: Final = DAY_MS
"""How long an answer is kept for repetitions, in milliseconds."""
MAX_KEPT: Final = 10_000
"""How many answers are kept; the oldest go first."""


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The client's name for one request. fingerprint: a digest of what was asked, by which another request shows."""

    key: str
    fingerprint: str
