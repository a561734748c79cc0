"""A remote agent: how its client is started."""

import sys
from pathlib import Path
from typing import Final

from claudomator_py.agents.a2a import INFO
from claudomator_py.agents.a2a.events import A2aEvents
from claudomator_py.agents.elsewhere import unsupported_elsewhere
from claudomator_py.agents.event_kind import EventKind
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.run import Launch, LaunchRequest
from claudomator_py.domain.task import TaskSpec

_INSTALLATION: Final = str(Path(__file__).parents[3])
# Isolated: no site packages, and nothing that a variable could have it import. It starts in a tenth of a second.
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from claudomator_py.agents.a2a_client.main import main; sys.exit(main())"
)


class A2a(EventKind):
    """The kind ``a2a``."""

    kind = INFO.name
    conversations = Conversations.NAMED

    def launch(self, request: LaunchRequest) -> Launch:
        """Its client. What it is to do is in argv, where no variable of a task can change it.

        Raises ValueError for an agent without an address.
        """
        remote = request.agent.remote
        if remote is None:
            raise ValueError(f"{request.agent.name} has no address; give agents.{request.agent.name}.url")
        if request.skill is not None:
            remote = remote.model_copy(update={"skill": request.skill})
        argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, _INSTALLATION]
        argv += [f"--remote={remote.model_dump_json()}", f"--message={request.run_id}"]
        if request.resume:
            argv.append(f"--conversation={request.conversation_id}")
        return Launch(tuple(argv), {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> A2aEvents:
        """What its events mean, with nothing taken yet."""
        return A2aEvents(resumed=request is not None and request.resume)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Its client is always there. Whether the agent is shows when it is asked for something."""
        problem = None if agent.remote is not None else f"it has no address; give agents.{agent.name}.url"
        return AgentHealth(installed=True, program=sys.executable, problem=problem)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """See ``elsewhere``."""
        return unsupported_elsewhere(task, agent)


KIND = A2a()
