"""The kind ``gemini``: start Gemini CLI."""

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

# The second process of a relaunch doubles the memory and gets no signals.
RELAUNCH = {"GEMINI_CLI_NO_RELAUNCH": "true"}
# workdir_roots decides where an agent may work; without this the CLI refuses to start in an untrusted folder.
TRUST = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
# Left alone it retries ten times: four minutes with the agent's slot taken and no other agent tried. The user's
# settings override this file. The CLI reads it only if nobody but root can write it, and warns otherwise, so then it is
# not named.
DEFAULTS = Path(__file__).with_name("defaults.json")
_DEFAULTS = SettingsFile("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", Path("/etc/gemini-cli/system-defaults.json"))

# It takes servers from files alone. This file comes before the user's and hides none of theirs. It starts the command
# in COMMAND_NAME, so users can put it into a file of theirs where the CLI does not trust this one.
SETTINGS = Path(__file__).with_name("settings.json")
_SETTINGS = SettingsFile("GEMINI_CLI_SYSTEM_SETTINGS_PATH", Path("/etc/gemini-cli/settings.json"))
COMMAND_NAME = "CLAUDOMATOR_MCP"
# SETTINGS has the hook as well, for fenced runs; this file has the hook alone, for runs without the MCP server.
FENCE = Path(__file__).with_name("fence.json")
UNFENCED = (
    "Gemini CLI takes hooks only from one settings file, which nobody but root may be able to write; install "
    "Claudomator as root, and leave GEMINI_CLI_SYSTEM_SETTINGS_PATH and /etc/gemini-cli/settings.json alone"
)


class Gemini(GeminiFamily):
    """The kind ``gemini``."""

    info = INFO
    package = "@google/gemini-cli"
    auto_edit = "auto_edit"

    def options(self, request: LaunchRequest) -> Sequence[str]:
        """Return the option that allows Claudomator's server alone, if the agent is to have no others."""
        alone = request.agent.mcp.own_servers is OwnServers.NONE
        return [f"--allowed-mcp-server-names={MCP_NAME}"] if alone else []

    def variables(self, request: LaunchRequest) -> dict[str, str]:
        """Return the variables of its environment: the settings files that it trusts, and what they start."""
        server = {COMMAND_NAME: shlex.join(request.mcp_command)} if request.mcp_command else {}
        settings = _trusted(_SETTINGS, SETTINGS, request.agent) if request.mcp_command else {}
        return {**RELAUNCH, **TRUST, **_trusted(_DEFAULTS, DEFAULTS, request.agent), **server, **settings}

    def fence(self, request: LaunchRequest) -> dict[str, str]:
        if not is_fenced(request):
            return {}
        settings = _trusted(_SETTINGS, SETTINGS if request.mcp_command else FENCE, request.agent)
        return {FENCE_NAME: hook_line(request, dialect="plain"), **settings} if settings else {}

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why the agent's runs cannot be fenced: hooks come from files alone, which must be root's."""
        return None if _trusted(_SETTINGS, FENCE, agent) else UNFENCED

    def events(self, request: LaunchRequest | None) -> GeminiEvents:
        return GeminiEvents(resumed=request is not None and request.resume)

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what of the task the CLI has only settings for, not options."""
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
    """Return the variable that names the file; empty: the user has a file there, or the CLI would not trust it."""
    return {} if place.is_taken(agent) or not _only_root_writes(file) else {place.variable: str(file)}


def _only_root_writes(path: Path) -> bool:
    """Whether the CLI trusts the file: it and its folders, links included, belong to root alone."""
    try:
        places = {path, *path.parents, path.resolve(), *path.resolve().parents}
        stats = [place.stat() for place in places]
    except OSError:
        return False
    return all(stat.st_uid == 0 and stat.st_mode & 0o022 == 0 for stat in stats)


KIND = Gemini()
