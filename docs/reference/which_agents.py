"""The page of which agents there are: what each can be held to, reports and resumes, and how it was tried."""

from claudomator_py.agents.acp.profiles import AcpProfile, profiles
from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.kinds import KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.kind import KindInfo, UsageReporting
from claudomator_py.domain.run import Conversations
from claudomator_py.schema.agent_settings import FOUND_KINDS
from docs.reference.markdown import code, page, table

_INTRODUCTION = """Any program can be an agent. What differs is how much Claudomator can hold it to, and how much it
says. Agents with a kind of their own are used as soon as their program is on PATH; the others are added to
the configuration. `claudomator agents --found` lists which of all these are installed, and what to
write."""
_OWN = """These are read by their own output: limits with their reset times, exit codes, tools that were denied.
How they were seen with the real programs is in [the agents, as they were seen](../agents.md)."""
_ACP = """These speak the Agent Client Protocol and are run by kind `acp`, which proves a turn before it believes
it ([ADR 51](../adr/0051-a-turn-is-proved.md)). "asks" means that the agent asks before it acts, so that
a task's permissions decide; "plan" that it has a mode in which it only reads; "reach" that it asks before
every command that does more than look, so that a run is kept within its
[reach](../how-to/reach.md): what goes further is denied, and a person is asked. What the
agent's own settings let it do without asking is not seen. What an agent does not report cannot be
budgeted."""
_ADD = """Whatever speaks the protocol, version 1, over standard input and output takes one line, whether or not
it is listed:

```yaml
agents:
  mine: {kind: acp, command: [my-agent, --acp]}
```

Of an agent that is not known nothing is believed that does not show, its permission requests are answered as those of
the others, and of several modes the one in which it asks is chosen by its name. A program that speaks nothing at all
is an agent of [kind `command`](../how-to/agents.md#any-program)."""
_REPORTS = {
    UsageReporting.NOTHING: "nothing",
    UsageReporting.TOKENS: "tokens",
    UsageReporting.DOLLARS: "tokens, dollars",
    UsageReporting.DOLLARS_ALONE: "dollars",
}


def which_agents() -> str:
    """All agents that are known."""
    own = ("kind", "starts", "within a reach", "reports", "continues", "tools over MCP", "logs in by")
    acp = ("agent", "starts", "held to", "reports", "continues", "MCP", "logs in by", "tried with")
    known = [profile for profile in profiles().values() if profile.command]
    notes = [f"- {profile.title}: {profile.note}" for profile in known if profile.note]
    return page(
        "Which agents",
        _INTRODUCTION,
        "## With a kind of their own",
        _OWN,
        table(own, (_own(KINDS[kind]) for kind in FOUND_KINDS)),
        "## By the Agent Client Protocol",
        _ACP,
        table(acp, map(_acp, sorted(known, key=lambda one: not one.is_tried))),
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
    held = ["asks" if profile.asks else "nothing: it never asks", *(["plan"] if "plan" in profile.modes else [])]
    held += ["reach"] if profile.fences else []
    return [
        code(profile.name),
        code(" ".join(profile.command)),
        ", ".join(held),
        _REPORTS[info.reports] if profile.is_tried else "not known",
        _yes(profile.resumes) if profile.is_tried else "where it says so",
        _yes(profile.mcp != "none") if profile.is_tried else "if it takes it",
        code(profile.login) if profile.login else "",
        profile.tried or "its documentation",
    ]


def _yes(said: bool) -> str:
    return "yes" if said else "no"
