"""The page of the known agents: what can be enforced on each, what it reports and resumes, how it was tested."""

from claudomator_py.agents.acp.profiles import AcpProfile, profiles
from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.kinds import KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.kind import KindInfo, UsageReporting
from claudomator_py.domain.run import Conversations
from claudomator_py.schema.agent_settings import FOUND_KINDS
from docs.reference.markdown import code, page, table

_INTRODUCTION = """Any program can be an agent. Agents differ in what Claudomator can enforce on them and in what
they report. An agent with its own kind is used as soon as its program is on PATH; add the others to the
configuration. `claudomator agents --found` lists the installed ones, and what to write."""
_OWN = """Claudomator reads the output of these programs: limits with their reset times, exit codes, denied tools.
For results with the real programs, see [the agents, as observed](../agents.md)."""
_ACP = """These speak the Agent Client Protocol and are run by kind `acp`, which counts a turn as a success only on
evidence ([ADR 51](../adr/0051-a-turn-is-proved.md)). "asks" means that the agent asks before it acts, so that
a task's permissions decide; "plan" that it has a read-only mode; "reach" that it asks before every command
that does more than look, so that a run can be kept within its [reach](../how-to/reach.md): a call that goes
further is denied, and a person is asked. Claudomator does not see what the agent's own settings let it do
without asking. What an agent does not report cannot be budgeted."""
_ADD = """Any program that speaks version 1 of the protocol over standard input and output needs one line,
whether or not it is listed:

```yaml
agents:
  mine: {kind: acp, command: [my-agent, --acp]}
```

For an unlisted agent, only what its output proves counts. Its permission requests are answered like those of
the others; if it has several modes, the one in which it asks is chosen by its name. A program that does not
speak the protocol is an agent of [kind `command`](../how-to/agents.md#any-program)."""
_REPORTS = {
    UsageReporting.NOTHING: "nothing",
    UsageReporting.TOKENS: "tokens",
    UsageReporting.DOLLARS: "tokens, dollars",
    UsageReporting.DOLLARS_ALONE: "dollars",
}


def which_agents() -> str:
    """Return the page of all known agents."""
    own = ("kind", "starts", "reach", "reports", "continues", "tools over MCP", "logs in by")
    acp = ("agent", "starts", "enforced", "reports", "continues", "MCP", "logs in by", "tested with")
    known = [profile for profile in profiles().values() if profile.command]
    notes = [f"- {profile.title}: {profile.note}" for profile in known if profile.note]
    return page(
        "Which agents",
        _INTRODUCTION,
        "## Agents with their own kind",
        _OWN,
        table(own, (_own(KINDS[kind]) for kind in FOUND_KINDS)),
        "## Over the Agent Client Protocol",
        _ACP,
        table(acp, map(_acp, sorted(known, key=lambda one: not one.tried))),
        "\n".join(notes),
        "## Add one",
        _ADD,
    )


def _own(info: KindInfo) -> list[str]:
    resumes = AGENT_KINDS[info.name].conversations is not Conversations.NONE
    reports = _REPORTS[info.reports] + (", windows" if info.reports_windows else "")
    login = code(info.login.command) if info.login is not None else ""
    started = code(" ".join(info.command))
    return [code(info.name), started, _yes(info.fences), reports, _yes(resumes), _yes(info.mcp), login]


def _acp(profile: AcpProfile) -> list[str]:
    info = AgentSpec(name=profile.name, kind="acp", command=profile.command).info
    held = ["asks" if profile.asks else "nothing: it acts unasked", *(["plan"] if "plan" in profile.modes else [])]
    held += ["reach"] if profile.fences else []
    return [
        code(profile.name),
        code(" ".join(profile.command)),
        ", ".join(held),
        _REPORTS[info.reports] if profile.tried else "not known",
        _yes(profile.resumes) if profile.tried else "if it says so",
        _yes(profile.mcp != "none") if profile.tried else "if it supports it",
        code(profile.login) if profile.login else "",
        profile.tried or "its documentation",
    ]


def _yes(said: bool) -> str:
    return "yes" if said else "no"
