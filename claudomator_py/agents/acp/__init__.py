"""The kind ``acp``: agents that speak the Agent Client Protocol."""

from collections.abc import Mapping
from dataclasses import replace

from claudomator_py.domain.kind import KindInfo, Login, NamedAgent, UsageReporting


def _of(command: tuple[str, ...]) -> KindInfo:
    """Return the facts about the agent that the command starts."""
    from claudomator_py.agents.acp.profiles import profile_of  # late: few configurations have such an agent

    profile = profile_of(command)
    counts = profile.usage not in ("none", "last_call", "unknown")
    if profile.dollars:
        reports = UsageReporting.DOLLARS if counts else UsageReporting.DOLLARS_ALONE
    else:
        reports = UsageReporting.TOKENS if counts else UsageReporting.NOTHING
    login = Login(profile.keys, profile.login_files, profile.login) if profile.login else None
    account = profile.name if profile.command else None
    return replace(
        _INFO,
        reports=reports,
        mcp=profile.mcp != "none",
        own_account=account,
        fences=profile.fences,
        login=login,
        commands=profile.commands,
    )


def _named() -> Mapping[str, NamedAgent]:
    from claudomator_py.agents.acp.profiles import profiles

    known = (profile for profile in profiles().values() if profile.command)
    return {profile.name: NamedAgent(profile.title, profile.command, profile.login) for profile in known}


_INFO = KindInfo(name="acp", reports=UsageReporting.NOTHING, mcp=True, named=_named)
INFO = replace(_INFO, by_command=_of)
