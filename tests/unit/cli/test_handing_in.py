"""A submission whose answer gets lost is repeated, and makes one task."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.api.guard.limits import Rate, RequestLimits
from claudomator_py.resources.tasks import cli_submit as submitting
from tests.fakes.command import Command
from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService
from tests.fakes.wire import Wire, wire_to


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[Wire]:
    with wire_to(daemon.address) as wire:
        yield wire


@pytest.fixture
def submit(command: Command, daemon: Daemon, wire: Wire) -> Command:
    """Its commands go over the wire."""
    for name in ("a", "b"):
        (command.home / f"{name}.yaml").write_text("instructions: Do it.\n")
    return type(command)(
        command.home, {**command.environ, "CLAUDOMATOR_URL": wire.url, "CLAUDOMATOR_TOKEN": daemon.token}
    )


@pytest.mark.parametrize("cuts", [1, 3])
def test_lost_answers_make_no_second_task(submit: Command, prepared: PreparedService, wire: Wire, cuts: int) -> None:
    wire.cuts = cuts
    done = submit("submit", "a.yaml", "b.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert [spec.name for spec in prepared.specs()] == ["a", "b"]
    assert all(task_id in done.stdout for task_id in prepared.task_ids())
    assert wire.requests == cuts + 2


def test_two_commands_make_two_tasks(submit: Command, prepared: PreparedService) -> None:
    for _ in range(2):
        assert submit("submit", "a.yaml").returncode == 0
    assert len(prepared.task_ids()) == 2


def test_in_the_end_it_says_that_it_does_not_know(
    submit: Command, prepared: PreparedService, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitting, "_TRIES", 3)
    wire.cuts = 100
    done = submit("submit", "a.yaml")
    assert done.returncode == 3
    assert "Cannot tell whether a was accepted" in done.stderr
    assert "claudomator status" in done.stderr
    assert wire.requests == 3
    assert len(prepared.task_ids()) == 1


def test_without_a_daemon_nothing_is_tried_again(offline: Command, tmp_path: Path) -> None:
    (offline.home / "a.yaml").write_text("instructions: Do it.\n")
    done = offline("submit", "a.yaml", CLAUDOMATOR_URL="http://127.0.0.1:1", CLAUDOMATOR_TOKEN="x" * 32)
    assert done.returncode == 3
    assert "claudomator serve" in done.stderr


def test_a_daemon_that_asks_to_wait_is_waited_for(offline: Command, tmp_path: Path) -> None:
    prepared = PreparedService()
    for name in ("a", "b"):
        (offline.home / f"{name}.yaml").write_text("instructions: Do it.\n")
    with running(prepared, tmp_path / "state", limits=RequestLimits(changes=Rate(per_second=2, burst=1))) as daemon:
        variables = {"CLAUDOMATOR_URL": daemon.url, "CLAUDOMATOR_TOKEN": daemon.token}
        done = offline("submit", "a.yaml", "b.yaml", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert [spec.name for spec in prepared.specs()] == ["a", "b"]
