"""Agents that speak the Agent Client Protocol: what everybody may know of them."""

from dataclasses import replace

from claudomator_py.domain.kind import KindInfo, Reports


def _of(command: tuple[str, ...]) -> KindInfo:
    """Return what is known of the agent that the command starts."""
    from claudomator_py.agents.acp.profiles import profile_of  # few have such an agent

    profile = profile_of(command)
    counts = profile.usage not in ("none", "last_call", "unknown")
    if profile.dollars:
        reports = Reports.DOLLARS if counts else Reports.DOLLARS_ALONE
    else:
        reports = Reports.TOKENS if counts else Reports.NOTHING
    return replace(_INFO, reports=reports, mcp=profile.mcp != "none")


def _command(name: str) -> tuple[str, ...]:
    from claudomator_py.agents.acp.profiles import profiles

    profile = profiles().get(name)
    return profile.command if profile is not None else ()


_INFO = KindInfo(name="acp", reports=Reports.NOTHING, mcp=True, command_of=_command)
INFO = replace(_INFO, by_command=_of)
