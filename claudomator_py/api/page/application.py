"""The pages' part of the application."""

from fastapi import FastAPI

from claudomator_py.api.page import (
    channels,
    decisions,
    errors,
    front,
    inputs,
    login,
    policy,
    routing,
    schedules,
    selection,
    sessions,
    specialists,
    static,
    tasks,
)
from claudomator_py.service.access import Access


def install(app: FastAPI, access: Access, entrance: login.Entrance) -> None:
    """Add the pages. To be called after everything of the API."""
    for page in (front, tasks, inputs, schedules, selection, specialists, channels, routing, decisions, policy):
        app.include_router(page.router(access))
    app.include_router(login.router(entrance))
    app.include_router(sessions.router(entrance))
    app.include_router(static.router())
    errors.install(app)
