"""/sessions: the browsers that are logged in, with a button to log out everywhere."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.credentials import SessionId, named, seen_by, views_of
from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.page.login import Entrance, logged_out
from claudomator_py.api.page.rendering import render
from claudomator_py.api.section import guarded


def router(entrance: Entrance) -> APIRouter:
    """The routes."""
    routes = guarded("/sessions")
    sessions = entrance.sessions

    @routes.get("")
    def show(by: Asking, request: Request) -> Response:
        found = views_of(seen_by(sessions, by), request)
        return render(
            "sessions.html", {"sessions": found, "strangers": any(one.principal != by.id for one in found)}, by=by
        )

    @routes.post("/end")
    def end_all(by: Asking) -> Response:
        sessions.end([one.id for one in seen_by(sessions, by)], by.id)
        return logged_out(entrance)

    @routes.post("/{session_id}/end")
    def end(by: Asking, request: Request, session_id: SessionId) -> Response:
        found = named(sessions, by, session_id)
        sessions.end([found.id], by.id)
        return logged_out(entrance) if found.id == request.state.session else RedirectResponse("/sessions", 303)

    return routes
