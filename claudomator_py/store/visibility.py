"""Which rows exist for a principal: a condition in every query that is made for one, and no second look at its result.

What an organisation's principal does not see is not counted, not listed, not found by any name, and refused in the
words for what does not exist.
"""

from sqlalchemy import ColumnElement, and_, exists, false, not_, or_, select, true

from claudomator_py.domain.card import REMOTE_AGENT, Visibility
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.store.stored_json import sound
from claudomator_py.store.tables import CHANNEL, DECISION, EVENT, RUN, SCHEDULE, SPECIALIST, SPECIALIST_GRANT, TASK


def tasks_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``TASK`` what exists for that principal."""
    if by.role is Role.RUN:
        own = RUN.alias("own_run")
        return TASK.c.id == select(own.c.task_id).where(own.c.id == by.run_id).scalar_subquery()
    return true() if by.organisation is None else TASK.c.organisation == by.organisation


def alike(by: Principal) -> Principal:
    """Return one for all who see the same tasks and runs: for what is kept by who asks."""
    return Principal("", by.role if by.role is Role.RUN else OPERATOR.role, by.organisation, by.run_id)


def runs_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``RUN`` what exists for that principal. A run sees itself alone."""
    if by.role is Role.RUN:
        return RUN.c.id == by.run_id
    return true() if by.organisation is None else exists().where(TASK.c.id == RUN.c.task_id, tasks_seen(by))


def events_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``EVENT`` those of its tasks, and what it has caused itself that concerns no task, such as a
    schedule."""
    if by.role is not Role.RUN and by.organisation is None:
        return true()
    own = EVENT.c.task_id.is_(None) & (EVENT.c.by == by.id)
    return or_(exists().where(TASK.c.id == EVENT.c.task_id, tasks_seen(by)), own)


def schedules_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``SCHEDULE`` what exists for that principal. A run sees none."""
    if by.role is Role.RUN:
        return false()
    return true() if by.organisation is None else SCHEDULE.c.organisation == by.organisation


def channels_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``CHANNEL`` what exists for that principal. A run sees none."""
    if by.role is Role.RUN:
        return false()
    return true() if by.organisation is None else CHANNEL.c.organisation == by.organisation


def decisions_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``DECISION`` what exists for that principal. A run sees none."""
    if by.role is Role.RUN:
        return false()
    return true() if by.organisation is None else DECISION.c.organisation == by.organisation


def cards_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``SPECIALIST`` those that were not removed, and of these the public ones, its own, and the shared ones
    of its organisation or with a grant to either. Whoever sees all work sees all cards, too."""
    return and_(SPECIALIST.c.removed_ms.is_(None), _open_to(by))


def cards_given(by: Principal) -> ColumnElement[bool]:
    """Select of ``SPECIALIST`` those that may be given work of that principal's.

    That is less than it sees: what a card says of itself decides who sees it, and whoever is given work reads it whole,
    answers for it, and may have a prompt and permissions of its own. So a card does the work of its creator and of its
    own side, the daemon's or an organisation's, and that of others once an administrator of the daemon has admitted it
    as it is. Who sees all does not for that reason give work to all: a private card is its creator's. One that is
    reached over HTTP has to be the operator's, as a secret of the daemon's may be sent there.
    """
    own = SPECIALIST.c.creator.in_(by.names)
    same_side = SPECIALIST.c.organisation.is_not_distinct_from(by.organisation)
    admitted = SPECIALIST.c.admitted_hash == SPECIALIST.c.content_hash
    url = sound(SPECIALIST.c.card)["url"].as_string()
    reached = or_(SPECIALIST.c.creator == OPERATOR.id, url.is_(None), url.startswith("ws-agent:"))
    may = or_(own, and_(_visible_to(by), or_(same_side, admitted)))
    return and_(SPECIALIST.c.removed_ms.is_(None), reached, may)


def cards_hidden(by: Principal) -> ColumnElement[bool]:
    """Select of ``SPECIALIST`` those that do not exist for that principal, nor did before they were removed."""
    return not_(_open_to(by))


def agent_hidden(name: str, by: Principal) -> ColumnElement[bool]:
    """Return whether the agent of that name is a remote specialist whose card is hidden."""
    remote = REMOTE_AGENT.fullmatch(name)
    return false() if remote is None else exists().where(SPECIALIST.c.id == remote[2], cards_hidden(by))


def _open_to(by: Principal) -> ColumnElement[bool]:
    return true() if by.sees_all else _visible_to(by)


def _visible_to(by: Principal) -> ColumnElement[bool]:
    """What cards themselves say of who sees them."""
    grantees = [by.id] if by.organisation is None else [by.id, organisation_grantee(by.organisation)]
    granted = exists().where(
        SPECIALIST_GRANT.c.specialist_id == SPECIALIST.c.id, SPECIALIST_GRANT.c.grantee.in_(grantees)
    )
    shared = and_(
        SPECIALIST.c.visibility == Visibility.SHARED.value,
        or_(SPECIALIST.c.organisation.is_not_distinct_from(by.organisation), granted),
    )
    return or_(SPECIALIST.c.visibility == Visibility.PUBLIC.value, SPECIALIST.c.creator.in_(by.names), shared)


def organisation_grantee(organisation: str) -> str:
    """Return how a grant names all of an organisation."""
    return f"org:{organisation}"
