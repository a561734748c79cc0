"""Roles at the door: what the table does not name, or nobody asks for, is refused whatever else goes wrong."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import FastAPI, Request

from claudomator_py.api.guard.asking import permitted
from claudomator_py.api.guard.roles import OPEN, check_all
from claudomator_py.api.operation import Operations
from claudomator_py.api.tasks import tasks
from claudomator_py.domain.principal import OPERATOR


def application() -> FastAPI:
    app = FastAPI(openapi_url=None)

    @app.get("/v1/new", operation_id="isInNoTable")
    def new() -> None: ...

    return app


def test_a_route_without_a_role_keeps_the_application_from_starting() -> None:
    with pytest.raises(ValueError, match=r"who may do this: GET /v1/new\Z"):
        check_all(application().routes)


def test_and_if_it_did_start_nobody_could_use_it() -> None:
    route = application().routes[-1]
    request = SimpleNamespace(scope={"route": route}, method="GET", state=SimpleNamespace(principal=OPERATOR))
    with pytest.raises(LookupError, match="/v1/new"):
        asyncio.run(permitted(cast("Request", cast("Any", request))))


def test_an_operation_cannot_be_declared_twice_with_roles_that_differ() -> None:
    assert tasks.router.routes
    with pytest.raises(ValueError, match="there are two operations getTask"):
        Operations("tasks").operation("GET /v1/tasks/{ref}", "getTask", OPEN, "Again")
