"""One operation of the API, declared once, next to its handler: method and path, required role, parameters and answer.
The OpenAPI document, the table of roles and the reference page follow from it.

A handler's parameters say the rest: a ``body`` is read and validated before the call, and adds 415; ``IfMatch`` adds
412, ``IdempotencyKey`` 409, ``Tagged`` an ETag.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Annotated, Any, Final, Generic, TypeVar, get_args

from fastapi import APIRouter, Depends, Request, Response
from fastapi.params import Depends as Dependency
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from claudomator_py.api.conditional import (
    ETAG_HEADER,
    NOT_MODIFIED,
    Tags,
    etag,
    request_key,
    set_etag,
    versions_to_match,
)
from claudomator_py.api.guard import roles
from claudomator_py.api.guard.roles import Asking, permitted
from claudomator_py.api.openapi import refusals, request_body
from claudomator_py.api.request import JsonObject, OptionalJsonObject, strict_query
from claudomator_py.api.streams import stream_response
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.resources.channels import ChannelView
from claudomator_py.resources.session import Access, Session
from claudomator_py.resources.specialists import SpecialistView
from claudomator_py.resources.tasks import TaskView
from claudomator_py.schema.cardfile import read_card
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.schema.validation import odd_values, validate
from claudomator_py.surface import Links, Needed, Operation

R = TypeVar("R")
V = TypeVar("V", TaskView, SpecialistView, ChannelView)
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


class Body(Generic[R]):
    """A JSON object that a request must have, as a dependency: parsed strictly, and validated in a worker thread.

    schema: its name in the document, described by ``model`` or by the document itself. parse: returns its value, or
    what is wrong with it. examples: by name; a test executes each.
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
        """Return its value. Raises Invalid."""
        return self._checked(document)

    def _checked(self, document: Mapping[str, object]) -> R:
        body = self._parse(document)
        if isinstance(body, list):
            raise Invalid.of(body, listed=_MAX_LISTED)
        return body


class OptionalBody(Body[R]):
    """A body that may be missing, which means the same as an empty object."""

    required = False

    def __call__(self, document: OptionalJsonObject) -> R:
        """Return its value. Raises Invalid."""
        return self._checked(document or {})


def body(model: type[BaseModel], *, required: bool = False, **examples: object) -> Any:
    """Return the annotation of a parameter that is the request's body: ``Annotated[Shape, body(Shape)]``. examples: by
    name."""

    def parse(document: Mapping[str, object]) -> BaseModel | list[Problem]:
        # Odd values first: the validation could fail on the text that it has to report.
        return odd_values(document, {}, model=model) or validate(model, document, {})

    kind: type[Body[BaseModel]] = Body if required else OptionalBody
    return Depends(kind(model.__name__, parse, examples, model))


def card_document(**examples: object) -> Any:
    """Return the annotation of a parameter that is the request's body in the form of a card file. examples: by name."""
    return Depends(Body(Card.__name__, read_card, examples, Card))


def task_document(**examples: object) -> Any:
    """Return the annotation of a parameter that is the request's body in the form of a task file. examples: by name."""
    return Depends(Body("TaskDocument", parse_task, examples))


def access_of(request: Request) -> Access:
    """Return the services, not yet bound to a principal."""
    access: Access = request.app.state.access
    return access


async def _allowed(request: Request, by: Asking) -> Session:
    return access_of(request).as_(by)


Allowed = Annotated[Session, Depends(_allowed)]
"""The services, bound to the principal of the request."""


class Tagging:
    """Adds the version of what is answered to the response."""

    def __init__(self, response: Response) -> None:
        self._response = response

    def __call__(self, view: V) -> V:
        set_etag(self._response, view.version)
        return view

    def unless(self, seen: Tags | None, view: V) -> V | Response:
        """Return the view, or 304 if the client has that version."""
        if seen is not None and seen.matches(view.version):
            return Response(status_code=304, headers={"ETag": etag(view.version)})
        return self(view)


def _tagging(response: Response) -> Tagging:
    return Tagging(response)


Tagged = Annotated[Tagging, Depends(_tagging)]
"""Adds the version of what is answered to the response; call it with the view."""

_REFUSES: Final[dict[Any, int]] = {versions_to_match: 412, request_key: 409}


class Operations:
    """The operations of one resource."""

    def __init__(self, tag: str) -> None:
        """tag: of the operations in the document."""
        self._tag = tag
        self._declared: list[tuple[str, Callable[..., Any], Callable[[], APIRoute]]] = []

    @property
    def section(self) -> Section:
        """The routes for an application, created when one of them is first requested."""
        return Section({path.partition("{")[0] for path, _, _ in self._declared}, lambda: self.routes)

    @cached_property
    def routes(self) -> tuple[APIRoute, ...]:
        """The routes, in order of declaration."""
        return tuple(make() for _, _, make in self._declared)

    @property
    def bodies(self) -> list[type[BaseModel]]:
        """The shapes of the request bodies."""
        taken = (dependency for _, handler, _ in self._declared for dependency in _dependencies(handler))
        return [
            dependency.model for dependency in taken if isinstance(dependency, Body) and dependency.model is not None
        ]

    def operation(
        self, declared: Operation, responses: Mapping[int | str, dict[str, Any]] | None = None, **options: Any
    ) -> Callable[[F], F]:
        """Have the decorated function serve the declared operation.

        responses: other answers than the declaration has. options: for FastAPI. Raises ValueError for an id that is
        taken.
        """
        roles.declare(declared.id, declared.needs)

        def make(handler: Callable[..., Any]) -> APIRoute:
            taken = list(_dependencies(handler))
            bodies = [dependency for dependency in taken if isinstance(dependency, Body)]
            # Without 422, FastAPI would describe its own answer, which is never sent.
            refused = {422, *declared.refuses, *(415 for _ in bodies), *((404,) if "{" in declared.path else ())}
            refused |= {_REFUSES[dependency] for dependency in taken if dependency in _REFUSES}
            return APIRoute(
                declared.path,
                handler,
                methods=[declared.method],
                dependencies=[*GUARDS],
                operation_id=declared.id,
                summary=declared.summary,
                tags=[self._tag],
                status_code=declared.status,
                responses={**refusals(refused), **self._answers(declared, _tagging in taken), **(responses or {})},
                openapi_extra=request_body(bodies[0].schema, required=bodies[0].required, examples=bodies[0].examples)
                if bodies
                else None,
                **options,
            )

        def declare(handler: F) -> F:
            self._declared.append((declared.path, handler, partial(make, handler)))
            return handler

        return declare

    def _answers(self, declared: Operation, is_tagged: bool) -> dict[int | str, dict[str, Any]]:
        """Return what the document says about the answers in addition to their shapes."""
        created = {"description": f"URL of the {self._tag.removesuffix('s')}", "schema": {"type": "string"}}
        headers = {} if declared.location is None else {"Location": created | {"required": True}}
        answer = {
            "description": declared.answer_note,
            "headers": headers | (ETAG_HEADER if is_tagged else {}),
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


def _dependencies(handler: Callable[..., Any]) -> Iterator[Any]:
    for parameter in inspect.signature(handler).parameters.values():
        for arg in get_args(parameter.annotation)[1:]:
            if isinstance(arg, Dependency):
                yield arg.dependency
