"""Changes in words."""

import threading
from collections.abc import Callable
from pathlib import Path

from claudomator_py.domain.changes import RunChanges
from claudomator_py.hosts.git.changes import ChangeRecorder
from tests.integration.hosts.rig import PATH

Recorded = Callable[..., RunChanges]


def described(result: RunChanges) -> list[tuple[str, str, int | None, int | None]]:
    return [(file.path, file.change, file.added, file.removed) for file in result.files]


class SlowRecorder(ChangeRecorder):
    """Waits before the first look."""

    def __init__(self) -> None:
        super().__init__({"PATH": PATH})
        self.go_on = threading.Event()

    def before(self, run_dir: Path, folder: str) -> None:
        self.go_on.wait(30)
        super().before(run_dir, folder)
