"""/v1/sessions: the browsers that are logged in, and logging them out."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Request

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.guard.sessions import Sessions
from claudomator_py.api.openapi import problems
from claudomator_py.domain.errors import NotFound
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.views import Page, SessionView
from claudomator_py.store.tables import BrowserSession

SessionId = Annotated[str, Path(max_length=128, description="A session's id.")]


def router(sessions: Sessions) -> APIRouter:
    """The routes, on these sessions."""
    routes = APIRouter(prefix="/v1/sessions", tags=["login"])

    @routes.get("", operation_id="listSessions", summary="The browsers that are logged in, the last used first")
    def list_sessions(by: Asking, request: Request) -> Page[SessionView]:
        """Those of who asks; of everybody for an administrator of the whole daemon."""
        return Page[SessionView](items=views_of(seen_by(sessions, by), request))

    @routes.delete("", operation_id="endSessions", summary="Log out everywhere", responses=problems(429, 503))
    def end_all(by: Asking, request: Request) -> Page[SessionView]:
        """End all sessions that who asks can see, at once, with their event streams; the answer has what has ended."""
        ended = seen_by(sessions, by)
        told = views_of(ended, request)
        sessions.end([one.id for one in ended], by.id)
        return Page[SessionView](items=told)

    @routes.delete(
        "/{session_id}",
        operation_id="endSession",
        summary="Log one browser out",
        responses=problems(404, 422, 429, 503),
    )
    def end(by: Asking, request: Request, session_id: SessionId) -> SessionView:
        """At once, with its event streams."""
        found = named(sessions, by, session_id)
        (told,) = views_of([found], request)
        sessions.end([found.id], by.id)
        return told

    return routes


def seen_by(sessions: Sessions, by: Principal) -> list[BrowserSession]:
    """The sessions that concern the principal, the last used first."""
    whole = by.role is Role.ADMIN and by.organisation is None
    return [one for one in sessions.all() if whole or one.principal == by.id]


def named(sessions: Sessions, by: Principal, session_id: str) -> BrowserSession:
    """The session of that id. Raises NotFound."""
    found = next((one for one in seen_by(sessions, by) if one.id == session_id), None)
    if found is None:
        raise NotFound("There is no such session, or it has ended.", remedy="List them: claudomator sessions list")
    return found


def views_of(found: Sequence[BrowserSession], request: Request) -> tuple[SessionView, ...]:
    """As the API tells of them. request: what asks; its own session is marked."""
    return tuple(SessionView.of(one, current=one.id == request.state.session) for one in found)
