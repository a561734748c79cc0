"""What readiness says besides the scheduler and the store: room on the disk, agents, and inboxes that can be read."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from claudomator_py.core.settings import no_agent_found
from claudomator_py.core.units import format_size
from claudomator_py.core.views import CheckView
from claudomator_py.service.inbox.values import FolderStatus
from claudomator_py.service.registry import AgentRegistry


def disk_check(state: Path, least: int) -> CheckView:
    """Whether there is room to start runs. least: ``limits.min_free``, in bytes."""
    try:
        free = shutil.disk_usage(state).free
    except OSError as error:
        detail = f"the state folder {state} cannot be looked at: {error.strerror}"
        return CheckView(name="disk", ok=False, detail=detail, remedy="see what became of it")
    have = f"{free // 2**20} MiB are free on the disk of the state folder"
    if free >= least:
        return CheckView(name="disk", ok=True, detail=have)
    detail = f"{have}, and nothing is started below {format_size(least)}"
    return CheckView(name="disk", ok=False, detail=detail, remedy="make room there, or lower limits.min_free")


def agent_check(registry: AgentRegistry, path: str, *, configured: bool) -> CheckView:
    """Whether any agent is open to balancing. path: where programs are looked for; configured: or agents are named.

    A configuration without any says so on purpose; a machine without any agent is told of, and goes on.
    """
    names = [agent.name for agent in registry.agents if agent.auto_select]
    if not names and not configured:
        remedy = (
            "install one and log in, or configure its program under agents; tasks that name no agent wait for one, "
            "and a service looks on the PATH of its unit"
        )
        return CheckView(name="agents", ok=False, detail=no_agent_found(path), remedy=remedy, blocking=False)
    detail = f"open to balancing: {', '.join(names)}" if names else "none is open to balancing, as configured"
    return CheckView(name="agents", ok=True, detail=detail, blocking=False)


def inbox_checks(status: Mapping[str, FolderStatus]) -> list[CheckView]:
    """Whether each inbox can be read."""
    return [_inbox_check(path, folder) for path, folder in sorted(status.items())]


def _inbox_check(path: str, folder: FolderStatus) -> CheckView:
    if folder.problem is None:
        detail = f"{path}: {folder.files} files accepted, {folder.refused} refused"
        return CheckView(name="inbox", ok=True, detail=detail)
    return CheckView(name="inbox", ok=False, detail=f"{path}: {folder.problem.message}", remedy=folder.problem.remedy)
