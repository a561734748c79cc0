"""/v1/backups: a copy of the database."""

from fastapi import APIRouter

from claudomator_py.api.guard.asking import Asking
from claudomator_py.api.openapi import problems
from claudomator_py.domain.views import BackupView
from claudomator_py.service.access import Access


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/v1/backups", tags=["backups"])

    @routes.post(
        "", status_code=201, operation_id="makeBackup", summary="Copy the database", responses=problems(429, 503)
    )
    def backup(by: Asking) -> BackupView:
        """A consistent copy, into the folder `backups` of the state folder; tasks continue meanwhile. SQLite only."""
        return access.as_(by).service.backup()

    return routes
