"""Who asks: the service as each principal may use it. The web knows only this."""

from dataclasses import dataclass

from claudomator_py.domain.principal import Principal
from claudomator_py.queries.queries import Queries
from claudomator_py.resources.access.service import Tokens
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.service.learning import Learned
from claudomator_py.service.notices import Notices
from claudomator_py.service.run_requests import RunRequests
from claudomator_py.service.specialists import Specialists
from claudomator_py.service.task_service import TaskService
from claudomator_py.service.webhooks import IncomingWebhooks


@dataclass(frozen=True, slots=True)
class Granted:
    """What one principal may ask: it sees and changes what that one may, and what it does is in that one's name.

    Synchronous and safe to call from many threads. Every method may raise ``domain.errors.ServiceError``.
    """

    service: TaskService
    """What changes tasks, agents and the daemon."""
    queries: Queries
    """What there is, and what can be followed while it happens."""
    schedules: Schedules
    """What is made again and again."""
    notices: Notices
    """Who was told about what."""
    tokens: Tokens
    """Who may ask what."""
    specialists: Specialists
    """Who does tasks."""
    learned: Learned
    """What was learned about that."""
    channels: Channels
    """Where people and specialists write to each other."""
    run_requests: RunRequests
    """What a run asks for while it lives."""
    policy: PolicyService
    """What tasks may do."""


class Access:
    """The service for each who asks. There is none for nobody, so no request is answered without saying whose it is."""

    def __init__(
        self,
        service: TaskService,
        queries: Queries,
        schedules: Schedules,
        notices: Notices,
        tokens: Tokens,
        specialists: Specialists,
        learned: Learned,
        channels: Channels,
        webhooks: IncomingWebhooks,
        run_requests: RunRequests,
        policy: PolicyService,
    ) -> None:
        """webhooks: takes what nobody in particular asks, but shows by a signature that it may come."""
        self._service = service
        self._queries = queries
        self._schedules = schedules
        self._notices = notices
        self._tokens = tokens
        self._specialists = specialists
        self._learned = learned
        self._channels = channels
        self.webhooks = webhooks
        self._run_requests = run_requests
        self._policy = policy

    def as_(self, by: Principal) -> Granted:
        """What that principal may ask. It costs nothing."""
        return Granted(
            self._service.as_(by),
            self._queries.as_(by),
            self._schedules.as_(by),
            self._notices.as_(by),
            self._tokens.as_(by),
            self._specialists.as_(by),
            self._learned.as_(by),
            self._channels.as_(by),
            self._run_requests.as_(by),
            self._policy.as_(by),
        )
