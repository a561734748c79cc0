"""The agents that are installed on this machine."""

import os
import shutil

from claudomator_py.schema.agent_settings import KnownAgent, known_agents


def installed_agents() -> list[KnownAgent]:
    """Return the known agents whose programs are on PATH."""
    path = os.environ.get("PATH", os.defpath)
    there = ((agent, shutil.which(agent.command[0], path=path)) for agent in known_agents())
    return [agent.model_copy(update={"program": program}) for agent, program in there if program is not None]
