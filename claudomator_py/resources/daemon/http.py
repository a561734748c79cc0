"""/v1/drain, /v1/backups, /v1/cleanup and /v1/reasons; and /livez and /readyz, which are open to supervisors: without a
token they say yes or no, and nothing else."""

from fastapi import Request, Response

from claudomator_py.api.operation import access_of
from claudomator_py.api.served import serve
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.resources.daemon import (
    HealthCalls,
    LivenessView,
    ReadinessView,
)
from claudomator_py.resources.overview.service import Overview
from claudomator_py.surface import answers
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class _Health:
    """The health of the daemon, for any caller, also one without a token."""

    request: Request
    response: Response

    @answers(HealthCalls.liveness)
    def liveness(self) -> LivenessView:
        return LivenessView()

    @answers(HealthCalls.readiness)
    def readiness(self) -> ReadinessView:
        by = self.request.state.principal
        found = access_of(self.request).as_(by or OPERATOR)[Overview].readiness()
        if not found.ready:
            self.response.status_code = 503
        return ReadinessView(ready=found.ready) if by is None else found


def _health(request: Request, response: Response) -> _Health:
    return _Health(request, response)


health = serve("health", _health, HealthCalls)
