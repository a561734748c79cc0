"""/v1/agents: which method of the service answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.agents.shape import AgentCalls

agents = serve(
    "agents",
    Agents,
    {AgentCalls.agents: Agents.all, AgentCalls.hold: Agents.hold, AgentCalls.release: Agents.release},
)
