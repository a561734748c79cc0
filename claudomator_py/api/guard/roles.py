"""Which role each operation needs. What is not in this table is refused, and a daemon that offers it does not start.

read looks; operate changes tasks and schedules as well; admin is for what concerns the whole daemon: its agents' holds,
draining, backups, cleaning up, notifications, tokens. A principal of an organisation is kept from what acts on the
tasks of all, or tells of them, whatever its role.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from claudomator_py.api.problem import Refused
from claudomator_py.domain.principal import Principal, Role


@dataclass(frozen=True, slots=True)
class Needed:
    """What an operation asks of a principal. role: None: nothing, it is open to all.

    whole: it concerns the whole daemon, so it is not for a principal of an organisation. run: a run may do it as well,
    to its own task.
    """

    role: Role | None
    whole: bool = False
    run: bool = False

    def permits(self, by: Principal) -> bool:
        """Whether that principal may do it."""
        if self.role is None or (self.run and by.role is Role.RUN):
            return True
        return by.role.permits(self.role) and not (self.whole and by.organisation is not None)


_OPEN = Needed(None)
_READ = Needed(Role.READ)
_READ_WHOLE = Needed(Role.READ, whole=True)
_READ_OWN = Needed(Role.READ, run=True)
_OPERATE = Needed(Role.OPERATE)
_ADMIN = Needed(Role.ADMIN)
_ADMIN_WHOLE = Needed(Role.ADMIN, whole=True)

OPERATIONS: Final[dict[str, Needed]] = {
    "getLiveness": _OPEN,
    "getReadiness": _OPEN,
    "listTasks": _READ,
    "getTask": _READ_OWN,
    "explainTask": _READ,
    "listRuns": _READ,
    "getRun": _READ_OWN,
    "readLog": _READ_OWN,
    "listEvents": _READ,
    "listSchedules": _READ,
    "getSchedule": _READ,
    "listAgents": _READ,
    "listReasons": _READ,
    "getStatus": _READ,
    "getDrain": _READ,
    "listFileProblems": _READ,
    "createLoginCode": _READ,
    "listSessions": _READ,
    "endSession": _READ,
    "endSessions": _READ,
    "listNotifications": _READ_WHOLE,
    "getMetrics": _READ_WHOLE,
    "submitTask": _OPERATE,
    "cancelTask": _OPERATE,
    "restartTask": _OPERATE,
    "answerTask": _OPERATE,
    "approveTask": _OPERATE,
    "rejectTask": _OPERATE,
    "addSchedule": _OPERATE,
    "pauseSchedule": _OPERATE,
    "resumeSchedule": _OPERATE,
    "runSchedule": _OPERATE,
    "deleteSchedule": _OPERATE,
    "holdAgent": _ADMIN_WHOLE,
    "releaseAgent": _ADMIN_WHOLE,
    "drain": _ADMIN_WHOLE,
    "undrain": _ADMIN_WHOLE,
    "makeBackup": _ADMIN_WHOLE,
    "cleanUp": _ADMIN_WHOLE,
    "retryNotification": _ADMIN_WHOLE,
    "testNotification": _ADMIN_WHOLE,
    "listTokens": _ADMIN,
    "createToken": _ADMIN,
    "revokeToken": _ADMIN,
}
"""By operation id."""

PAGES: Final[dict[str, Needed]] = {
    "GET /login": _OPEN,
    "POST /login": _OPEN,
    "POST /logout": _READ,
    "GET /static/{name}": _OPEN,
    "GET /": _READ,
    "GET /sessions": OPERATIONS["listSessions"],
    "POST /sessions/end": OPERATIONS["endSessions"],
    "POST /sessions/{session_id}/end": OPERATIONS["endSession"],
    "GET /select": _OPERATE,
    "POST /select/{change}": _OPERATE,
    "GET /tasks/{ref}": _READ,
    "GET /tasks/{ref}/cancel": OPERATIONS["cancelTask"],
    "POST /tasks/{ref}/cancel": OPERATIONS["cancelTask"],
    "GET /tasks/{ref}/restart": OPERATIONS["restartTask"],
    "POST /tasks/{ref}/restart": OPERATIONS["restartTask"],
    "GET /tasks/{ref}/answer": OPERATIONS["answerTask"],
    "POST /tasks/{ref}/answer": OPERATIONS["answerTask"],
    "GET /tasks/{ref}/approve": OPERATIONS["approveTask"],
    "POST /tasks/{ref}/approve": OPERATIONS["approveTask"],
    "GET /tasks/{ref}/reject": OPERATIONS["rejectTask"],
    "POST /tasks/{ref}/reject": OPERATIONS["rejectTask"],
    "POST /agents/{name}/release": OPERATIONS["releaseAgent"],
    "POST /schedules/{name}/pause": OPERATIONS["pauseSchedule"],
    "POST /schedules/{name}/resume": OPERATIONS["resumeSchedule"],
    "POST /schedules/{name}/run": OPERATIONS["runSchedule"],
}
"""Of the pages, by method and path: acting on one needs what the operation behind it needs."""


def may(by: Principal, operation: str) -> bool:
    """Whether the principal may do what the operation of that id does."""
    return OPERATIONS[operation].permits(by)


def needed_by(route: APIRoute, method: str) -> Needed | None:
    """What the route asks of a principal; None: nobody has said."""
    if route.include_in_schema:
        return OPERATIONS.get(route.operation_id or "")
    return PAGES.get(f"{method} {route.path}")


def check_all(routes: Iterable[BaseRoute]) -> None:
    """Raises ValueError if there is a route without an entry here."""
    lacking = []
    for route in routes:
        if not isinstance(route, APIRoute):
            lacking.append(str(route))
            continue
        lacking += [f"{method} {route.path}" for method in route.methods or () if needed_by(route, method) is None]
    if lacking:
        raise ValueError(f"api/guard/roles.py does not say who may do this: {', '.join(sorted(lacking))}")


def not_permitted(by: Principal, needed: Needed) -> Refused:
    """The refusal for a principal that may not do it."""
    role = needed.role.value if needed.role is not None else Role.READ.value
    if by.role is Role.RUN:
        detail = f"The token of a run may not do this: it requires the role {role}."
        remedy = "A run reads its own task."
    elif not by.role.permits(Role(role)):
        detail = f"{by.id} has the role {by.role.value}, and this needs {role}."
        remedy = f"Create one that has it: claudomator token create NAME --role {role}"
    else:
        detail = f"{by.id} belongs to {by.organisation}, but this concerns the whole daemon."
        remedy = f"This requires a token with the role {role} without an organisation."
    return Refused(403, "not_permitted", detail, remedy)
