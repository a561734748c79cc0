"""/v1/policy: the rules in force."""

from claudomator_py.api.operation import Allowed, Operations
from claudomator_py.api.request import Days
from claudomator_py.domain.views.policy import PolicyView
from claudomator_py.surface.operation import OPERATE

policy = Operations("policy")


@policy.operation("GET /v1/policy", "getPolicy", OPERATE, "The rules in force")
def show(
    granted: Allowed,
    days: Days = 30,
) -> PolicyView:
    """In their order, with how often each applied to tasks that exist for whoever asks."""
    return granted.policy.view(days)
