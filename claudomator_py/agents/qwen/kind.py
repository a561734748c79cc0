"""The kind ``qwen``: start Qwen Code."""

from collections.abc import Sequence
from pathlib import Path

from claudomator_py.agents.event_kind import split_by_commas, without_list_of_tools
from claudomator_py.agents.fence import FENCE_NAME, hook_line, is_fenced
from claudomator_py.agents.gemini_family import GeminiFamily, SettingsFile
from claudomator_py.agents.qwen import INFO
from claudomator_py.agents.qwen.events import QwenEvents
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.domain.task import PLAIN_TOOL, TaskSpec

# The second process of a relaunch doubles the memory.
RELAUNCH = {"QWEN_CODE_NO_RELAUNCH": "true"}
# Left alone it silently retries for many minutes when a service refuses for quota; with these defaults for a minute and
# a half. The user's settings override this file. The number in it is its format's version: an older file would be
# rewritten.
DEFAULTS = Path(__file__).with_name("defaults.json")
_DEFAULTS = SettingsFile("QWEN_CODE_SYSTEM_DEFAULTS_PATH", Path("/etc/qwen-code/system-defaults.json"))

# It takes hooks from files alone. This file comes before the user's and the project's.
FENCE = Path(__file__).with_name("fence.json")
_SETTINGS = SettingsFile("QWEN_CODE_SYSTEM_SETTINGS_PATH", Path("/etc/qwen-code/settings.json"))
UNFENCED = (
    "Qwen Code reads one system settings file, which has to be Claudomator's for the fence; remove "
    "QWEN_CODE_SYSTEM_SETTINGS_PATH from the agent's variables, and /etc/qwen-code/settings.json"
)


class Qwen(GeminiFamily):
    """The kind ``qwen``."""

    info = INFO
    package = "@qwen-code/qwen-code"
    auto_edit = "auto-edit"
    # Its own default has a model approve calls, and does not allow tools that could start anything, such as `make`.
    asking = "default"

    def options(self, request: LaunchRequest) -> Sequence[str]:
        """Return the options that Gemini CLI lacks: the number of turns, and the tools to exclude."""
        task = request.task
        turns = [] if task.max_turns is None else [f"--max-session-turns={task.max_turns}"]
        return [*turns, *(f"--exclude-tools={tool}" for tool in task.permissions.disallowed_tools)]

    def variables(self, request: LaunchRequest) -> dict[str, str]:
        defaults = {} if _DEFAULTS.is_taken(request.agent) else {_DEFAULTS.variable: str(DEFAULTS)}
        return {**RELAUNCH, **defaults}

    def fence(self, request: LaunchRequest) -> dict[str, str]:
        if not is_fenced(request) or self.unfenced(request.agent) is not None:
            return {}
        return {FENCE_NAME: hook_line(request, allows=True), _SETTINGS.variable: str(FENCE)}

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why the agent's runs cannot be fenced: hooks come from files alone, and there is one system file."""
        return UNFENCED if _SETTINGS.is_taken(agent) else None

    def events(self, request: LaunchRequest | None) -> QwenEvents:
        if request is None or not request.resume:
            return QwenEvents()
        return QwenEvents(resumed=True, prior=request.prior_tokens)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what the agent cannot keep to: it excludes tools by bare name, and its lists are comma-separated."""
        sentences = [
            f"{agent.name} cannot leave out {tool!r}; write a tool's name alone, such as run_shell_command"
            for tool in task.permissions.disallowed_tools
            if not PLAIN_TOOL.fullmatch(tool)
        ]
        return [*without_list_of_tools(task, agent), *sentences, *split_by_commas(task, agent)]


KIND = Qwen()
