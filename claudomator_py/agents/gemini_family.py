"""Gemini CLI and its forks: the same options, and files of settings that variables name."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from claudomator_py.agents.event_kind import EventKind, check_folders
from claudomator_py.agents.programs import probe
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.kind import KindInfo
from claudomator_py.domain.run import Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One of the files in which the program looks for settings, and which Claudomator can put in the user's place."""

    variable: str
    """Names the file."""
    system: Path
    """Where it is looked for otherwise."""

    def is_taken(self, agent: AgentSpec) -> bool:
        """Return whether the user has a file of their own there."""
        return self.variable in agent.env or self.variable in agent.pass_env or self.system.exists()


class GeminiFamily(EventKind):
    """Such a kind."""

    conversations = Conversations.GIVEN
    info: KindInfo
    remedy: str
    """What helps where the program is not installed."""
    auto_edit: str
    """What it calls the mode in which edits need no approval."""
    asking: str | None = None
    """What it calls the mode in which it asks, where that is not its usual one."""

    def launch(self, request: LaunchRequest) -> Launch:
        """Return its command line. The prompt comes from a file on stdin. With `=`, no value can pass for an option.

        Raises ValueError for a folder that it would take for several.
        """
        agent, task = request.agent, request.task
        check_folders(task, agent)
        modes = {
            PermissionMode.DEFAULT: self.asking,
            PermissionMode.ACCEPT_EDITS: self.auto_edit,
            PermissionMode.PLAN: "plan",
            PermissionMode.BYPASS: "yolo",
        }
        argv = [*(agent.command or self.info.command), "--output-format=stream-json"]
        argv.append(f"--{'resume' if request.resume else 'session-id'}={request.conversation_id}")
        if request.model is not None:
            argv.append(f"--model={request.model.model}")
        if (mode := modes[task.permissions.mode]) is not None:
            argv.append(f"--approval-mode={mode}")
        argv += self.options(request)
        argv += agent.extra_args
        argv += [f"--allowed-tools={tool}" for tool in task.permissions.allowed_tools]
        argv += [f"--include-directories={Path(folder).expanduser()}" for folder in task.add_dirs]
        return Launch(tuple(argv), self.variables(request), request.prompt, self.fence(request))

    @abstractmethod
    def options(self, request: LaunchRequest) -> Sequence[str]:
        """Return the options that only it has, for that run."""

    @abstractmethod
    def variables(self, request: LaunchRequest) -> dict[str, str]:
        """Return what it is started with in its environment."""

    @abstractmethod
    def fence(self, request: LaunchRequest) -> dict[str, str]:
        """Return the variables that keep the run within its reach; empty: it has no fence."""

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return whether it is installed, and which version."""
        return probe(agent.command or self.info.command, path, self.remedy)
