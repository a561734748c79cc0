"""The agents of a machine without a configuration: those whose programs are found."""

import shutil

from claudomator_py.core.agent import AgentSpec
from claudomator_py.core.settings import MODEL_KINDS, default_agent


def detected_agents() -> list[AgentSpec]:
    """The agent programs found on PATH; without any, a simulated one is open to balancing, named as such."""
    found = [default_agent(kind) for kind in MODEL_KINDS if shutil.which(kind) is not None]
    simulated = default_agent("simulated")
    return [*found, simulated.model_copy(update={"auto_select": not found})]
