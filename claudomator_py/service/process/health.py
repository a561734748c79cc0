"""What readiness says besides the scheduler and the store: room on the disk, and inboxes that can be read."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from claudomator_py.core.units import format_size
from claudomator_py.core.views import CheckView
from claudomator_py.service.inbox.values import FolderStatus


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


def inbox_checks(status: Mapping[str, FolderStatus]) -> list[CheckView]:
    """Whether each inbox can be read."""
    return [_inbox_check(path, folder) for path, folder in sorted(status.items())]


def _inbox_check(path: str, folder: FolderStatus) -> CheckView:
    if folder.problem is None:
        detail = f"{path}: {folder.files} files accepted, {folder.refused} refused"
        return CheckView(name="inbox", ok=True, detail=detail)
    return CheckView(name="inbox", ok=False, detail=f"{path}: {folder.problem.message}", remedy=folder.problem.remedy)
