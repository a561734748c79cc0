"""Gemini CLI: how it is started."""

import shlex
from pathlib import Path

from claudomator_py.agents.event_kind import EventKind
from claudomator_py.agents.fence import FENCE_NAME, hook_line, is_fenced
from claudomator_py.agents.gemini import INFO
from claudomator_py.agents.gemini.events import GeminiEvents
from claudomator_py.agents.own_programs import MCP_NAME
from claudomator_py.agents.programs import probe
from claudomator_py.agents.restrictions import check_folders, split_by_commas, without_list_of_tools
from claudomator_py.domain.agent import AgentHealth, AgentSpec, OwnServers
from claudomator_py.domain.conversation import Conversations
from claudomator_py.domain.run import Launch, LaunchRequest
from claudomator_py.domain.task import PermissionMode, TaskSpec

REMEDY = "install it (npm install -g @google/gemini-cli), or set the agent's command in the configuration"

# Its second process doubles its memory and hears no signal.
RELAUNCH = {"GEMINI_CLI_NO_RELAUNCH": "true"}
# Where an agent may work is for Claudomator's own workdir_roots to say; without this it refuses to start.
TRUST = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
# By itself it asks ten times: four minutes of waiting, with the agent's slot taken and no other agent asked. The user's
# settings go before this file. The CLI reads it only where nobody but root could have written it; elsewhere it would
# warn, so it is not told about it.
DEFAULTS_NAME = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
DEFAULTS = Path(__file__).with_name("defaults.json")
SYSTEM_DEFAULTS = Path("/etc/gemini-cli/system-defaults.json")

# It is given servers by files alone. This one of ours comes before the user's and takes none of theirs away; it starts
# what COMMAND_NAME says, so the user can have it in a file of theirs where the CLI does not trust ours.
SETTINGS_NAME = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
SETTINGS = Path(__file__).with_name("settings.json")
SYSTEM_SETTINGS = Path("/etc/gemini-cli/settings.json")
COMMAND_NAME = "CLAUDOMATOR_MCP"
# It has the hook as well, for runs with a fence; this one has the hook alone.
FENCE = Path(__file__).with_name("fence.json")
UNFENCED = (
    "Gemini CLI reads hooks only from settings that nobody but root can have written, and from one such file; install "
    "Claudomator as root and leave GEMINI_CLI_SYSTEM_SETTINGS_PATH and /etc/gemini-cli/settings.json alone"
)

_MODES = {
    PermissionMode.ACCEPT_EDITS: "auto_edit",
    PermissionMode.PLAN: "plan",
    PermissionMode.BYPASS: "yolo",
}


class Gemini(EventKind):
    """The kind ``gemini``."""

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
        if agent.mcp.own_servers is OwnServers.NONE:
            argv.append(f"--allowed-mcp-server-names={MCP_NAME}")
        argv += agent.extra_args
        argv += [f"--allowed-tools={tool}" for tool in task.permissions.allowed_tools]
        argv += [f"--include-directories={Path(folder).expanduser()}" for folder in task.add_dirs]
        env = {**RELAUNCH, **TRUST, **_defaults(agent), **_mcp(request)}
        return Launch(tuple(argv), env, request.prompt, _fence(request))

    def unfenced(self, agent: AgentSpec) -> str | None:
        """It finds hooks in files alone, and trusts none but root's."""
        return None if _settings(agent, FENCE) else UNFENCED

    def events(self, request: LaunchRequest | None) -> GeminiEvents:
        """What its events mean, with nothing taken yet."""
        return GeminiEvents(resumed=request is not None and request.resume)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Whether it is installed, and which version."""
        return probe(agent.command or INFO.command, path, REMEDY)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """What it has settings for, but no flags."""
        name = agent.name
        sentences = without_list_of_tools(task, agent)
        if task.permissions.disallowed_tools:
            remedy = "deny them in a policy file, named with --policy in the agent's extra_args"
            sentences.append(f"{name} has no option for permissions.disallowed_tools; {remedy}")
        if task.max_turns is not None:
            remedy = "set model.maxSessionTurns in its settings.json"
            sentences.append(f"{name} has no option for max_turns; {remedy}")
        return sentences + split_by_commas(task, agent)


def _defaults(agent: AgentSpec) -> dict[str, str]:
    set_by_user = DEFAULTS_NAME in agent.env or DEFAULTS_NAME in agent.pass_env or SYSTEM_DEFAULTS.exists()
    return {} if set_by_user or not _only_root_writes(DEFAULTS) else {DEFAULTS_NAME: str(DEFAULTS)}


def _mcp(request: LaunchRequest) -> dict[str, str]:
    if not request.mcp_command:
        return {}
    return {COMMAND_NAME: shlex.join(request.mcp_command), **_settings(request.agent, SETTINGS)}


def _fence(request: LaunchRequest) -> dict[str, str]:
    if not is_fenced(request):
        return {}
    settings = _settings(request.agent, SETTINGS if request.mcp_command else FENCE)
    return {FENCE_NAME: hook_line(request, dialect="plain"), **settings} if settings else {}


def _settings(agent: AgentSpec, file: Path) -> dict[str, str]:
    """The variable that names the file; empty: the user has a file of theirs in its place, or it is not trusted."""
    set_by_user = SETTINGS_NAME in agent.env or SETTINGS_NAME in agent.pass_env or SYSTEM_SETTINGS.exists()
    return {} if set_by_user or not _only_root_writes(file) else {SETTINGS_NAME: str(file)}


def _only_root_writes(path: Path) -> bool:
    """Whether the CLI would trust the file: it and its folders, links included, belong to root alone."""
    try:
        places = {path, *path.parents, path.resolve(), *path.resolve().parents}
        stats = [place.stat() for place in places]
    except OSError:
        return False
    return all(stat.st_uid == 0 and stat.st_mode & 0o022 == 0 for stat in stats)


KIND = Gemini()
