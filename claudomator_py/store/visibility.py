"""Conditions for the rows visible to a principal, part of every query made for one; results are not filtered again.

What is hidden from a principal is neither counted nor listed nor found by name, and is refused in the same words as
what does not exist.
"""

from sqlalchemy import ColumnElement, Table, and_, exists, false, not_, or_, select, true

from claudomator_py.domain.card import REMOTE_AGENT, Visibility
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.store.stored_json import sound
from claudomator_py.store.tables import EVENT, RUN, SPECIALIST, SPECIALIST_GRANT, TASK


def tasks_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``TASK`` what is visible to the principal."""
    if by.role is Role.RUN:
        own = RUN.alias("own_run")
        return TASK.c.id == select(own.c.task_id).where(own.c.id == by.run_id).scalar_subquery()
    return true() if by.organisation is None else TASK.c.organisation == by.organisation


def representative(by: Principal) -> Principal:
    """Return a representative for all principals who see the same tasks and runs, for use as a cache key."""
    return Principal("", by.role if by.role is Role.RUN else OPERATOR.role, by.organisation, by.run_id)


def runs_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``RUN`` what is visible to the principal. A run sees only itself."""
    if by.role is Role.RUN:
        return RUN.c.id == by.run_id
    return true() if by.organisation is None else exists().where(TASK.c.id == RUN.c.task_id, tasks_seen(by))


def events_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``EVENT`` those of tasks visible to the principal, and those without a task that it caused itself."""
    if by.role is not Role.RUN and by.organisation is None:
        return true()
    own = EVENT.c.task_id.is_(None) & (EVENT.c.by == by.id)
    return or_(exists().where(TASK.c.id == EVENT.c.task_id, tasks_seen(by)), own)


def rows_seen(table: Table, by: Principal) -> ColumnElement[bool]:
    """Select of ``SCHEDULE``, ``CHANNEL`` or ``DECISION`` what is visible to the principal. A run sees none."""
    if by.role is Role.RUN:
        return false()
    return true() if by.organisation is None else table.c.organisation == by.organisation


def cards_seen(by: Principal) -> ColumnElement[bool]:
    """Select of ``SPECIALIST`` the cards that are not removed and are public, the principal's own, or shared with it or
    its organisation. A principal who sees all work sees all cards."""
    return and_(SPECIALIST.c.removed_ms.is_(None), _open_to(by))


def assignable_cards(by: Principal) -> ColumnElement[bool]:
    """Select of ``SPECIALIST`` the cards that may be given the principal's work.

    These are fewer than it sees. A card's creator alone decides who sees it, but a specialist reads the whole task and
    brings a prompt and permissions of its own. So a card works for its creator and its own side, the daemon's or an
    organisation's, and for others only once an administrator of the daemon has admitted its current content. A private
    card works for its creator only, even if the principal sees all cards. A card reached over HTTP must be the
    operator's, because a secret of the daemon may be sent there.
    """
    own = SPECIALIST.c.creator.in_(by.names)
    same_side = SPECIALIST.c.organisation.is_not_distinct_from(by.organisation)
    admitted = SPECIALIST.c.admitted_hash == SPECIALIST.c.content_hash
    url = sound(SPECIALIST.c.card)["url"].as_string()
    reached = or_(SPECIALIST.c.creator == OPERATOR.id, url.is_(None), url.startswith("ws-agent:"))
    may = or_(own, and_(_visible_to(by), or_(same_side, admitted)))
    return and_(SPECIALIST.c.removed_ms.is_(None), reached, may)


def cards_hidden(by: Principal) -> ColumnElement[bool]:
    """Select of ``SPECIALIST`` the cards that are, or were until their removal, hidden from the principal."""
    return not_(_open_to(by))


def agent_hidden(name: str, by: Principal) -> ColumnElement[bool]:
    """Return the condition that the agent with this name is a remote specialist whose card is hidden."""
    remote = REMOTE_AGENT.fullmatch(name)
    return false() if remote is None else exists().where(SPECIALIST.c.id == remote[2], cards_hidden(by))


def _open_to(by: Principal) -> ColumnElement[bool]:
    return true() if by.sees_all else _visible_to(by)


def _visible_to(by: Principal) -> ColumnElement[bool]:
    """Return the condition by cards' own visibility and grants."""
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
    """Return the grantee that stands for an organisation."""
    return f"org:{organisation}"
