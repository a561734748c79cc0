"""An inbox is one daemon's: who comes second is told whose it is, and nothing is left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.schema.settings import Inbox as Trusting
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.sources.inbox import InboxWatcher
from claudomator_py.sources.inbox.claims import Claims, InboxInUse
from tests.integration.inbox.fakes import MemoryIntake, drop, task
from tests.patience import wait_until

HOLD = """
import sys
from claudomator_py.sources.inbox.claims import Claims
claims = Claims()
claims.take_all(sys.argv[1:])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def claims() -> Iterator[Claims]:
    claims = Claims()
    yield claims
    claims.keep_only(())


@pytest.fixture
def holder(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process, whose the inbox is."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_the_holder_is_named_and_a_killed_one_leaves_nothing(
    folder: Path, claims: Claims, holder: subprocess.Popen[bytes]
) -> None:
    with pytest.raises(InboxInUse, match=f"inbox {folder}: another daemon .*watches it; stop that one") as refused:
        claims.take_all([str(folder)])
    if any(" FLOCK " in line for line in Path("/proc/locks").read_text().splitlines()):
        assert f"(pid {holder.pid})" in str(refused.value)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    claims.take_all([str(folder)])
    assert list(folder.iterdir()) == []


def test_all_or_none(folder: Path, tmp_path: Path, claims: Claims, holder: subprocess.Popen[bytes]) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(InboxInUse):
        claims.take_all([str(other), str(folder)])
    second = Claims()
    second.take_all([str(other)])
    second.keep_only(())
    assert holder.poll() is None


def test_a_folder_that_may_only_be_read_is_claimed_and_one_that_is_missing_later(
    folder: Path, tmp_path: Path, claims: Claims
) -> None:
    folder.chmod(0o500)
    claims.take_all([str(folder), str(tmp_path / "later")])
    other = Claims()
    assert other.take(str(folder)) is not None
    (tmp_path / "later").mkdir()
    assert claims.take(str(tmp_path / "later")) is None
    assert other.take(str(tmp_path / "later")) is not None
    claims.keep_only({str(folder)})
    assert other.take(str(tmp_path / "later")) is None
    other.keep_only(())


def test_the_claim_follows_what_is_at_the_path(folder: Path, tmp_path: Path, claims: Claims) -> None:
    claims.take_all([str(folder)])
    away = folder.rename(tmp_path / "away")
    assert claims.take(str(folder)) is None
    other = Claims()
    assert other.take(str(away)) is not None, "it may come back"
    folder.mkdir()
    assert claims.take(str(folder)) is None
    assert other.take(str(away)) is None
    assert other.take(str(folder)) is not None
    other.keep_only(())


def test_one_folder_under_two_paths_is_said(folder: Path, tmp_path: Path, claims: Claims) -> None:
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(InboxInUse, match=r"the same folder as .*; name it once in inbox\.paths"):
        claims.take_all([str(folder), str(tmp_path / "link")])


def test_where_there_are_no_such_locks_nothing_is_claimed(
    folder: Path, claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(9, os.strerror(9))

    monkeypatch.setattr("claudomator_py.sources.inbox.claims.fcntl.flock", refuse)
    claims.take_all([str(folder)])
    Claims().take_all([str(folder)])


def test_an_inbox_that_another_daemon_came_to_first_is_watched_once_that_ends(
    folder: Path, claims: Claims, holder: subprocess.Popen[bytes]
) -> None:
    intake = MemoryIntake()
    drop(folder, "a.yaml", task("a"))
    guard = InboxGuard(Trusting())
    inbox = InboxWatcher([folder], intake, on_change=lambda: None, guard=guard, rescan_s=3600, claim=claims.take)
    inbox.start()
    try:
        wait_until(lambda: "another daemon" in str(inbox.status()[str(folder)].problem))
        assert not intake.runs
        holder.kill()
        holder.wait()
        wait_until(lambda: intake.runs)
    finally:
        inbox.stop()
