"""The agents of a machine without a configuration: those whose programs are found."""

import shutil

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.schema.settings import MODEL_KINDS, default_agent


def detected_agents(path: str) -> list[AgentSpec]:
    """The agent programs found on that PATH, and the simulated agent, which runs only tasks that name it."""
    found = [default_agent(kind) for kind in MODEL_KINDS if shutil.which(kind, path=path) is not None]
    return [*found, default_agent("simulated")]
