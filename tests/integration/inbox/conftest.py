"""An inbox folder, an intake, and inboxes between them that are stopped at the end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claudomator_py.domain import crashpoint
from claudomator_py.schema.settings import Inbox as Trusting
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox import InboxWatcher
from claudomator_py.sources.inbox.ledger import AfterAccept
from tests.integration.inbox.fakes import InboxInSteps, MemoryIntake

MakeInbox = Callable[..., InboxWatcher]
MakeSteps = Callable[..., InboxInSteps]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "tasks"
    path.mkdir()
    return path


@pytest.fixture
def intake() -> MemoryIntake:
    return MemoryIntake()


@pytest.fixture
def make_inbox(folder: Path) -> Iterator[MakeInbox]:
    made: list[InboxWatcher] = []

    def make(
        intake: MemoryIntake,
        *paths: Path,
        on_change: Callable[[], None] = lambda: None,
        rescan_s: float = 3600.0,
    ) -> InboxWatcher:
        guard = InboxGuard(Trusting())
        inbox = InboxWatcher(paths or (folder,), intake, on_change=on_change, guard=guard, rescan_s=rescan_s)
        made.append(inbox)
        return inbox

    yield make
    for inbox in made:
        inbox.stop()


@pytest.fixture
def watching(make_inbox: MakeInbox, intake: MemoryIntake) -> InboxWatcher:
    return make_inbox(intake)


@pytest.fixture
def make_steps(folder: Path) -> MakeSteps:
    def make(
        intake: MemoryIntake, *paths: Path, after_accept: AfterAccept = "keep", trusting: Trusting | None = None
    ) -> InboxInSteps:
        return InboxInSteps(paths or (folder,), intake, InboxGuard(trusting or Trusting()), after_accept)

    return make


@pytest.fixture
def inbox(make_steps: MakeSteps, intake: MemoryIntake) -> InboxInSteps:
    return make_steps(intake)


class Crashed(BaseException):
    """The process is gone."""


@pytest.fixture
def crash_at() -> Iterator[Callable[[str], None]]:
    def install(name: str) -> None:
        def hook(reached: str) -> None:
            if reached == name:
                crashpoint.install(None)
                raise Crashed

        crashpoint.install(hook)

    yield install
    crashpoint.install(None)
