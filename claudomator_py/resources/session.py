"""What all services have in common: the caller, one transaction for each request, requests done once, and finding the
task or run that is meant."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import update_wrapper
from inspect import Signature, signature
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from pydantic import BaseModel
from sqlalchemy import Connection

from claudomator_py.domain.errors import Ambiguous, Conflict, NotFound
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.domain.units import short_id
from claudomator_py.log import get_logger
from claudomator_py.store import reads, run_rows, schedule_rows
from claudomator_py.store.database import Database, read_or_refuse, write_or_refuse
from claudomator_py.store.stored_json import DAMAGED
from claudomator_py.store.tables import Run, Task
from claudomator_py.surface import answers
from claudomator_py.tasks.idempotency import IdempotentRequests
from claudomator_py.values import dataclass

log = get_logger("claudomator.session")
T = TypeVar("T")
A = TypeVar("A", bound=BaseModel)
S = TypeVar("S", bound="Service")
R = TypeVar("R")
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
SHORTEST_PREFIX = 4
"""A shorter one is hardly meant as an id, even if only one id begins with it."""


def each_shown(rows: Sequence[R], shown: Callable[[Sequence[R]], Sequence[T]], instead: Callable[[R], T]) -> list[T]:
    """Return what is shown of the rows, in order.

    A row that cannot be read, as after a change by hand, harms no other. shown: of rows that can be. instead: of one
    that cannot.
    """
    try:
        return list(shown(rows))
    except (*DAMAGED, Conflict) as error:
        if len(rows) == 1:
            log.warning("a row cannot be read", table=type(rows[0]).__name__, problem=str(error))
            return [instead(rows[0])]
    half = len(rows) // 2
    return [*each_shown(rows[:half], shown, instead), *each_shown(rows[half:], shown, instead)]


class Bound:
    """What answers one caller once it is bound to a principal."""

    _asker: Principal | None = None

    def as_(self, by: Principal) -> Self:
        """Return this, and what it uses, bound to the caller."""
        bound = copy(self)
        bound._asker = by
        for name, used in vars(self).items():
            if isinstance(used, Bound):
                setattr(bound, name, used.as_(by))
        return bound

    @property
    def _by(self) -> Principal:
        if self._asker is None:
            raise RuntimeError(f"{type(self).__name__} is bound to nobody: call as_()")
        return self._asker


@dataclass(eq=False, repr=False)
class Service(Bound):
    """Operations on a resource, for one caller once it is bound to a principal.

    Synchronous, and safe to call from many threads. Every method may raise ``domain.errors.ServiceError``.
    """

    database: Database

    def _read(self, fn: Callable[[Connection], T]) -> T:
        """Return what fn reads. Raises what fn raises, and Unavailable."""
        return read_or_refuse(self.database, fn)

    def _write(self, fn: Callable[[Connection], T]) -> T:
        """Return what fn returns, once what it wrote is durable. Raises what fn raises, and Unavailable."""
        return write_or_refuse(self.database, fn, self._by.id)


def reading(
    call: Callable[..., Any] | None = None,
) -> Callable[[Callable[Concatenate[S, Connection, P], T]], Callable[Concatenate[S, P], T]]:
    """Have a service's method called with a connection to read with, which its callers do not pass. Raises Unavailable
    in addition. call: declares the operation that the method answers, if it answers one."""

    def declare(method: Callable[Concatenate[S, Connection, P], T]) -> Callable[Concatenate[S, P], T]:
        def read(service: S, /, *args: P.args, **options: P.kwargs) -> T:
            return service._read(lambda connection: method(service, connection, *args, **options))

        return _as_called(read, method, call)

    return declare


def writing(
    call: Callable[..., Any] | None = None,
) -> Callable[[Callable[Concatenate[S, Connection, P], T]], Callable[Concatenate[S, P], T]]:
    """Have a service's method called in a transaction, whose connection its callers do not pass. It returns once what
    it wrote is durable. Raises Unavailable in addition. call: as for ``reading``."""

    def declare(method: Callable[Concatenate[S, Connection, P], T]) -> Callable[Concatenate[S, P], T]:
        def write(service: S, /, *args: P.args, **options: P.kwargs) -> T:
            return service._write(lambda connection: method(service, connection, *args, **options))

        return _as_called(write, method, call)

    return declare


def _as_called(wrapper: F, method: Callable[..., Any], call: Callable[..., Any] | None) -> F:
    """Describe the wrapper as the method, but without its connection, and as the answer to the call."""
    service, _, *others = signature(method).parameters.values()
    update_wrapper(wrapper, method)
    wrapper.__signature__ = Signature([service, *others])  # type: ignore[attr-defined]  # read by ``signature``
    return wrapper if call is None else answers(call)(wrapper)


@dataclass(eq=False, repr=False)
class KeyedService(Service):
    """A service whose requests have idempotency keys."""

    repeats: IdempotentRequests

    def _once(self, key: RequestKey | None, answer: type[A], prepare: Callable[[], Callable[[Connection], A]]) -> A:
        """Return the answer of the change, or the answer to an earlier request with this key, which made the change.

        answer: the shape of it. prepare: does, or refuses, what comes before the transaction, and returns the change.
        Raises KeyInUse, KeyReused.
        """
        if key is None:
            return self._write(prepare())
        repeats = self.repeats
        with repeats.claim(key, self._by.id, answer) as earlier:
            if earlier is not None:
                return earlier
            change = prepare()
            return self._write(lambda connection: repeats.kept(connection, key, change(connection), self._by.id))


class Session:
    """The services bound to one principal, who sees and changes what it may, in its own name."""

    def __init__(self, services: Mapping[type, Any], by: Principal) -> None:
        self._services = services
        self.by = by

    def __getitem__(self, service: type[S]) -> S:
        """Return the service of that type, bound to the principal. It costs nothing."""
        instance: S = self._services[service]
        return instance.as_(self.by)


class Access:
    """The services, for every caller. They answer no request without a principal."""

    def __init__(self, services: Iterable[object]) -> None:
        self._services = {type(service): service for service in services}

    def as_(self, by: Principal) -> Session:
        """Return the services bound to that principal."""
        return Session(self._services, by)

    def __getitem__(self, kind: type[T]) -> T:
        """Return the service of that type unbound, for services that bind themselves."""
        service: Any = self._services[kind]
        return service  # type: ignore[no-any-return]  # of that kind


def find_task(connection: Connection, ref: str, by: Principal) -> Task:
    """Return the task that is meant, among those that exist for the principal. Raises NotFound or Ambiguous."""
    matching = reads.matching(connection, ref, by)
    if not matching:
        names = reads.newest_names(connection, by)
        if by.sees(by.organisation) and schedule_rows.named(connection, ref, by.organisation) is not None:
            last = next((name for name in names if name.startswith(f"{ref}.")), None)
            remedy = f"the last of its tasks is {last}" if last is not None else "it has made no task yet"
            raise NotFound(
                f"There is no task {ref!r}: it is a schedule.",
                remedy=f"See `claudomator schedule list`; {remedy}.",
            )
        raise NotFound.among("task", ref, names, listing="claudomator list")
    ids = ", ".join(f"{short_id(task.id)} ({task.name})" for task in matching)
    whole = ref == matching[0].name or ref.lower() == matching[0].id
    if not whole and len(ref) < SHORTEST_PREFIX:
        detail = f"There is no task {ref!r}. It is too short for the beginning of an id: {ids} would match."
        raise NotFound(detail, remedy=f"Write the name, or at least {SHORTEST_PREFIX} characters of the id.")
    if len(matching) > 1:
        raise Ambiguous(f"{ref!r} could mean {ids}.", remedy="Write the name, or a longer prefix of the id.")
    return matching[0]


def find_run(connection: Connection, ref: str, by: Principal) -> Run:
    """Return the run with that id or id prefix, if it exists for the caller. Raises NotFound or Ambiguous."""
    run = run_rows.find(connection, ref, by)
    if run is not None:
        return run
    runs = [] if len(ref) < SHORTEST_PREFIX or "\0" in ref else run_rows.beginning(connection, ref, by)
    if not runs:
        raise NotFound(f"There is no run {ref!r}.", remedy="List a task's runs with `claudomator show TASK`.")
    if len(runs) > 1:
        ids = ", ".join(short_id(run.id) for run in runs)
        raise Ambiguous(f"{ref!r} is the beginning of {ids}.", remedy="Write a longer prefix of the id.")
    return runs[0]
