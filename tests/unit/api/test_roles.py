"""Roles at the door: what the table does not name, or nobody asks for, is refused whatever else goes wrong."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route

from claudomator_py.api.app import RESOURCES, create_app
from claudomator_py.api.guard import roles
from claudomator_py.api.guard.roles import PAGES, declare, may, may_post, needed_by, not_permitted, permitted
from claudomator_py.api.operation import Operations, Section
from claudomator_py.api.page import routes
from claudomator_py.api.problem import Refused
from claudomator_py.api.settings import MIN_TOKEN_LENGTH, WebSettings
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.resources.access.service import Keyring
from claudomator_py.resources.session import Access
from claudomator_py.surface import ADMIN_WHOLE, OPEN, OPERATE, OPERATE_OWN, READ, READ_WHOLE, Needed, Operation


@pytest.fixture(autouse=True, scope="module")
def _pages() -> None:
    """Import the pages, which declare their addresses: another test in this process may not have done so."""
    routes()


def application() -> FastAPI:
    app = FastAPI(openapi_url=None)

    @app.get("/v1/new", operation_id="isInNoTable")
    def new() -> None: ...

    return app


def test_routes_are_not_served_if_one_has_no_role() -> None:
    with pytest.raises(ValueError, match=r"routes without a role: GET /v1/new\Z"):
        assert Section(["/v1/"], lambda: application().routes).routes


def test_routes_are_not_served_if_one_does_not_ask_who_uses_it() -> None:
    unguarded = APIRoute("/v1/tasks", print, methods=["GET"], operation_id="listTasks")
    with pytest.raises(ValueError, match=r"routes that do not check the role: /v1/tasks\Z"):
        assert Section(["/v1/"], lambda: [*RESOURCES[0].routes, unguarded]).routes


def test_routes_are_not_served_if_one_is_of_a_kind_that_asks_nobody() -> None:
    open_to_all = Route("/v1/open", print)
    with pytest.raises(ValueError, match=r"routes without a role: Route\(path='/v1/open'"):
        assert Section(["/v1/"], lambda: [*RESOURCES[0].routes, open_to_all]).routes


def test_all_that_an_application_serves_asks_who_uses_it() -> None:
    absent = cast("Access", MagicMock(name="access"))
    keyless = cast("Keyring", MagicMock(name="keyring"))
    app = create_app(absent, WebSettings("x" * MIN_TOKEN_LENGTH, "127.0.0.1:8484"), keyless)
    sections = [route for route in app.routes if isinstance(route, Section)]
    served = [route for section in sections for route in section.routes if isinstance(route, APIRoute)]
    assert {f"{method} {route.path}" for route in served for method in route.methods or ()} > set(PAGES)
    # It says what there is, to anyone whose token is good.
    assert [getattr(route, "path", "") for route in app.routes if route not in sections] == ["/openapi.json"]


def page(path: str, method: str = "GET") -> APIRoute:
    served = [route for route in routes() if isinstance(route, APIRoute)]
    return next(route for route in served if route.path == path and method in (route.methods or ()))


def asked(route: BaseRoute, by: Principal | None) -> Request:
    """A GET of that route. by: None: nobody has said who sends it."""
    request = SimpleNamespace(scope={"route": route}, method="GET", state=SimpleNamespace(principal=by))
    return cast("Request", cast("Any", request))


def test_and_if_a_route_without_a_role_were_served_nobody_could_use_it() -> None:
    with pytest.raises(LookupError, match="/v1/new"):
        asyncio.run(permitted(asked(application().routes[-1], OPERATOR)))


def test_whoever_may_not_do_what_a_route_does_is_refused_and_one_that_is_open_asks_for_nobody() -> None:
    reader = Principal("reader", Role.READ)
    login, select = page("/login"), page("/select")
    for route, by in ((login, None), (login, reader), (select, OPERATOR)):
        asyncio.run(permitted(asked(route, by)))
    with pytest.raises(Refused, match="reader has the role read"):
        asyncio.run(permitted(asked(select, reader)))


def test_an_operation_cannot_be_declared_twice_with_roles_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="there are two operations getTask"):
        Operations("tasks").operation(Operation("getTask", "GET", "/v1/tasks/{ref}", OPEN, "Again"))
    monkeypatch.setattr(roles, "OPERATIONS", {})
    declare("getTask", READ)
    assert may(Principal("reader", Role.READ), "getTask")


@pytest.mark.parametrize(
    ("needed", "permitted"),
    [
        (OPEN, {"reader", "admin", "colleague", "run"}),
        (READ, {"reader", "admin", "colleague"}),
        (READ_WHOLE, {"reader", "admin"}),
        (ADMIN_WHOLE, {"admin"}),
        (OPERATE_OWN, {"admin", "colleague", "run"}),
    ],
)
def test_what_concerns_the_whole_daemon_is_for_no_organisation_and_a_run_does_only_what_says_so(
    needed: Needed, permitted: set[str]
) -> None:
    askers = {
        "reader": Principal("reader", Role.READ),
        "admin": OPERATOR,
        "colleague": Principal("colleague", Role.ADMIN, "acme"),
        "run": Principal("run:r-1", Role.RUN, run_id="r-1"),
    }
    assert {name for name, by in askers.items() if needed.permits(by)} == permitted


@pytest.mark.parametrize(
    ("by", "needed", "lacks"),
    [
        (
            Principal("run:r-1", Role.RUN, run_id="r-1"),
            READ,
            "token of a run may not do this: it requires the role read.",
        ),
        (Principal("reader", Role.READ), OPERATE, "reader has the role read, and this needs operate."),
        (Principal("colleague", Role.READ, "acme"), ADMIN_WHOLE, "colleague has the role read, and this needs admin."),
        (
            Principal("colleague", Role.ADMIN, "acme"),
            ADMIN_WHOLE,
            "belongs to acme, but this concerns the whole daemon.",
        ),
    ],
)
def test_whoever_is_refused_is_told_what_they_lack(by: Principal, needed: Needed, lacks: str) -> None:
    refused = not_permitted(by, needed)
    assert (refused.status, refused.code) == (403, "not_permitted")
    assert refused.detail.endswith(lacks)


@pytest.mark.parametrize(
    ("served", "operation"), [("GET /tasks/{ref}/cancel", "cancelTask"), ("POST /policy", "getPolicy")]
)
def test_a_page_needs_what_the_operation_behind_it_needs(served: str, operation: str) -> None:
    assert PAGES[served] == operation
    method, _, path = served.partition(" ")
    needed = needed_by(page(path, method), method)
    assert needed is not None
    reader = Principal("reader", Role.READ)
    assert (needed.permits(OPERATOR), needed.permits(reader)) == (may(OPERATOR, operation), may(reader, operation))


@pytest.mark.parametrize(
    ("address", "senders"),
    [
        ("/channels/c-1/join", {"operator"}),
        ("/agents/my%20agent/hold", {"operator"}),
        ("/routing", {"operator", "reader"}),
        ("/channels/c-1/join/more", set()),
        ("/decisions", set()),
    ],
)
def test_a_form_is_for_whoever_may_send_it_to_its_address(address: str, senders: set[str]) -> None:
    askers = (OPERATOR, Principal("reader", Role.READ))
    assert {by.id for by in askers if may_post(by, address)} == senders
