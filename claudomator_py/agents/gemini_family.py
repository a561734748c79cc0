"""Gemini CLI and its forks: common options, and settings files that variables name."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from claudomator_py.agents.event_kind import EventKind, check_folders
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.run import Conversations, Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A place where the program looks for a settings file, and where Claudomator can put its own."""

    variable: str
    """The variable that names the file."""
    system: Path
    """The default path."""

    def is_taken(self, agent: AgentSpec) -> bool:
        """Return whether the user has a file there."""
        return self.variable in agent.env or self.variable in agent.pass_env or self.system.exists()


class GeminiFamily(EventKind):
    """A kind of this family."""

    conversations = Conversations.GIVEN
    auto_edit: str
    """Its name for the mode in which edits need no approval."""
    asking: str | None = None
    """Its name for the mode in which it asks; None: that is its default."""

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the command line. The prompt is a file on stdin. With ``=``, no value can be taken for an option.
        Raises ValueError for a folder that the program would split at its comma."""
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
        """Return the options of this program alone."""

    @abstractmethod
    def variables(self, request: LaunchRequest) -> dict[str, str]:
        """Return the variables of its environment."""

    @abstractmethod
    def fence(self, request: LaunchRequest) -> dict[str, str]:
        """Return the variables that keep the run within its reach; empty: no fence."""
