"""Serve the operations that are declared as client calls (``surface/__init__.py``) with the methods of a service."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_type_hints

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel

from claudomator_py.api.conditional import IdempotencyKey as RequestKeyHeader
from claudomator_py.api.conditional import IfMatch, IfNoneMatch, Tags, etag
from claudomator_py.api.guard.without_secrets import UNFILTERED
from claudomator_py.api.operation import Allowed, Operations, body_of, shape_of
from claudomator_py.api.request import DIGITS
from claudomator_py.resources.session import Service
from claudomator_py.surface import (
    IdempotencyKey,
    IfVersion,
    InPath,
    InQuery,
    Operation,
    Parameter,
    QueryFields,
    answered_by,
    operations_of,
)

_BY_NAME = (InQuery, IdempotencyKey, IfVersion)
"""Parameters that a service's method takes by keyword; the others are positional, in the order of the call."""


def serve(tag: str, service: type[Service] | Callable[..., Any], calls: type) -> Operations:
    """Return the operations that a class declares, each served by the service's method for it.

    tag: of the operations in the document. service: the class that answers, or a dependency that returns one. Its
    methods take the parameters of the calls, the idempotency key as ``key`` and the versions that may be changed as
    ``versions``. Raises TypeError for a method that does not take them, and LookupError for a missing one.
    """
    operations = Operations(tag)
    answering = service if isinstance(service, type) else get_type_hints(service)["return"]
    methods = answered_by(answering)
    for declared in operations_of(calls):
        if declared.id not in methods:
            raise LookupError(f"no method of {answering.__name__} answers {declared.id}")
        handler = _handler(declared, service, methods[declared.id])
        operations.operation(declared, response_model=declared.answer)(handler)
    return operations


def _handler(
    declared: Operation, service: type[Service] | Callable[..., Any], method: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the route handler of an operation, with the parameters of the call."""
    taken = [(parameter, *taken_from(parameter)) for parameter in declared.parameters]
    in_order = [name for parameter, name, _ in taken if not isinstance(parameter.sent_as, _BY_NAME)]
    by_name = [name for parameter, name, _ in taken if isinstance(parameter.sent_as, _BY_NAME)]
    inspect.signature(method).bind(None, *in_order, **dict.fromkeys(by_name))

    def handler(*, own_asker: Any, own_request: Request, own_response: Response, **given: Any) -> Any:
        seen: Tags | None = given.pop("if_none_match", None)
        bound = own_asker[service] if isinstance(service, type) else own_asker
        answer = method(bound, *map(given.get, in_order), **{name: given[name] for name in by_name})
        if declared.secret:
            setattr(own_request.state, UNFILTERED, True)
        if declared.location is not None:
            own_response.headers["Location"] = declared.location.format_map(dict(answer))
        if declared.tagged:
            if seen is not None and seen.matches(answer.version):
                return Response(status_code=304, headers={"ETag": etag(answer.version)})
            own_response.headers["ETag"] = etag(answer.version)
            return answer
        return declared.answer(items=tuple(answer)) if declared.listed and declared.answer is not None else answer

    asks = Allowed if isinstance(service, type) else Annotated[Any, Depends(service)]
    # Prefixed, so that they collide with no operation's parameters.
    parameters: dict[str, Any] = {"own_asker": asks, "own_request": Request, "own_response": Response}
    parameters |= {name: annotation for _, name, annotation in taken}
    if declared.conditional:
        parameters["if_none_match"] = IfNoneMatch
    defaults = {name: parameter.default for parameter, name, _ in taken if isinstance(parameter.sent_as, InQuery)}
    keyword, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    handler.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by FastAPI
        [
            inspect.Parameter(name, keyword, annotation=annotation, default=defaults.get(name, empty))
            for name, annotation in parameters.items()
        ],
        return_annotation=declared.answer,
    )
    handler.__doc__ = declared.description
    return handler


def taken_from(parameter: Parameter) -> tuple[str, Any]:
    """Return the name and annotation by which FastAPI finds the parameter."""
    name, kind = parameter.name, parameter.type
    if (body := body_of(parameter)) is not None:
        return name, Annotated[body.model or kind, body.dependency]
    match parameter.sent_as:
        case InPath(description, most) if kind is int:
            return name, Annotated[kind, Path(ge=1, le=most or 2**53, description=description), DIGITS]
        case InPath(description, most):
            return name, Annotated[kind, Path(max_length=most or 128, description=description)]
        case InQuery(description, least, most) if int in (kind, *get_args(kind)):
            return name, Annotated[kind, Query(ge=least, le=most, description=description), DIGITS]
        case InQuery(description, least, most):
            return name, Annotated[kind, Query(min_length=least, max_length=most, description=description)]
        case QueryFields():
            return name, Annotated[kind, Depends(_query_reader(shape_of(kind)))]
        case IdempotencyKey():
            return "key", RequestKeyHeader
        case IfVersion():
            return "versions", IfMatch
    raise TypeError(f"{name} is read from no part of a request")


def _query_reader(shape: type[BaseModel]) -> Callable[..., BaseModel]:
    """Return the dependency that reads a model from query parameters."""

    def reader(**given: Any) -> BaseModel:
        return shape(**given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    reader.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by FastAPI
        [
            inspect.Parameter(
                name,
                keyword,
                annotation=Annotated[(field.annotation, Query(description=field.description), *field.metadata)],
                default=field.default,
            )
            for name, field in shape.model_fields.items()
        ]
    )
    return reader
