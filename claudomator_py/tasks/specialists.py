"""Changes to specialists' cards in the registry, each in one transaction.

Nobody can take over another's card. A card that is hidden from the caller is refused in the same words as one that
does not exist. An operator's card may replace a shipped one (source ``shipped``) with the same id; when it is removed,
the shipped one is restored.
"""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection

from claudomator_py.domain.card import SHIPPER, SUCCESSOR_FIELDS, Card, Registration, Source, Transport, Visibility
from claudomator_py.domain.errors import (
    LIST_OF_SPECIALISTS,
    Conflict,
    Forbidden,
    NotFound,
    Problem,
    ServiceError,
    StaleVersion,
    name_suggestion,
    refuse,
    sentence,
    shown,
    suggestion,
)
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.report import unmeasured
from claudomator_py.domain.task import TaskSpec
from claudomator_py.routing.role import agent_of
from claudomator_py.store import specialist_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.tables import Specialist
from claudomator_py.values import dataclass

_SHIPPER = Principal(SHIPPER, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Whose a written card is, and where it comes from."""

    creator: str
    organisation: str | None
    source: Source
    path: str | None
    """The file that it follows."""
    admitted_by: str | None
    """The administrator who writes and so admits it; None: it is admitted only if the same content was before."""


_SHIPPED = _Origin(SHIPPER, None, "shipped", None, SHIPPER)


def register(
    connection: Connection,
    card: Card,
    by: Principal,
    now_ms: int,
    *,
    source: Source = "api",
    file_path: str | None = None,
    registered_with: Collection[str] = (),
    is_own: bool = True,
) -> Registration:
    """Add the card, or update the creator's own card with that id. Idempotent.

    file_path: the file that the card follows from now on. is_own: if true, registration by an administrator of the
    daemon also admits the card; if false, nobody has read it as their own. registered_with: see ``successor_problems``.
    Raises Conflict if the id belongs to another creator or the card follows another file, Forbidden for another
    organisation's card, Invalid if it names a specialist that does not exist.
    """
    row = specialist_rows.row_of(connection, card.id)
    if row is not None and not _is_free(row, by):
        # The wording does not depend on whether the caller can see the card, so it does not reveal the owner.
        raise Conflict(f"The id {card.id} is taken.", remedy="Choose another id.")
    if row is not None and row.removed_ms is None and row.file_path not in (None, file_path):
        raise _follows_file(row)
    if row is not None and row.removed_ms is None and card.url is None:
        # A card written without an address, for the id of a connected agent, is about that agent.
        known = specialist_rows.find(connection, card.id, by)
        if known is not None and known.card.transport is Transport.HUB:
            card = card.model_copy(update={"url": known.card.url})
    refuse([*card.address_problems(), *successor_problems(connection, card, by, registered_with)])
    organisation = _organisation(card, by, by.organisation)
    origin = _Origin(by.id, organisation, source, file_path, _admission(by) if is_own else None)
    return _put(connection, row, card, now_ms, origin)


def register_itself(connection: Connection, card: Card, by: Principal, now_ms: int) -> Registration:
    """Register the card with which an agent has connected. A card that its creator wrote, in a file or by the API,
    takes precedence and only gets the agent's address if it has none.

    Raises as ``register``, and Conflict if the written card names another address.
    """
    row = specialist_rows.row_of(connection, card.id)
    if row is None or row.removed_ms is not None or row.creator != by.id or row.source not in ("api", "file"):
        return register(connection, card, by, now_ms, source="hub")
    written = specialist_rows.find(connection, card.id, by)
    if written is None:
        raise unknown(connection, card.id, by)
    if written.card.transport is Transport.HTTP:
        detail = f"The card {card.id} names another address."
        raise Conflict(detail, remedy=f"Write `url: {card.url}` in it, remove it, or choose another id.")
    if written.card.transport is Transport.HUB:
        return written
    reached = written.card.model_copy(update={"url": card.url})
    origin = _Origin(row.creator, row.organisation, written.source, row.file_path, _admission(by))
    return _put(connection, row, reached, now_ms, origin)


def change(
    connection: Connection, card: Card, by: Principal, now_ms: int, *, versions: Collection[int] | None = None
) -> Registration:
    """Replace the card with that id. versions: the acceptable current versions; None: any.

    Changing a shipped card makes the operator's own card, which replaces it; a changed card of the hub no longer
    follows its agent. Raises NotFound, Forbidden, StaleVersion, Conflict if the card follows a file, and Invalid as
    ``register``.
    """
    row = _changeable(connection, card.id, by, versions)
    if row.file_path is not None:
        raise _follows_file(row)
    creator = by.id if row.source == "shipped" else row.creator
    refuse([*card.address_problems(), *successor_problems(connection, card, by)])
    organisation = _organisation(card, by, row.organisation)
    return _put(connection, row, card, now_ms, _Origin(creator, organisation, "api", None, _admission(by)))


def remove(
    connection: Connection,
    specialist_id: str,
    by: Principal,
    now_ms: int,
    *,
    versions: Collection[int] | None = None,
    file_path: str | None = None,
) -> None:
    """Remove the card with its grants; if it replaced a shipped card, that one is restored. file_path: the file that
    the card follows and that is gone. Raises as ``change``."""
    row = _changeable(connection, specialist_id, by, versions)
    if row.file_path not in (None, file_path):
        raise _follows_file(row)
    specialist_rows.revoke(connection, row.id)
    data = {"specialist": row.id, "source": row.source, "version": row.version + 1}
    record(connection, now_ms, "specialist_removed", data=data)
    if row.shipped is None:
        specialist_rows.index(connection, row.id, None)
        _route_again(connection, row.id, now_ms)
        specialist_rows.change(
            connection, row.id, version=row.version + 1, file_path=None, updated_ms=now_ms, removed_ms=now_ms
        )
        return
    card = Card.model_validate(row.shipped)
    row.shipped = None
    _put(connection, row, card, now_ms, _SHIPPED)


def grant(connection: Connection, specialist_id: str, grantee: str, by: Principal, now_ms: int) -> Registration:
    """Show a shared card to a principal (by id) or an organisation (``org:NAME``). Idempotent. Raises as ``change``,
    and Conflict for a card that is not shared."""
    row = _changeable(connection, specialist_id, by)
    if row.visibility != Visibility.SHARED:
        remedy = "Set its visibility to `shared` first."
        raise Conflict(f"The specialist {row.id} is {row.visibility}: only a shared one takes grants.", remedy=remedy)
    registration = specialist_rows.get(connection, row.id, by)
    if grantee not in registration.grants:
        specialist_rows.grant(connection, row.id, grantee, by.id, now_ms)
        specialist_rows.change(connection, row.id, version=row.version + 1, updated_ms=now_ms)
        record(connection, now_ms, "specialist_granted", data={"specialist": row.id, "grantee": grantee})
    return specialist_rows.get(connection, row.id, by)


def revoke(connection: Connection, specialist_id: str, grantee: str, by: Principal, now_ms: int) -> Registration:
    """Take the grant back. Idempotent. Tasks that have not begun are routed again. Raises as ``change``."""
    row = _changeable(connection, specialist_id, by)
    registration = specialist_rows.get(connection, row.id, by)
    if grantee in registration.grants:
        specialist_rows.revoke(connection, row.id, grantee)
        specialist_rows.change(connection, row.id, version=row.version + 1, updated_ms=now_ms)
        record(connection, now_ms, "specialist_revoked", data={"specialist": row.id, "grantee": grantee})
        _route_again(connection, row.id, now_ms)
    return specialist_rows.get(connection, row.id, by)


def admit(connection: Connection, specialist_id: str, by: Principal, now_ms: int) -> Registration:
    """Admit the card's current content, including prompt and permissions, to the work of others. Idempotent.

    A card that its creator changes must be admitted again. Raises NotFound, Forbidden for all but administrators of the
    daemon, and Conflict for a private card.
    """
    row = _admissible(connection, specialist_id, by)
    if row.visibility == Visibility.PRIVATE:
        remedy = "Have its creator set its visibility to `public` or `shared` first."
        raise Conflict(f"The specialist {row.id} is private: it works for its creator only.", remedy=remedy)
    if row.admitted_hash != row.content_hash:
        admitted = {"admitted_hash": row.content_hash, "admitted_by": by.id}
        specialist_rows.change(connection, row.id, version=row.version + 1, updated_ms=now_ms, **admitted)
        record(connection, now_ms, "specialist_admitted", data={"specialist": row.id, "version": row.version + 1})
        _route_again(connection, row.id, now_ms)
    return specialist_rows.get(connection, row.id, by)


def dismiss(connection: Connection, specialist_id: str, by: Principal, now_ms: int) -> Registration:
    """Take an admission back. Idempotent. Tasks of others that have not begun are routed again. Raises NotFound,
    Forbidden for all but administrators of the daemon."""
    row = _admissible(connection, specialist_id, by)
    if row.admitted_hash is not None:
        taken = {"admitted_hash": None, "admitted_by": None}
        specialist_rows.change(connection, row.id, version=row.version + 1, updated_ms=now_ms, **taken)
        record(connection, now_ms, "specialist_dismissed", data={"specialist": row.id, "version": row.version + 1})
        _route_again(connection, row.id, now_ms)
    return specialist_rows.get(connection, row.id, by)


def _seen_row(connection: Connection, specialist_id: str, by: Principal) -> Specialist:
    """Return the row of a card that the principal sees. Raises NotFound, or Conflict if the card is unreadable."""
    registration = specialist_rows.find(connection, specialist_id, by)
    row = None if registration is None else specialist_rows.row_of(connection, specialist_id)
    if row is None:
        raise unknown(connection, specialist_id, by)
    return row


def _admissible(connection: Connection, specialist_id: str, by: Principal) -> Specialist:
    row = _seen_row(connection, specialist_id, by)
    if not _administers_all(by):
        detail = f"{by.id} may not admit specialists to the work of others."
        raise Forbidden(detail, remedy="Ask an administrator of the daemon.")
    return row


def _admission(by: Principal) -> str | None:
    """Return the principal's id if writing a card admits it: if it administers the daemon; else None."""
    return by.id if _administers_all(by) else None


def _administers_all(by: Principal) -> bool:
    return by.role is Role.ADMIN and by.organisation is None


def ship(connection: Connection, cards: Sequence[Card], now_ms: int) -> None:
    """Let the registry have exactly the shipped cards of this version. A shipped card that an operator's card replaces
    is kept beneath it; one that an operator removed stays removed."""
    for card in cards:
        row = specialist_rows.row_of(connection, card.id)
        if row is not None and row.source == "shipped" and row.removed_ms is not None:
            specialist_rows.change(connection, card.id, card=card.document, content_hash=card.content_hash)
        elif row is None or row.source == "shipped" or row.removed_ms is not None:
            _put(connection, row, card, now_ms, _SHIPPED)
        elif row.shipped != card.document:
            specialist_rows.change(connection, card.id, shipped=card.document)
    current = {card.id for card in cards}
    for specialist_id in specialist_rows.shipped_ids(connection):
        row = None if specialist_id in current else specialist_rows.row_of(connection, specialist_id)
        if row is None:
            continue
        if row.source != "shipped":
            specialist_rows.change(connection, row.id, shipped=None)
        elif row.removed_ms is None:
            remove(connection, row.id, _SHIPPER, now_ms)


def unknown(connection: Connection, specialist_id: str, by: Principal) -> ServiceError:
    """Return the refusal for an id that does not exist for the caller or whose card is unreadable; it suggests only
    ids that the caller sees."""
    ids = specialist_rows.ids_seen(connection, by)
    if specialist_id in ids:
        problem = _unreadable(specialist_id, "id")
        return Conflict(sentence(problem.message), remedy=sentence(str(problem.remedy)))
    return NotFound.among("specialist", specialist_id, ids, listing=LIST_OF_SPECIALISTS)


def _unreadable(specialist_id: str, field: str) -> Problem:
    message = f"the card of specialist {shown(specialist_id)!r} cannot be read in the database, so it gets no work"
    remedy = f"write it again: `claudomator specialists add FILE` with id: {specialist_id}"
    return Problem(field=field, message=message, remedy=remedy)


def missing(connection: Connection, specialist_id: str, field: str, by: Principal, names: Sequence[str]) -> Problem:
    """Return the problem with an id for which the principal finds no card. names: the ids to suggest from."""
    if specialist_id in specialist_rows.ids_seen(connection, by):
        return _unreadable(specialist_id, field)
    remedy = name_suggestion(specialist_id, names, LIST_OF_SPECIALISTS)
    return Problem(field=field, message=f"there is no specialist `{shown(specialist_id)}`", remedy=remedy)


def successor_problems(
    connection: Connection, card: Card, by: Principal, registered_with: Collection[str] = ()
) -> list[Problem]:
    """Return problems where the card sends tasks on to itself, or to a specialist that its creator cannot see.

    An unchanged card stays valid if a specialist it names is removed later: an agent of the hub registers at each
    connection, and must not be locked out by others. registered_with: ids that are registered together with the card.
    """
    named = {
        field: to
        for field in SUCCESSOR_FIELDS
        if (to := getattr(card, field)) is not None and to not in SUCCESSOR_FIELDS[field]
    }
    if not named:
        return []
    registered = specialist_rows.find(connection, card.id, by)
    if registered is not None and registered.content_hash == card.content_hash:
        return []
    problems = []
    for field, to in named.items():
        if to == card.id:
            remedy = f"name another one, or {' or '.join(SUCCESSOR_FIELDS[field])}"
            problems.append(Problem(field=field, message=f"`{to}` is this card itself", remedy=remedy))
        elif to not in registered_with and specialist_rows.find(connection, to, by) is None:
            suggestions = (*SUCCESSOR_FIELDS[field], *registered_with, *specialist_rows.ids_seen(connection, by))
            problems.append(missing(connection, to, field, by, suggestions))
    return problems


def task_problems(connection: Connection, spec: TaskSpec, by: Principal) -> list[Problem]:
    """Return the problems with the task's specialist: unknown to the sender, not admitted, without that skill, or
    beyond the task's budget."""
    if spec.specialist is None:
        return []
    registration = specialist_rows.find(connection, spec.specialist, by)
    if registration is None:
        names = specialist_rows.assignable_ids(connection, by)
        return [missing(connection, spec.specialist, "specialist", by, names)]
    if not specialist_rows.is_assignable(connection, spec.specialist, by):
        return [_not_given(registration)]
    if spec.skill is not None and registration.card.skill(spec.skill) is None:
        remedy = suggestion(spec.skill, [skill.id for skill in registration.card.skills])
        message = f"`{shown(spec.skill)}` is not a skill of {spec.specialist}"
        return [Problem(field="skill", message=message, remedy=remedy)]
    return _budget_problems(spec, registration.card)


def _budget_problems(spec: TaskSpec, card: Card) -> list[Problem]:
    """Return why work of that specialist would break the task's budget, or could not be measured: nobody else gets the
    task, so it would fail when it is done, or never start."""
    most, fee = spec.budget.usd, card.pricing_of(spec.skill).per_task
    sentences = [f"a task of {card.id} costs {fee:g} USD"] if most is not None and fee > most else []
    if not sentences and card.transport is not Transport.LOCAL:
        sentences = unmeasured(spec, agent_of(card))
    remedy = "change the budget, or name another specialist"
    return [Problem(field="budget", message=sentence, remedy=remedy) for sentence in sentences]


def _not_given(registration: Registration) -> Problem:
    card, whose = registration.card, registration.organisation or registration.creator
    if card.transport is Transport.HTTP and registration.creator != OPERATOR.id:
        message = "is reached over HTTP, which only the operator's cards may be"
        remedy = "have the operator register it, connect its agent to the hub, or name another one"
    elif card.visibility is Visibility.PRIVATE:
        message, remedy = "is private: it works for its creator only", "name another one"
    else:
        message = f"works for {whose} only, as no administrator has admitted it to the work of others"
        remedy = f"have an administrator run `claudomator specialists admit {card.id}`, or name another one"
    return Problem(field="specialist", message=f"`{card.id}` {message}", remedy=remedy)


def may_change(registration: Registration, by: Principal) -> bool:
    """Return whether a principal who sees the card may change it: as its creator, or as an administrator of the daemon
    or of the card's organisation."""
    return _may_change(registration.creator, registration.organisation, by)


def _may_change(creator: str, organisation: str | None, by: Principal) -> bool:
    administers = by.role is Role.ADMIN and by.organisation in (None, organisation)
    return administers or (creator == by.id and by.role.permits(Role.OPERATE))


def _is_free(row: Specialist, by: Principal) -> bool:
    """Return whether the principal may register a card with the id of this row."""
    if row.source == "shipped":
        return _administers_all(by)
    return row.creator == by.id or row.removed_ms is not None


def _changeable(
    connection: Connection, specialist_id: str, by: Principal, versions: Collection[int] | None = None
) -> Specialist:
    row = _seen_row(connection, specialist_id, by)
    if not _may_change(row.creator, row.organisation, by):
        remedy = f"Ask {row.creator}, or an administrator."
        raise Forbidden(f"The specialist {row.id} belongs to {row.creator}.", remedy=remedy)
    if versions is not None and row.version not in versions:
        remedy = "Fetch it again and retry with its current version."
        raise StaleVersion(f"The specialist {row.id} is at version {row.version}.", remedy=remedy)
    return row


def _organisation(card: Card, by: Principal, otherwise: str | None) -> str | None:
    if by.organisation is not None and card.organisation not in (None, by.organisation):
        detail = f"{by.id} belongs to {by.organisation}, and cannot register a specialist of another organisation."
        raise Forbidden(detail, remedy="Leave `organisation` out.")
    return card.organisation or otherwise


def _follows_file(row: Specialist) -> Conflict:
    return Conflict(
        f"The specialist {row.id} follows the file {row.file_path}.", remedy="Edit the file, or delete it to remove it."
    )


def _put(connection: Connection, row: Specialist | None, card: Card, now_ms: int, origin: _Origin) -> Registration:
    """Write the card. row: the current one, if any."""
    columns: dict[str, Any] = {
        "creator": origin.creator,
        "organisation": origin.organisation,
        "visibility": card.visibility.value,
        "source": origin.source,
        "file_path": origin.path,
        "content_hash": card.content_hash,
    }
    if origin.admitted_by is not None:
        columns["admitted_hash"] = card.content_hash
    present = row is not None and row.removed_ms is None
    same = present and all(getattr(row, name) == value for name, value in columns.items())
    # A card that is unreadable in the database is written again although its content is the same.
    if same and (known := specialist_rows.find(connection, card.id)) is not None:
        return known
    shipped = None
    if row is not None and origin.source != "shipped":
        shipped = row.card if row.source == "shipped" else row.shipped
    # A new owner starts at version 1, so that the number reveals nothing of a removed card.
    version = 1 if row is None or (not present and row.creator != origin.creator) else row.version + 1
    columns |= {"card": card.document, "shipped": shipped, "version": version, "updated_ms": now_ms}
    if origin.admitted_by is not None:
        columns["admitted_by"] = origin.admitted_by
    elif row is not None and row.creator != origin.creator:
        columns |= {"admitted_hash": None, "admitted_by": None}
    if row is None:
        row = Specialist(id=card.id, created_ms=now_ms, **columns)
        row.insert(connection)
    else:
        created_ms = row.created_ms if present else now_ms
        specialist_rows.change(connection, card.id, created_ms=created_ms, removed_ms=None, **columns)
    specialist_rows.index(connection, card.id, card)
    _route_again(connection, card.id, now_ms)
    data = {"specialist": card.id, "source": origin.source, "version": version}
    record(connection, now_ms, "specialist_changed" if present else "specialist_registered", data=data)
    return specialist_rows.get(connection, card.id)


def _route_again(connection: Connection, specialist_id: str, now_ms: int) -> None:
    """Have queued tasks for the specialist routed again, as its card has changed."""
    for task in task_rows.queued_for(connection, specialist_id):
        task_rows.change(connection, task, now_ms, constraints=None)
