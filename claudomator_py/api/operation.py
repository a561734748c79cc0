"""One operation of the API, declared once and next to its handler: method and path, who may do it, what it takes and
answers. The OpenAPI document, the table of roles and the page of the reference follow from that.

What a handler takes says the rest: a ``body`` is read and checked before it is called, and 415 announced; ``IfMatch``
means 412, ``IdempotencyKey`` 409, ``Tagged`` an ETag.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property, partial
from typing import Annotated, Any, Final, Generic, TypeVar, get_args

from fastapi import APIRouter, Depends, Request, Response
from fastapi.params import Depends as Dependency
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from claudomator_py.api.conditional import ETAG_HEADER, Tags, etag, request_key, set_etag, versions_to_match
from claudomator_py.api.guard import roles
from claudomator_py.api.guard.roles import Asking, permitted
from claudomator_py.api.openapi import refusals, request_body
from claudomator_py.api.request import JsonObject, OptionalJsonObject, strict_query
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.resources.channels import ChannelView
from claudomator_py.resources.session import Access, Session
from claudomator_py.resources.specialists import SpecialistView
from claudomator_py.resources.tasks import TaskView
from claudomator_py.schema.cardfile import read_card
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.schema.validation import odd_values, validate
from claudomator_py.surface.operation import Needed

R = TypeVar("R")
V = TypeVar("V", TaskView, SpecialistView, ChannelView)
F = TypeVar("F", bound=Callable[..., Any])

_SAID = 3
"""Problems that a refusal has in its ``detail``; ``problems`` has them all."""
GUARDS: Final = (Depends(permitted), Depends(strict_query))
"""What every route asks first."""


def guarded(prefix: str = "") -> APIRouter:
    """Make a router for routes that are not in the document of the API."""
    return APIRouter(prefix=prefix, include_in_schema=False, dependencies=[*GUARDS, Depends(_accessible)])


class Section(BaseRoute):
    """Routes that are matched in their order, as those of an application are. begins: what their paths begin with."""

    def __init__(self, begins: Iterable[str], make: Callable[[], Iterable[BaseRoute]]) -> None:
        self._begins = tuple(begins)
        self._make = make

    @cached_property
    def routes(self) -> tuple[BaseRoute, ...]:
        """All of them. Raises ValueError for one about which nobody has said who may use it, or that does not ask."""
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
        await scope["route"].handle(scope, receive, send)  # which a route of FastAPI names where it matches


class Body(Generic[R]):
    """A JSON object that a request has to have, as a dependency: read strictly, and checked in a worker thread.

    schema: its name in the document, where ``model`` describes it, or the document does by itself. parse: its value, or
    what is wrong with it. examples: by name; each is executed by a test.
    """

    required: bool = True

    def __init__(
        self,
        schema: str,
        parse: Callable[[Mapping[str, object]], R | list[Problem]],
        examples: Mapping[str, object],
        model: type[BaseModel] | None = None,
    ) -> None:
        self.schema = schema
        self.model = model
        self.examples = examples
        self._parse = parse

    def __call__(self, document: JsonObject) -> R:
        """Its value. Raises Invalid."""
        return self._checked(document)

    def _checked(self, document: Mapping[str, object]) -> R:
        found = self._parse(document)
        if isinstance(found, list):
            raise Invalid.of(found, said=_SAID)
        return found


class OptionalBody(Body[R]):
    """One that may be missing, which says the same as an empty object."""

    required = False

    def __call__(self, document: OptionalJsonObject) -> R:
        """Its value. Raises Invalid."""
        return self._checked(document or {})


def body(model: type[BaseModel], *, required: bool = False, **examples: object) -> Any:
    """Return what makes a parameter the request's body: ``Annotated[Shape, body(Shape)]``. examples: by name."""

    def parse(document: Mapping[str, object]) -> BaseModel | list[Problem]:
        # Odd values first: what is no text would stop the run that is to be told it.
        return odd_values(document, {}, model=model) or validate(model, document, {})

    kind: type[Body[BaseModel]] = Body if required else OptionalBody
    return Depends(kind(model.__name__, parse, examples, model))


def card_document(**examples: object) -> Any:
    """Return what makes a parameter the request's body, as a card file would write it. examples: by name."""
    return Depends(Body(Card.__name__, read_card, examples, Card))


def task_document(**examples: object) -> Any:
    """Return what makes a parameter the request's body, as a task file would write it. examples: by name."""
    return Depends(Body("TaskDocument", parse_task, examples))


ACCESS: Final[ContextVar[Access | None]] = ContextVar("access", default=None)
"""What a page can be told by whatever it is about, such as whether the daemon is drained: set for its request."""


async def _accessible(request: Request) -> None:
    ACCESS.set(access_of(request))


def access_of(request: Request) -> Access:
    """Return the service, for whoever it is that asks."""
    access: Access = request.app.state.access
    return access


async def _allowed(request: Request, by: Asking) -> Session:
    return access_of(request).as_(by)


Allowed = Annotated[Session, Depends(_allowed)]
"""The service as the principal of the request may use it."""


class Tagging:
    """Lets an answer carry the version of what is answered."""

    def __init__(self, response: Response) -> None:
        self._response = response

    def __call__(self, view: V) -> V:
        set_etag(self._response, view.version)
        return view

    def unless(self, seen: Tags | None, view: V) -> V | Response:
        """Return the same, or 304 where whoever asks has seen that version."""
        if seen is not None and seen.matches(view.version):
            return Response(status_code=304, headers={"ETag": etag(view.version)})
        return self(view)


def _tagging(response: Response) -> Tagging:
    return Tagging(response)


Tagged = Annotated[Tagging, Depends(_tagging)]
"""Lets the answer carry the version of what is answered; to be called with that."""

_REFUSES: Final[dict[Any, int]] = {versions_to_match: 412, request_key: 409}


def location(description: str) -> dict[str, Any]:
    """Return the header that says where the thing is that was made."""
    return {"Location": {"description": description, "schema": {"type": "string"}, "required": True}}


def links(parameter: str, expression: str, **operations: str) -> dict[str, Any]:
    """Return links by name: what may be asked next, with a part of this answer as its parameter."""
    return {
        name: {"operationId": name, "parameters": {parameter: expression}, "description": description}
        for name, description in operations.items()
    }


class Operations:
    """The operations of one resource."""

    def __init__(self, tag: str) -> None:
        """tag: under which the document lists them, unless one says another."""
        self._tag = tag
        self._declared: list[tuple[str, Callable[..., Any], Callable[[], APIRoute]]] = []

    @property
    def section(self) -> Section:
        """They, for an application: made when a request for one of them comes."""
        return Section({path.partition("{")[0] for path, _, _ in self._declared}, lambda: self.routes)

    @cached_property
    def routes(self) -> tuple[APIRoute, ...]:
        """They, in the order in which they were declared."""
        return tuple(make() for _, _, make in self._declared)

    @property
    def bodies(self) -> list[type[BaseModel]]:
        """The shapes of what their requests have in them."""
        taken = (one for _, handler, _ in self._declared for one in _dependencies(handler))
        return [one.model for one in taken if isinstance(one, Body) and one.model is not None]

    def operation(
        self,
        route: str,
        name: str,
        needs: Needed,
        summary: str,
        *,
        tag: str | None = None,
        status: int = 200,
        refuses: Sequence[int] = (),
        told: str | None = None,
        headers: Mapping[str, Any] | None = None,
        links: Mapping[str, Any] | None = None,
        responses: dict[int | str, dict[str, Any]] | None = None,
        **options: Any,
    ) -> Callable[[F], F]:
        """Declare the function below it to be the operation ``name``, its id.

        route: method and path, such as ``GET /v1/tasks``. needs: who may do it. status: of the answer. refuses: what
        may be answered instead, besides what its parameters mean and every operation may answer. told, headers, links:
        what is said of the answer besides its shape. responses: other answers. options: for FastAPI. Raises ValueError
        for a name that is taken.
        """
        roles.declare(name, needs)
        method, path = route.split(" ")

        def make(handler: F) -> APIRoute:
            taken = list(_dependencies(handler))
            bodies = [one for one in taken if isinstance(one, Body)]
            # Without 422, FastAPI would describe its own answer, which is not sent.
            refused = {422, *refuses, *(_REFUSES[one] for one in taken if one in _REFUSES), *(415 for _ in bodies)}
            shown = {**(headers or {}), **(ETAG_HEADER if _tagging in taken else {})}
            said = {"description": told, "headers": shown, "links": links}
            answer = {key: value for key, value in said.items() if value}
            return APIRoute(
                path,
                handler,
                methods=[method],
                dependencies=[*GUARDS],
                operation_id=name,
                summary=summary,
                tags=[tag or self._tag],
                status_code=status,
                responses={**refusals(refused), **({status: answer} if answer else {}), **(responses or {})},
                openapi_extra=request_body(bodies[0].schema, required=bodies[0].required, examples=bodies[0].examples)
                if bodies
                else None,
                **options,
            )

        def declare(handler: F) -> F:
            self._declared.append((path, handler, partial(make, handler)))
            return handler

        return declare


def _dependencies(handler: Callable[..., Any]) -> Iterator[Any]:
    for parameter in inspect.signature(handler).parameters.values():
        for one in get_args(parameter.annotation)[1:]:
            if isinstance(one, Dependency):
                yield one.dependency
