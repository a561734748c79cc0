"""A remote agent: how its client is started."""

from claudomator_py.agents.a2a import INFO
from claudomator_py.agents.a2a.events import A2aEvents
from claudomator_py.agents.event_kind import RemoteKind
from claudomator_py.agents.own_programs import own_program
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.run import Launch, LaunchRequest


class A2a(RemoteKind):
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
        argv = [*own_program("claudomator_py.agents.a2a_client.main")]
        argv += [f"--remote={remote.model_dump_json()}", f"--message={request.run_id}"]
        if request.resume:
            argv.append(f"--conversation={request.conversation_id}")
        return Launch(tuple(argv), {}, request.prompt)

    def events(self, request: LaunchRequest | None) -> A2aEvents:
        """Return what its events mean, with nothing taken yet."""
        return A2aEvents(resumed=request is not None and request.resume)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """As for every agent elsewhere; without an address it cannot be asked."""
        problem = None if agent.remote is not None else f"it has no address; give agents.{agent.name}.url"
        return super().health(agent, path).model_copy(update={"problem": problem})


KIND = A2a()
