"""The operator's page: rendered on the server, live through event streams, and usable without scripts."""

from importlib import import_module
from pkgutil import walk_packages

from starlette.routing import BaseRoute

from claudomator_py import resources

_OWN = ("front", "selection", "tasks", "writing", "rendering")


def routes() -> list[BaseRoute]:
    """Return the routes of all pages: those here, and those of each resource's modules named ``page`` or ``..._page``,
    which are imported."""
    modules = walk_packages(resources.__path__, f"{resources.__name__}.")
    pages = [module.name for module in modules if module.name.endswith("page")]
    return [
        route
        for name in (*(f"{__name__}.{name}" for name in _OWN), *pages)
        for route in import_module(name).routes.routes
    ]
