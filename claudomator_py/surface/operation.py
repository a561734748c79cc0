"""An operation, declared once: a method whose signature is the call of the client.

Path and role, the OpenAPI document, the call and the route follow from the declaration, so no two of them can disagree.
The method has no body: the client sends what it is called with, and ``api/served.py`` hands what arrives to the method
of the service that says that it ``answers`` it. Here is nothing of HTTP libraries or of the daemon, since the
command line imports it.
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
    """None: nothing, it is open to all."""
    whole: bool = False
    """It concerns the whole daemon, so it is not for a principal of an organisation."""
    run: bool = False
    """A run may do it as well, to its own task."""

    def permits(self, by: Principal) -> bool:
        """Return whether that principal may do it."""
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
class PathText:
    """A text that is a part of the path, as an annotation: ``Annotated[str, PathText("A schedule's name.")]``."""

    description: str
    max_length: int = 128


@dataclass(frozen=True, slots=True)
class PathNumber:
    """A number from 1 on that is a part of the path; as an annotation."""

    description: str
    max: int = 2**53


@dataclass(frozen=True, slots=True)
class QueryText:
    """A text in the query, left out where it is None; as an annotation."""

    description: str
    max_length: int = 128
    min_length: int | None = None


@dataclass(frozen=True, slots=True)
class QueryTexts:
    """Texts in the query, each under the same name; as an annotation."""

    description: str
    max: int


@dataclass(frozen=True, slots=True)
class QueryNumber:
    """A whole number in the query; as an annotation."""

    description: str
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class QueryChoice:
    """One of several words in the query, left out where it is None; as an annotation of an enumeration."""

    description: str


@dataclass(frozen=True, slots=True)
class QueryFields:
    """That the fields of a shape are sent in the query, without those that are left at their default; as an annotation.
    It comes before what else the query has."""


@dataclass(frozen=True, slots=True)
class TaskDocument:
    """That a ``TaskSpec`` is sent as the body, as a task file would write it; as an annotation."""

    examples: Mapping[str, object] = field(default_factory=dict)
    """By name; each is executed by a test."""


@dataclass(frozen=True, slots=True)
class CardDocument:
    """That a ``Card`` is sent as the body, as a card file would write it; as an annotation."""

    examples: Mapping[str, object]
    """By name; each is executed by a test."""


@dataclass(frozen=True, slots=True)
class JsonBody:
    """That a shape is sent as the body; as an annotation. One that may be left out has a default."""

    examples: Mapping[str, object]
    """By name; each is executed by a test."""


@dataclass(frozen=True, slots=True)
class JsonField:
    """That a value is the only field of the body, which the service gets as that shape; as an annotation."""

    shape: type[BaseModel]
    examples: Mapping[str, object]
    """Of the body, by name; each is executed by a test."""
    required: bool = True
    """Whether there has to be a body."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """That a text names this one request, so that it is not done again when repeated; as an annotation."""


@dataclass(frozen=True, slots=True)
class IfVersion:
    """That a change is made only to that version, else refused; as an annotation."""


Sent = (
    PathText
    | PathNumber
    | QueryText
    | QueryTexts
    | QueryNumber
    | QueryChoice
    | QueryFields
    | TaskDocument
    | CardDocument
    | JsonBody
    | JsonField
    | IdempotencyKey
    | IfVersion
)
"""The ways in which a parameter is sent."""
Key = Annotated[str | None, IdempotencyKey()]
"""A name that the client chooses for this request; None: it may be done again."""
Version = Annotated[int | None, IfVersion()]
"""The version that was seen; None: whichever there is."""
Cursor = Annotated[str | None, QueryText("The next_cursor of the previous page.", 500)]
"""Where a part of a list begins; None: at its beginning."""
Limit = Annotated[int, QueryNumber("Maximum number of items, 1 to 200.", 1, 200)]
"""The most items of a part of a list."""
Days = Annotated[int, QueryNumber("Number of days to count, up to now, 1 to 365.", 1, 365)]
"""How much is counted."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the call."""

    name: str
    type: Any
    sent_as: Sent
    default: Any
    """``inspect.Parameter.empty``: there is none."""


@dataclass(frozen=True, slots=True)
class Links:
    """What may be asked next, with a part of the answer as a parameter."""

    parameter: str
    """Of the operations that are named."""
    expression: str
    """Where the answer has its value, as OpenAPI writes it."""
    operations: Mapping[str, str]
    """By id, what each gives."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """What is answered instead to whoever asks for a stream of events."""

    description: str
    example: str


@dataclass(frozen=True, slots=True)
class Operation:
    """What one kind of request asks for, and what it is answered."""

    id: str
    """In the OpenAPI document, such as ``pauseSchedule``."""
    method: str
    path: str
    """With parameters in braces."""
    needs: Needed
    summary: str
    """What it does, in a line."""
    description: str
    """What else there is to know of it."""
    parameters: tuple[Parameter, ...]
    answer: type[BaseModel] | None
    """The shape of the answer; None: there is nothing to say."""
    listed: bool
    """Whether the call returns the items of the answer, which is a page."""
    status: int = 200
    """Of the answer."""
    refuses: Sequence[int] = ()
    """Other answers, besides what its parameters mean and every operation may answer."""
    answer_note: str | None = None
    """What is said of the answer besides its shape."""
    location: str | None = None
    """Where the thing is that was made, with fields of the answer in braces; None: it makes nothing."""
    links: Links | None = None
    tagged: bool = False
    """Whether the answer carries its ``version`` as an entity tag."""
    conditional: bool = False
    """Whether whoever has seen that version may be answered 304."""
    secret: bool = False
    """Whether the answer has a secret that was made for whoever asks, and is shown this once."""
    also: Mapping[int, str] = field(default_factory=dict)
    """Other statuses of an answer of that shape, and what they mean."""
    streamed: Streamed | None = None
    """What is answered as a stream; None: nothing."""


class _More(TypedDict, total=False):
    """What a declaration may say besides; see ``Operation`` for the words."""

    status: int
    refuses: Sequence[int]
    answer_note: str | None
    location: str | None
    links: Links | None
    tagged: bool
    conditional: bool
    secret: bool
    also: Mapping[int, str]
    streamed: Streamed | None


class Calls(Protocol):
    """What sends the calls of operations; a base of the classes that declare them."""

    def _call(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        """Return the answer. Raises what the client raises."""


def operation(
    route: str,
    operation_id: str,
    needs: Needed,
    summary: str,
    **more: Unpack[_More],
) -> Callable[[F], F]:
    """Declare the method below it to be the call of an operation; see ``Operation`` for the words.

    route: method and path. What its signature says is read when somebody asks for the operation: a command calls one of
    a hundred. That raises TypeError for a parameter of which nobody has said how it is sent.
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

        call.declared = declared  # type: ignore[attr-defined]  # which ``declared_by`` calls
        return call  # type: ignore[return-value]

    return declare


def answers(call: Callable[..., Any]) -> Callable[[F], F]:
    """Say that the method below it, of a service, answers the operation of that call."""

    def mark(method: F) -> F:
        method.answers = call  # type: ignore[attr-defined]  # which ``answered_by`` reads
        return method

    return mark


def answered_by(service: type) -> dict[str, Callable[..., Any]]:
    """Return the methods of a service that answer operations, by the id of each."""
    marked = [value for kind in reversed(service.__mro__) for value in vars(kind).values() if hasattr(value, "answers")]
    return {declared_by(method.answers).id: method for method in marked}


def declared_by(call: Callable[..., Any]) -> Operation:
    """Return the operation that a call is the call of. Raises AttributeError for any other function."""
    declared: Operation = call.declared()  # type: ignore[attr-defined]
    return declared


def operations_of(calls: type) -> tuple[Operation, ...]:
    """Return the operations that a class declares, in their order."""
    return tuple(value.declared() for value in vars(calls).values() if hasattr(value, "declared"))


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    sent = [marker for marker in more if isinstance(marker, Sent)]
    if len(sent) != 1:
        raise TypeError(f"how is {name} sent? Annotate it with one of {Sent}")
    return Parameter(name, kind, sent[0], default)


def _answer(hint: Any) -> tuple[type[BaseModel] | None, bool]:
    """The shape, and whether it is a page of which the call returns the items."""
    if hint is type(None):
        return None, False
    if get_origin(hint) is list:
        return Page.__class_getitem__(get_args(hint)[0]), True  # type: ignore[return-value]  # known at run time
    return hint, False
