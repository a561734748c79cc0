"""The web application: the operations of every resource and the pages, behind the security checks."""

import json
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.routing import BaseRoute

from claudomator_py import __version__
from claudomator_py.api import page, problem
from claudomator_py.api.guard.limits import Throttle
from claudomator_py.api.guard.pace import Paces
from claudomator_py.api.guard.security import Security
from claudomator_py.api.guard.sessions import LoginCodes, Sessions
from claudomator_py.api.guard.without_secrets import UNFILTERED, WithoutSecrets
from claudomator_py.api.metrics import metrics
from claudomator_py.api.openapi import build
from claudomator_py.api.operation import Section, access_of
from claudomator_py.api.served import serve
from claudomator_py.api.settings import WebSettings
from claudomator_py.api.streams import Streams
from claudomator_py.daemon.metering import Meter
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.redaction import Redactor
from claudomator_py.protocols.hub import Hub
from claudomator_py.protocols.hub.connection import HubEndpoint
from claudomator_py.resources.access.http import logins, tokens
from claudomator_py.resources.access.service import Keyring
from claudomator_py.resources.agents import AgentCalls
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.branches import BranchCalls, ChangeCalls
from claudomator_py.resources.branches.service import BranchService, Changes
from claudomator_py.resources.channels import ChannelCalls
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.channels.webhook import incoming
from claudomator_py.resources.daemon import (
    BackupCalls,
    CleanupCalls,
    DrainCalls,
    HealthCalls,
    HostCalls,
    LivenessView,
    ReadinessView,
    ReasonCalls,
)
from claudomator_py.resources.daemon.service import DaemonService, Hosts
from claudomator_py.resources.decisions import DecisionCalls
from claudomator_py.resources.decisions.service import Decisions
from claudomator_py.resources.events.http import events
from claudomator_py.resources.events.service import Events
from claudomator_py.resources.notifications import NotificationCalls
from claudomator_py.resources.notifications.service import Notices
from claudomator_py.resources.overview import OverviewCalls
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.policy import PolicyCalls
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.report import ReportCalls
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.routing import RoutingCalls
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.runs.http import runs
from claudomator_py.resources.schedules import ScheduleCalls
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.session import Access
from claudomator_py.resources.specialists import SpecialistCalls
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks import TaskCalls
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store.database import Database
from claudomator_py.surface import answers
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class _Health:
    """/livez and /readyz, open to supervisors: without a token they say yes or no, and nothing else."""

    request: Request
    response: Response

    @answers(HealthCalls.liveness)
    def liveness(self) -> LivenessView:
        return LivenessView()

    @answers(HealthCalls.readiness)
    def readiness(self) -> ReadinessView:
        by = self.request.state.principal
        readiness = access_of(self.request).as_(by or OPERATOR)[Overview].readiness()
        if not readiness.ready:
            self.response.status_code = 503
        return ReadinessView(ready=readiness.ready) if by is None else readiness


def _health(request: Request, response: Response) -> _Health:
    return _Health(request, response)


health = serve("health", _health, HealthCalls)


_DESCRIPTION = """The daemon's HTTP API. Every path but /livez and /readyz needs a token; `security` names the role that
it takes: read, operate or admin, each of which includes the ones before it. Lists are paged by cursor, times are
RFC 3339 in UTC, and refusals are problem+json that say what to do next."""


RESOURCES = (
    runs,
    serve("tasks", Tasks, TaskCalls),
    serve("changes", Changes, ChangeCalls),
    serve("branches", BranchService, BranchCalls),
    serve("schedules", Schedules, ScheduleCalls),
    serve("specialists", Specialists, SpecialistCalls),
    serve("channels", Channels, ChannelCalls),
    serve("routing", Routing, RoutingCalls),
    serve("decisions", Decisions, DecisionCalls),
    serve("policy", PolicyService, PolicyCalls),
    serve("agents", Agents, AgentCalls),
    serve("hosts", Hosts, HostCalls),
    serve("status", Overview, OverviewCalls),
    serve("report", Reports, ReportCalls),
    serve("drain", DaemonService, DrainCalls),
    serve("notifications", Notices, NotificationCalls),
    serve("backups", DaemonService, BackupCalls),
    serve("cleanup", DaemonService, CleanupCalls),
    serve("reasons", DaemonService, ReasonCalls),
    health,
    tokens,
    logins,
    events,
    metrics,
)


class _Application(FastAPI):
    def setup(self) -> None:
        """Serve the document from another thread: it takes a second to build, and its text some milliseconds."""
        self.add_route("/openapi.json", self._serve_openapi, include_in_schema=False)

    def _serve_openapi(self, request: Request) -> Response:
        setattr(request.state, UNFILTERED, True)
        return Response(self._openapi_text, media_type="application/json")

    @cached_property
    def _openapi_text(self) -> bytes:
        return json.dumps(self.openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            routes = [route for resource in RESOURCES for route in resource.routes]
            self.openapi_schema = build(self, routes, (shape for resource in RESOURCES for shape in resource.bodies))
        return self.openapi_schema


def _a2a() -> Iterable[BaseRoute]:
    from claudomator_py.protocols.a2a import a2a  # late: most daemons meet no other agents

    return a2a.routes


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def create_app(
    access: Access,
    settings: WebSettings,
    keyring: Keyring,
    meter: Meter | None = None,
    streams: Streams | None = None,
    redactor: Callable[[], Redactor] = Redactor,
    database: Database | None = None,
    hub: Hub | None = None,
) -> FastAPI:
    """Return the application, without starting anything.

    keyring: the tokens besides the operator's. meter: None: nothing is measured. streams: ends the event streams when
    the server stops; None: they may break off. redactor: returns
    what takes secrets out of an answer; called for each. database: where browser sessions are kept; None: nowhere. hub:
    to which agents connect; None: no hub.

    Raises StoreUnavailable, and ValueError if a route has no role.
    """
    sessions = Sessions(database, settings.token, _now_ms)
    throttle, paces = Throttle(settings.limits), Paces()
    streams = streams or Streams()
    access.as_(OPERATOR)[Events].on_change(streams.wake)
    keyring.on_change(streams.wake)
    sessions.on_end(streams.wake)
    app = _Application(
        title="Claudomator",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # FastAPI's pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.access, app.state.streams, app.state.meter = access, streams, meter
    app.state.sessions, app.state.login_codes, app.state.settings = sessions, LoginCodes(_now_ms), settings
    app.state.throttle, app.state.is_prepared = throttle, False
    routes = app.router.routes
    routes += [resource.section for resource in RESOURCES]
    routes.append(Section(["/v1/channels/"], lambda: incoming.routes))
    routes.append(Section(["/a2a", "/.well-known/"], _a2a))
    routes.append(Section(["/"], page.routes))
    problem.install(app)
    page.install(app)
    app.add_middleware(WithoutSecrets, redactor=redactor)
    endpoint = None if hub is None else HubEndpoint(hub, access, streams, paces)
    if endpoint is not None:
        keyring.on_change(endpoint.look)
    app.add_middleware(
        Security,
        settings=settings,
        sessions=sessions,
        keyring=keyring,
        throttle=throttle,
        dress=page.dress,
        websockets=endpoint,
        paces=paces,
    )
    return app
