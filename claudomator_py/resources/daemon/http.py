"""/v1/drain, /v1/backups, /v1/cleanup and /v1/reasons; and /livez and /readyz for supervisors, which are open to all:
without a token they say yes or no and nothing else."""

from dataclasses import dataclass

from fastapi import Depends, Request, Response

from claudomator_py.api.operation import access_of
from claudomator_py.api.served import serve
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.queries.queries import Queries
from claudomator_py.resources.daemon.service import DaemonService
from claudomator_py.resources.daemon.shape import (
    BackupCalls,
    CleanupCalls,
    DrainCalls,
    HealthCalls,
    LivenessView,
    ReadinessView,
    ReasonCalls,
)


@dataclass(frozen=True, slots=True)
class _Health:
    """The health of the daemon, for whoever asks, be it nobody."""

    request: Request
    response: Response

    def liveness(self) -> LivenessView:
        return LivenessView()

    def readiness(self) -> ReadinessView:
        by = self.request.state.principal
        found = access_of(self.request).as_(by or OPERATOR)[Queries].readiness()
        if not found.ready:
            self.response.status_code = 503
        return ReadinessView(ready=found.ready) if by is None else found


def _health(request: Request, response: Response) -> _Health:
    return _Health(request, response)


drain = serve(
    "drain",
    DaemonService,
    {
        DrainCalls.drain_state: DaemonService.drain_state,
        DrainCalls.drain: DaemonService.drain,
        DrainCalls.undrain: DaemonService.undrain,
    },
)
backups = serve("backups", DaemonService, {BackupCalls.backup: DaemonService.backup})
cleanup = serve("cleanup", DaemonService, {CleanupCalls.clean_up: DaemonService.clean_up})
reasons = serve("reasons", DaemonService, {ReasonCalls.reasons: DaemonService.reasons})
health = serve(
    "health",
    Depends(_health),
    {HealthCalls.liveness: _Health.liveness, HealthCalls.readiness: _Health.readiness},
)
