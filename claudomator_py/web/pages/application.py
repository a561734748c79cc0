"""The pages' part of the application."""

from fastapi import FastAPI

from claudomator_py.service.desk.desk import Desk
from claudomator_py.web.login_codes import LoginCodes
from claudomator_py.web.pages import errors, front, inputs, login, schedules, selection, static, tasks
from claudomator_py.web.sessions import Sessions


def install(app: FastAPI, desk: Desk, sessions: Sessions, codes: LoginCodes, cookie: str) -> None:
    """Add the pages. To be called after everything of the API. cookie: the name of the session's."""
    for page in (front, tasks, inputs, schedules, selection):
        app.include_router(page.router(desk))
    app.include_router(login.router(sessions, codes, cookie))
    app.include_router(static.router())
    errors.install(app)
