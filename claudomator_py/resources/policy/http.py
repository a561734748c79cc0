"""/v1/policy: which method of the service answers it."""

from claudomator_py.api.served import serve
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.policy.shape import PolicyCalls

policy = serve("policy", PolicyService, {PolicyCalls.policy: PolicyService.view})
