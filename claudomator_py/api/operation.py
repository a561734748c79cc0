"""One operation of the API, declared once, next to its handler: method and path, required role, parameters and answer.
The OpenAPI document, the table of roles and the reference page follow from it.

Its parameters say the rest: a body is read and validated before the call, and adds 415; a version adds 412, and an
idempotency key 409.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Annotated, Any, Final, TypeVar, get_args

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from claudomator_py.api.conditional import ETAG_HEADER, NOT_MODIFIED
from claudomator_py.api.guard import roles
from claudomator_py.api.guard.roles import Asking, permitted
from claudomator_py.api.openapi import refusals, request_body
from claudomator_py.api.request import JsonObject, OptionalJsonObject, strict_query
from claudomator_py.api.streams import stream_response
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import Invalid
from claudomator_py.resources.session import Access, Session
from claudomator_py.schema.cardfile import read_card
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.schema.validation import validate, value_problems
from claudomator_py.surface import (
    CardDocument,
    IdempotencyKey,
    IfVersion,
    InPath,
    JsonBody,
    JsonField,
    Links,
    Needed,
    Operation,
    Parameter,
    TaskDocument,
)
from claudomator_py.values import dataclass

F = TypeVar("F", bound=Callable[..., Any])

_MAX_LISTED = 3
"""Problems that a refusal has in its ``detail``; ``problems`` has them all."""
GUARDS: Final = (Depends(permitted), Depends(strict_query))
"""The dependencies of every route."""


class UnlistedRoutes:
    """Routes outside of the API's document: pages, A2A and webhooks. prefix: of their paths.

    Each is declared with what it requires: a role, or the id of the operation whose role applies.
    """

    def __init__(self, prefix: str = "") -> None:
        self._router = APIRouter(prefix=prefix, include_in_schema=False, dependencies=[*GUARDS])

    @property
    def routes(self) -> list[BaseRoute]:
        """All of them, in order of declaration."""
        return self._router.routes

    def get(self, path: str, needs: Needed | str) -> Callable[[F], F]:
        """Declare the decorated function to be the handler of a GET."""
        return self._declare("GET", path, needs)

    def post(self, path: str, needs: Needed | str) -> Callable[[F], F]:
        """Declare the decorated function to be the handler of a POST."""
        return self._declare("POST", path, needs)

    def _declare(self, method: str, path: str, needs: Needed | str) -> Callable[[F], F]:
        roles.PAGES[f"{method} {self._router.prefix}{path}"] = needs
        return self._router.api_route(path, methods=[method])


class Section(BaseRoute):
    """Routes that are created on first use and matched in order. begins: the prefixes of their paths."""

    def __init__(self, begins: Iterable[str], make: Callable[[], Iterable[BaseRoute]]) -> None:
        self._begins = tuple(begins)
        self._make = make

    @cached_property
    def routes(self) -> tuple[BaseRoute, ...]:
        """All routes. Raises ValueError for a route without a declared role, or that does not check it."""
        routes = tuple(self._make())
        roles.check_all(routes, permitted)
        return routes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See ``starlette.routing.BaseRoute``."""
        best: tuple[Match, Scope] = (Match.NONE, {})
        if scope["type"] == "http" and scope["path"].startswith(self._begins):
            for route in self.routes:
                match, child = route.matches(scope)
                if match is Match.FULL:
                    return match, child
                if match is Match.PARTIAL and best[0] is Match.NONE:
                    best = match, child
        return best

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ``starlette.routing.BaseRoute``."""
        await scope["route"].handle(scope, receive, send)  # set by FastAPI's routes when they match


@dataclass(frozen=True, eq=False, slots=True)
class Body:
    """How a request's body, a JSON object, is read: parsed strictly, and validated in a worker thread."""

    schema: str
    """Its name in the document, described by ``model`` or by the document itself."""
    parse: Callable[[Mapping[str, object]], object]
    """Returns its value, or a list of what is wrong with it."""
    examples: Mapping[str, object]
    """By name; a test executes each."""
    model: type[BaseModel] | None = None
    required: bool = True
    """Whether it may be missing, which means the same as an empty object."""

    @property
    def dependency(self) -> Any:
        """The dependency that returns its value. Raises Invalid."""
        return Depends(self._value if self.required else self._optional)

    def _value(self, document: JsonObject) -> object:
        value = self.parse(document)
        if isinstance(value, list):
            raise Invalid.of(value, listed=_MAX_LISTED)
        return value

    def _optional(self, document: OptionalJsonObject) -> object:
        return self._value(document or {})


def body_of(parameter: Parameter) -> Body | None:
    """Return how the parameter is read from the body; None if it is sent elsewhere."""
    match parameter.sent_as:
        case TaskDocument(examples):
            return Body("TaskDocument", parse_task, examples)
        case CardDocument(examples):
            return Body(Card.__name__, read_card, examples, Card)
        case JsonBody(examples):
            return _shape_body(shape_of(parameter.type), examples, parameter.default is inspect.Parameter.empty)
        case JsonField(shape, examples, required):
            return _shape_body(shape, examples, required)
    return None


def _is_ambiguous(parameter: Parameter) -> bool:
    return isinstance(parameter.sent_as, InPath) and parameter.sent_as.ambiguous


def _shape_body(shape: type[BaseModel], examples: Mapping[str, object], required: bool) -> Body:
    def parse(document: Mapping[str, object]) -> object:
        # Odd values first: the validation could fail on the text that it has to report.
        return value_problems(document, {}, model=shape) or validate(shape, document, {})

    return Body(shape.__name__, parse, examples, shape, required)


def shape_of(kind: Any) -> type[BaseModel]:
    """Return the model of a type, also of an optional one."""
    shape: type[BaseModel] = next((part for part in get_args(kind) if part is not type(None)), kind)
    return shape


def access_of(request: Request) -> Access:
    """Return the services, not yet bound to a principal."""
    access: Access = request.app.state.access
    return access


async def _allowed(request: Request, by: Asking) -> Session:
    return access_of(request).as_(by)


Allowed = Annotated[Session, Depends(_allowed)]
"""The services, bound to the principal of the request."""


class Operations:
    """The operations of one resource."""

    def __init__(self, tag: str) -> None:
        """tag: of the operations in the document."""
        self._tag = tag
        self._declared: list[tuple[Operation, Callable[[], APIRoute]]] = []

    @property
    def section(self) -> Section:
        """The routes for an application, created when one of them is first requested."""
        return Section({declared.path.partition("{")[0] for declared, _ in self._declared}, lambda: self.routes)

    @cached_property
    def routes(self) -> tuple[APIRoute, ...]:
        """The routes, in order of declaration."""
        return tuple(make() for _, make in self._declared)

    @property
    def bodies(self) -> list[type[BaseModel]]:
        """The shapes of the request bodies."""
        read = (body_of(parameter) for declared, _ in self._declared for parameter in declared.parameters)
        return [body.model for body in read if body is not None and body.model is not None]

    def operation(
        self, declared: Operation, responses: Mapping[int | str, dict[str, Any]] | None = None, **options: Any
    ) -> Callable[[F], F]:
        """Have the decorated function serve the declared operation.

        responses: other answers than the declaration has. options: for FastAPI. Raises ValueError for an id that is
        taken.
        """
        roles.declare(declared.id, declared.needs)
        body = next(filter(None, map(body_of, declared.parameters)), None)

        def make(handler: Callable[..., Any]) -> APIRoute:
            sent = {type(parameter.sent_as) for parameter in declared.parameters}
            implied = {
                415: body is not None,
                404: "{" in declared.path,
                412: IfVersion in sent,
                409: IdempotencyKey in sent or any(_is_ambiguous(parameter) for parameter in declared.parameters),
            }
            # Without 422, FastAPI would describe its own answer, which is never sent.
            refused = {422, *declared.refuses, *(status for status, is_so in implied.items() if is_so)}
            return APIRoute(
                declared.path,
                handler,
                methods=[declared.method],
                dependencies=[*GUARDS],
                operation_id=declared.id,
                summary=declared.summary,
                tags=[self._tag],
                status_code=declared.status,
                responses={**refusals(refused), **self._answers(declared), **(responses or {})},
                openapi_extra=None
                if body is None
                else request_body(body.schema, required=body.required, examples=body.examples),
                **options,
            )

        def declare(handler: F) -> F:
            self._declared.append((declared, partial(make, handler)))
            return handler

        return declare

    def _answers(self, declared: Operation) -> dict[int | str, dict[str, Any]]:
        """Return what the document says about the answers in addition to their shapes."""
        created = {"description": f"URL of the {self._tag.removesuffix('s')}", "schema": {"type": "string"}}
        headers = {} if declared.location is None else {"Location": created | {"required": True}}
        answer = {
            "description": declared.answer_note,
            "headers": headers | (ETAG_HEADER if declared.tagged else {}),
            "links": None if declared.links is None else _linked(declared.links),
        }
        answers: dict[int | str, dict[str, Any]] = {
            declared.status: {key: value for key, value in answer.items() if value}
        }
        if (streamed := declared.streamed) is not None:
            answers[200] = {"content": stream_response(streamed.description, streamed.example)}
        if declared.conditional:
            answers[304] = NOT_MODIFIED
        answers |= {status: {"model": declared.answer, "description": words} for status, words in declared.also.items()}
        return {status: answer for status, answer in answers.items() if answer}


def _linked(links: Links) -> dict[str, Any]:
    """Return what may be asked next, by name, with a part of the answer as a parameter."""
    return {
        name: {"operationId": name, "parameters": {links.parameter: links.expression}, "description": description}
        for name, description in links.operations.items()
    }
