"""The routes of all pages."""

from contextlib import suppress
from functools import cache

from starlette.routing import BaseRoute

from claudomator_py.api.page import front, selection, tasks, writing
from claudomator_py.api.page.rendering import compile_templates, static_files
from claudomator_py.domain.errors import ServiceError
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.resources.access import page as login
from claudomator_py.resources.agents import page as agents
from claudomator_py.resources.branches import page as branches
from claudomator_py.resources.channels import page as channels
from claudomator_py.resources.decisions import page as decisions
from claudomator_py.resources.notifications import page as notices
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.policy import page as policy
from claudomator_py.resources.report import night_page as night
from claudomator_py.resources.report import page as report
from claudomator_py.resources.report.night import Nights
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.routing import page as routing
from claudomator_py.resources.schedules import page as schedules
from claudomator_py.resources.session import Access
from claudomator_py.resources.specialists import page as specialists

_PAGES = (
    front,
    agents,
    branches,
    report,
    night,
    tasks,
    writing,
    schedules,
    notices,
    selection,
    specialists,
    channels,
    routing,
    decisions,
    policy,
)
"""Modules with a router, apart from the login's."""


def routes(access: Access, entrance: login.Entrance) -> list[BaseRoute]:
    """Return the routes of all pages, which come after those of the API."""
    routers = [*(page.router(access) for page in _PAGES), login.router(entrance, cache(lambda: _prepare(access)))]
    return [route for router in (*routers, static_files()) for route in router.routes]


def _prepare(access: Access) -> None:
    """Compile all templates, and the statements of the pages that a person opens first."""
    compile_templates()
    granted = access.as_(OPERATOR)
    with suppress(ServiceError, KeyError):  # whoever asks for the page is told; KeyError: an application of a few pages
        granted[Overview].status(front.SHOWN)
        now_ms = granted[Nights].now_ms()
        granted[Nights].night(now_ms - night.DEFAULT_HOURS * HOUR_MS, now_ms)
        granted[Reports].report()
