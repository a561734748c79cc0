"""The routes of all pages."""

from starlette.routing import BaseRoute

from claudomator_py.api.page import front, selection, tasks, writing
from claudomator_py.api.page.rendering import static_files
from claudomator_py.resources.access import page as login
from claudomator_py.resources.agents import page as agents
from claudomator_py.resources.branches import page as branches
from claudomator_py.resources.channels import page as channels
from claudomator_py.resources.decisions import page as decisions
from claudomator_py.resources.notifications import page as notices
from claudomator_py.resources.policy import page as policy
from claudomator_py.resources.report import night_page as night
from claudomator_py.resources.report import page as report
from claudomator_py.resources.routing import page as routing
from claudomator_py.resources.schedules import page as schedules
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
    login,
)
ROUTES: list[BaseRoute] = [route for page in _PAGES for route in page.routes.routes] + static_files.routes
"""The routes of all pages, which come after those of the API."""
