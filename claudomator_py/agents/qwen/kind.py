"""Qwen Code: how it is started."""

from pathlib import Path

from claudomator_py.agents.event_kind import EventKind
from claudomator_py.agents.fence import FENCE_NAME, hook_line, is_fenced
from claudomator_py.agents.programs import probe
from claudomator_py.agents.qwen import INFO
from claudomator_py.agents.qwen.events import QwenEvents
from claudomator_py.agents.restrictions import check_folders, split_by_commas, without_list_of_tools
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.run import Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode, TaskSpec
from claudomator_py.scheduler.lanes import PLAIN_TOOL

REMEDY = "install it (npm install -g @qwen-code/qwen-code), or set the agent's command in the configuration"

# Its second process doubles its memory.
RELAUNCH = {"QWEN_CODE_NO_RELAUNCH": "true"}
# By itself it asks a service that refuses for quota again for many minutes, without a word; with these defaults for a
# minute and a half. The user's settings go before this file. It would rewrite a file of an older version of its format:
# hence the number in it.
DEFAULTS_NAME = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
DEFAULTS = Path(__file__).with_name("defaults.json")
SYSTEM_DEFAULTS = Path("/etc/qwen-code/system-defaults.json")

# It finds hooks in files alone. This one of ours comes before those of the user and of the project.
SETTINGS_NAME = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
FENCE = Path(__file__).with_name("fence.json")
SYSTEM_SETTINGS = Path("/etc/qwen-code/settings.json")
UNFENCED = (
    "Qwen Code reads one file of the system's settings, which has to be Claudomator's for the fence; remove "
    "QWEN_CODE_SYSTEM_SETTINGS_PATH from the agent's variables, and /etc/qwen-code/settings.json"
)

_MODES = {
    PermissionMode.ACCEPT_EDITS: "auto-edit",
    PermissionMode.PLAN: "plan",
    PermissionMode.BYPASS: "yolo",
}


class Qwen(EventKind):
    """The kind ``qwen``."""

    kind = INFO.name
    conversations = Conversations.GIVEN

    def launch(self, request: LaunchRequest) -> Launch:
        """Its command line. The prompt comes from a file on stdin. With `=`, no value can pass for an option.

        Raises ValueError for a folder that it would take for several.
        """
        agent, task = request.agent, request.task
        check_folders(task, agent)
        argv = [*(agent.command or INFO.command), "--output-format=stream-json"]
        argv.append(f"--{'resume' if request.resume else 'session-id'}={request.conversation_id}")
        if request.model is not None:
            argv.append(f"--model={request.model.model}")
        if task.permissions.mode in _MODES:
            argv.append(f"--approval-mode={_MODES[task.permissions.mode]}")
        if task.max_turns is not None:
            argv.append(f"--max-session-turns={task.max_turns}")
        argv += agent.extra_args
        argv += [f"--allowed-tools={tool}" for tool in task.permissions.allowed_tools]
        argv += [f"--exclude-tools={tool}" for tool in task.permissions.disallowed_tools]
        argv += [f"--include-directories={Path(folder).expanduser()}" for folder in task.add_dirs]
        set_by_user = DEFAULTS_NAME in agent.env or DEFAULTS_NAME in agent.pass_env or SYSTEM_DEFAULTS.exists()
        defaults = {} if set_by_user else {DEFAULTS_NAME: str(DEFAULTS)}
        return Launch(tuple(argv), {**RELAUNCH, **defaults}, request.prompt, self._fence(request))

    def unfenced(self, agent: AgentSpec) -> str | None:
        """It finds hooks in files alone, and reads one of the system's."""
        set_by_user = SETTINGS_NAME in agent.env or SETTINGS_NAME in agent.pass_env or SYSTEM_SETTINGS.exists()
        return UNFENCED if set_by_user else None

    def _fence(self, request: LaunchRequest) -> dict[str, str]:
        if not is_fenced(request) or self.unfenced(request.agent) is not None:
            return {}
        return {FENCE_NAME: hook_line(request, allows=True), SETTINGS_NAME: str(FENCE)}

    def events(self, request: LaunchRequest | None) -> QwenEvents:
        """What its events mean, with nothing taken yet."""
        if request is None or not request.resume:
            return QwenEvents()
        return QwenEvents(resumed=True, prior=request.prior_tokens)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Whether it is installed, and which version."""
        return probe(agent.command or INFO.command, path, REMEDY)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """It leaves out tools by their names alone, and its lists have commas between their words."""
        sentences = [
            f"{agent.name} cannot leave out {tool!r}; write a tool's name alone, such as run_shell_command"
            for tool in task.permissions.disallowed_tools
            if not PLAIN_TOOL.fullmatch(tool)
        ]
        return [*without_list_of_tools(task, agent), *sentences, *split_by_commas(task, agent)]


KIND = Qwen()
