"""Declares an operation once, as a method whose signature is the client's call.

Path and role, the OpenAPI document, the call and the route are derived from the declaration, so they cannot disagree.
The method has no body: the client sends its arguments, and ``api/served.py`` passes a request to the service method
marked with ``answers``. This module imports neither HTTP libraries nor the daemon, as the command line imports it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache, wraps
from typing import Annotated, Any, Final, Protocol, TypedDict, TypeVar, Unpack, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.shape import Page
from claudomator_py.values import dataclass

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Needed:
    """What an operation requires of a principal."""

    role: Role | None
    """None: open to all."""
    whole: bool = False
    """Concerns the whole daemon, so a principal of an organisation may not do it."""
    run: bool = False
    """A run may do it too, for its own task."""

    def permits(self, by: Principal) -> bool:
        """Return whether the principal may do it."""
        if self.role is None or (self.run and by.role is Role.RUN):
            return True
        return by.role.permits(self.role) and not (self.whole and by.organisation is not None)


OPEN: Final = Needed(None)
READ: Final = Needed(Role.READ)
READ_WHOLE: Final = Needed(Role.READ, whole=True)
READ_OWN: Final = Needed(Role.READ, run=True)
OPERATE: Final = Needed(Role.OPERATE)
OPERATE_OWN: Final = Needed(Role.OPERATE, run=True)
ADMIN: Final = Needed(Role.ADMIN)
ADMIN_WHOLE: Final = Needed(Role.ADMIN, whole=True)


@dataclass(frozen=True, slots=True)
class InPath:
    """A text or a number from 1 up in the path, as an annotation: ``Annotated[str, InPath("A schedule's name.")]``."""

    description: str
    max: int | None = None
    """The maximum of a number, by default 2**53, or of a text's length, by default 128."""
    ambiguous: bool = False
    """Whether it may mean several things, which is refused with 409."""


@dataclass(frozen=True, slots=True)
class InQuery:
    """A text, texts under one name, an integer or one of several words in the query, omitted if None; as an
    annotation."""

    description: str
    min: int | None = None
    max: int | None = None
    """Bounds of a number, of a text's length or of the number of texts; None: none."""


@dataclass(frozen=True, slots=True)
class QueryFields:
    """A shape whose fields are sent in the query, except those with their default; as an annotation. Precedes the
    other query parameters."""


@dataclass(frozen=True, slots=True)
class TaskDocument:
    """A ``TaskSpec`` sent as the body, written as in a task file; as an annotation."""

    examples: Mapping[str, object] = field(default_factory=dict)
    """Examples by name; a test executes each."""


@dataclass(frozen=True, slots=True)
class CardDocument:
    """A ``Card`` sent as the body, written as in a card file; as an annotation."""

    examples: Mapping[str, object]
    """Examples by name; a test executes each."""


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A shape sent as the body; as an annotation. An optional body has a default."""

    examples: Mapping[str, object]
    """Examples by name; a test executes each."""


@dataclass(frozen=True, slots=True)
class JsonField:
    """A value that is the body's only field, which the service gets as that shape; as an annotation."""

    shape: type[BaseModel]
    examples: Mapping[str, object]
    """Example bodies by name; a test executes each."""
    required: bool = True
    """Whether the body is required."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A text that identifies this request, so that a repeat is not carried out again; as an annotation."""


@dataclass(frozen=True, slots=True)
class IfVersion:
    """The only version to which the change may be made, else it is refused; as an annotation."""


Sent = InPath | InQuery | QueryFields | TaskDocument | CardDocument | JsonBody | JsonField | IdempotencyKey | IfVersion
"""All ways to send a parameter."""
Key = Annotated[str | None, IdempotencyKey()]
"""Key that the client chooses for this request; None: a repeat is carried out again."""
Version = Annotated[int | None, IfVersion()]
"""The version that the client has seen; None: any."""
Cursor = Annotated[str | None, InQuery("The next_cursor of the previous page.", max=500)]
"""Where a page of a list begins; None: at the start."""
Limit = Annotated[int, InQuery("Maximum number of items, 1 to 200.", 1, 200)]
"""Maximum number of items of a page."""
Days = Annotated[int, InQuery("Number of days to count, up to now, 1 to 365.", 1, 365)]
"""Number of days to count, up to now."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the call."""

    name: str
    type: Any
    sent_as: Sent
    default: Any
    """``inspect.Parameter.empty`` if there is none."""


@dataclass(frozen=True, slots=True)
class Links:
    """Operations that may follow, taking a part of the answer as a parameter."""

    parameter: str
    """Name of the parameter in those operations."""
    expression: str
    """Runtime expression of OpenAPI for the value in the answer."""
    operations: Mapping[str, str]
    """What each operation gives, by operation id."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The alternative answer for a client that asks for a stream of events."""

    description: str
    example: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of request and its answer."""

    id: str
    """Operation id in the OpenAPI document, such as ``pauseSchedule``."""
    method: str
    path: str
    """Path, with parameters in braces."""
    needs: Needed
    summary: str
    """What it does, in one line."""
    description: str = ""
    """Further details."""
    parameters: tuple[Parameter, ...] = ()
    answer: type[BaseModel] | None = None
    """The shape of the answer; None: the answer has no body."""
    listed: bool = False
    """Whether the answer is a page whose items the call returns."""
    status: int = 200
    """Status of the answer."""
    refuses: Sequence[int] = ()
    """Statuses of refusals in addition to those that its parameters imply and those common to all operations."""
    answer_note: str | None = None
    """Description of the answer in addition to its shape."""
    location: str | None = None
    """Location of the created resource, with fields of the answer in braces; None: it creates nothing."""
    links: Links | None = None
    secret: bool = False
    """Whether the answer holds a secret made for the caller, which is shown only once."""
    also: Mapping[int, str] = field(default_factory=dict)
    """Other statuses with an answer of that shape, and their meanings."""
    streamed: Streamed | None = None
    """The answer as a stream; None: there is none."""

    @property
    def tagged(self) -> bool:
        """Whether the answer carries its ``version`` as an entity tag: that of the resource at the path or Location."""
        version = None if self.answer is None else self.answer.model_fields.get("version")
        return version is not None and version.annotation is int and (self.status != 201 or self.location is not None)

    @property
    def conditional(self) -> bool:
        """Whether a client that has seen that version may get 304."""
        return self.tagged and self.method == "GET"


class _More(TypedDict, total=False):
    """Optional parts of a declaration; see ``Operation``."""

    status: int
    refuses: Sequence[int]
    answer_note: str | None
    location: str | None
    links: Links | None
    secret: bool
    also: Mapping[int, str]
    streamed: Streamed | None


class Calls(Protocol):
    """Sends the calls of operations; a base of the classes that declare them."""

    def _call(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        """Send the call and return the answer. Raises what the client raises."""


def operation(route: str, operation_id: str, needs: Needed, summary: str, **more: Unpack[_More]) -> Callable[[F], F]:
    """Declare the method below it to be the call of an operation; see ``Operation`` for the parameters.

    route: method and path. The signature is only read when the operation is needed, as a command calls one of a
    hundred. Reading it raises TypeError for a parameter without an annotation of how it is sent.
    """
    verb, path = route.split(" ")

    def declare(method: F) -> F:
        signature = cache(lambda: inspect.signature(method))

        @cache
        def declared() -> Operation:
            hints = get_type_hints(method, include_extras=True)
            answer, listed = _answer(hints.pop("return"))
            defaults = signature().parameters
            return Operation(
                id=operation_id,
                method=verb,
                path=path,
                needs=needs,
                summary=summary,
                description=inspect.getdoc(method) or "",
                parameters=tuple(_parameter(name, hint, defaults[name].default) for name, hint in hints.items()),
                answer=answer,
                listed=listed,
                **more,
            )

        @wraps(method)
        def call(self: Calls, *args: Any, **options: Any) -> Any:
            bound = signature().bind(self, *args, **options)
            bound.apply_defaults()
            return self._call(declared(), bound.arguments)

        call.declared = declared  # type: ignore[attr-defined]  # read by ``declared_by``
        return call  # type: ignore[return-value]

    return declare


def answers(call: Callable[..., Any]) -> Callable[[F], F]:
    """Mark a service's method as the implementation of the operation that ``call`` declares."""

    def mark(method: F) -> F:
        method.answers = call  # type: ignore[attr-defined]  # read by ``answered_by``
        return method

    return mark


def answered_by(service: type) -> dict[str, Callable[..., Any]]:
    """Return the service's methods that answer operations, by operation id."""
    marked = [value for kind in reversed(service.__mro__) for value in vars(kind).values() if hasattr(value, "answers")]
    return {declared_by(method.answers).id: method for method in marked}


def declared_by(call: Callable[..., Any]) -> Operation:
    """Return the operation that the call belongs to. Raises AttributeError for any other function."""
    declared: Operation = call.declared()  # type: ignore[attr-defined]
    return declared


def operations_of(calls: type) -> tuple[Operation, ...]:
    """Return the operations that a class declares, in order."""
    return tuple(value.declared() for value in vars(calls).values() if hasattr(value, "declared"))


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    sent = [marker for marker in more if isinstance(marker, Sent)]
    if len(sent) != 1:
        raise TypeError(f"how is {name} sent? Annotate it with one of {Sent}")
    return Parameter(name, kind, sent[0], default)


def _answer(hint: Any) -> tuple[type[BaseModel] | None, bool]:
    """The shape, and whether it is a page whose items the call returns."""
    if hint is type(None):
        return None, False
    if get_origin(hint) is list:
        return Page.__class_getitem__(get_args(hint)[0]), True  # type: ignore[return-value]  # known at run time
    return hint, False
