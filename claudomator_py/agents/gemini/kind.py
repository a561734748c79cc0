"""Gemini CLI: how it is started."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from claudomator_py.agents.event_kind import split_by_commas, without_list_of_tools
from claudomator_py.agents.fence import FENCE_NAME, hook_line, is_fenced
from claudomator_py.agents.gemini import INFO
from claudomator_py.agents.gemini.events import GeminiEvents
from claudomator_py.agents.gemini_family import GeminiFamily, SettingsFile
from claudomator_py.agents.programs import MCP_NAME
from claudomator_py.domain.agent import AgentSpec, OwnServers
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.domain.task import TaskSpec

# Its second process doubles its memory and hears no signal.
RELAUNCH = {"GEMINI_CLI_NO_RELAUNCH": "true"}
# Where an agent may work is for Claudomator's own workdir_roots to say; without this it refuses to start.
TRUST = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
# By itself it asks ten times: four minutes of waiting, with the agent's slot taken and no other agent asked. The user's
# settings go before this file. The CLI reads it only where nobody but root could have written it; elsewhere it would
# warn, so it is not told about it.
DEFAULTS = Path(__file__).with_name("defaults.json")
_DEFAULTS = SettingsFile("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", Path("/etc/gemini-cli/system-defaults.json"))

# It is given servers by files alone. This one of ours comes before the user's and takes none of theirs away; it starts
# what COMMAND_NAME says, so the user can have it in a file of theirs where the CLI does not trust ours.
SETTINGS = Path(__file__).with_name("settings.json")
_SETTINGS = SettingsFile("GEMINI_CLI_SYSTEM_SETTINGS_PATH", Path("/etc/gemini-cli/settings.json"))
COMMAND_NAME = "CLAUDOMATOR_MCP"
# It has the hook as well, for runs with a fence; this one has the hook alone.
FENCE = Path(__file__).with_name("fence.json")
UNFENCED = (
    "Gemini CLI reads hooks only from settings that nobody but root can have written, and from one such file; install "
    "Claudomator as root and leave GEMINI_CLI_SYSTEM_SETTINGS_PATH and /etc/gemini-cli/settings.json alone"
)


class Gemini(GeminiFamily):
    """The kind ``gemini``."""

    kind = INFO.name
    info = INFO
    remedy = "install it (npm install -g @google/gemini-cli), or set the agent's command in the configuration"
    auto_edit = "auto_edit"

    def options(self, request: LaunchRequest) -> Sequence[str]:
        """Return the option that leaves it Claudomator's server alone, where the agent has none of its own."""
        alone = request.agent.mcp.own_servers is OwnServers.NONE
        return [f"--allowed-mcp-server-names={MCP_NAME}"] if alone else []

    def variables(self, request: LaunchRequest) -> dict[str, str]:
        """Return what it is started with in its environment: the files that it trusts, and what they start."""
        server = {COMMAND_NAME: shlex.join(request.mcp_command)} if request.mcp_command else {}
        settings = _trusted(_SETTINGS, SETTINGS, request.agent) if request.mcp_command else {}
        return {**RELAUNCH, **TRUST, **_trusted(_DEFAULTS, DEFAULTS, request.agent), **server, **settings}

    def fence(self, request: LaunchRequest) -> dict[str, str]:
        """Return the variables that keep the run within its reach; empty: it has no fence."""
        if not is_fenced(request):
            return {}
        settings = _trusted(_SETTINGS, SETTINGS if request.mcp_command else FENCE, request.agent)
        return {FENCE_NAME: hook_line(request, dialect="plain"), **settings} if settings else {}

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why runs of the agent have no fence: it finds hooks in files alone, and trusts none but root's."""
        return None if _trusted(_SETTINGS, FENCE, agent) else UNFENCED

    def events(self, request: LaunchRequest | None) -> GeminiEvents:
        """Return what its events mean, with nothing taken yet."""
        return GeminiEvents(resumed=request is not None and request.resume)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what it has settings for, but no flags."""
        name = agent.name
        sentences = without_list_of_tools(task, agent)
        if task.permissions.disallowed_tools:
            remedy = "deny them in a policy file, named with --policy in the agent's extra_args"
            sentences.append(f"{name} has no option for permissions.disallowed_tools; {remedy}")
        if task.max_turns is not None:
            remedy = "set model.maxSessionTurns in its settings.json"
            sentences.append(f"{name} has no option for max_turns; {remedy}")
        return sentences + split_by_commas(task, agent)


def _trusted(place: SettingsFile, file: Path, agent: AgentSpec) -> dict[str, str]:
    """Return the variable that names the file; empty: the user has one of theirs in its place, or it is not trusted."""
    return {} if place.is_taken(agent) or not _only_root_writes(file) else {place.variable: str(file)}


def _only_root_writes(path: Path) -> bool:
    """Whether the CLI would trust the file: it and its folders, links included, belong to root alone."""
    try:
        places = {path, *path.parents, path.resolve(), *path.resolve().parents}
        stats = [place.stat() for place in places]
    except OSError:
        return False
    return all(stat.st_uid == 0 and stat.st_mode & 0o022 == 0 for stat in stats)


KIND = Gemini()
