"""Starting nothing new, by an operator's word or at the end of the daemon, while what runs goes on."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, started, waits_for, why
from tests.e2e.site import Site
from tests.patience import wait_until


@pytest.fixture
def go_on(site: Site) -> Iterator[Path]:
    """Runs of ``waiting`` end once it is there."""
    path = site.root / "go-on"
    yield path
    path.touch()


def waiting(name: str, go_on: Path, **fields: object) -> str:
    """A task that runs until then."""
    return document(name, f"do: until [ -e {go_on} ]; do sleep 0.05; done", **fields)


def check(daemon: Daemon, name: str) -> tuple[bool, str]:
    result = next(check for check in daemon.client.readiness().checks if check.name == name)
    return result.ok, result.detail


def test_a_drained_daemon_starts_nothing_and_says_so_everywhere(site: Site, go_on: Path) -> None:
    daemon = site.start().ready()
    site.drop("one.yaml", waiting("one", go_on, check=[site.ledger.check()]))
    started(site, 1)
    drain = daemon.client.drain("a new disk")
    assert (drain.drained, drain.reason, drain.running) == (True, "a new disk", 1)
    assert daemon.client.drain("another word").reason == "a new disk"
    site.drop("two.yaml", document("two"))
    waits_for(daemon, "two", "drained")
    assert "claudomator undrain" in why(daemon, "two")
    assert not daemon.client.readiness().ready
    ok, detail = check(daemon, "drain")
    assert (ok, "a new disk" in detail) == (False, True)
    assert [check.name for check in daemon.client.status().trouble] == ["drain"]
    go_on.touch()
    assert ended(daemon, "one").state == "COMPLETED", "its check belongs to it"
    assert daemon.client.drain_state().running == 0
    assert daemon.client.task("two").state == "QUEUED"
    assert not daemon.client.undrain().drained
    assert ended(daemon, "two").state == "COMPLETED"
    assert daemon.client.readiness().ready


def test_it_stays_drained_over_a_crash(site: Site) -> None:
    daemon = site.start().ready()
    daemon.client.drain()
    daemon.kill()
    daemon = site.start().ready()
    site.drop("one.yaml", document("one"))
    waits_for(daemon, "one", "drained")
    daemon.client.undrain()
    assert ended(daemon, "one").state == "COMPLETED"


def test_the_commands(site: Site, go_on: Path) -> None:
    daemon = site.start().ready()
    command = site.command
    site.drop("one.yaml", waiting("one", go_on))
    started(site, 1)
    late = command("drain", "--wait", "--timeout", "200ms")
    assert (late.returncode, "the daemon stays drained" in late.stderr) == (124, True)
    assert "nothing is started" in command("status").stdout
    go_on.touch()
    done = command("drain", "--wait", "-o", "json")
    assert (done.returncode, json.loads(done.stdout)["running"]) == (0, 0)
    assert ended(daemon, "one").state == "COMPLETED"
    assert command("drain", "--off").stdout.split() == ["drained", "no", "running", "0"]
    assert command("undrain").returncode == 0
    assert command("drain", "--off", "--wait").returncode == 2


@pytest.mark.parametrize("by", ["configuration", "environment"])
def test_the_end_of_the_daemon_awaits_the_runs_if_it_is_to(site: Site, go_on: Path, by: str) -> None:
    site.configure(**({"on_stop": "drain"} if by == "configuration" else {}))
    daemon = site.start(**({} if by == "configuration" else {"CLAUDOMATOR_ON_STOP": "drain"})).ready()
    site.drop("one.yaml", waiting("one", go_on, check=[site.ledger.check()]))
    started(site, 1)
    daemon.send(signal.SIGTERM)
    wait_until(lambda: not check(daemon, "scheduler")[0], "the daemon to stop")
    assert "stopping" in check(daemon, "scheduler")[1]
    site.drop("two.yaml", document("two"))
    in_state(daemon, "two", "QUEUED")
    go_on.touch()
    assert daemon.wait() == 0
    assert [entry.what for entry in site.ledger.entries()] == ["start", "end", "check"]
    daemon = site.start().ready()
    assert daemon.client.task("one").state == "COMPLETED"
    assert ended(daemon, "two").state == "COMPLETED", "a stop is no drain that lasts"


def test_a_second_signal_ends_it_at_once_and_the_run_goes_on(site: Site, go_on: Path) -> None:
    site.configure(on_stop="drain")
    daemon = site.start().ready()
    site.drop("one.yaml", waiting("one", go_on))
    started(site, 1)
    daemon.send(signal.SIGTERM)
    wait_until(lambda: not check(daemon, "scheduler")[0], "the daemon to stop")
    assert daemon.running, "it awaits the run"
    daemon.send(signal.SIGTERM)
    assert daemon.wait() == 1
    daemon = site.start().ready()
    assert daemon.client.task("one").state == "RUNNING"
    go_on.touch()
    assert (ended(daemon, "one").state, daemon.client.task("one").runs) == ("COMPLETED", 1)
