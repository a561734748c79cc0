"""The daemon as a service: what it tells the service manager, and when it tells nothing."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scenarios_support import document, ended, in_state, last_run, shim_file
from tests.e2e.site import Site
from tests.fakes.service_manager import Message, ServiceManager
from tests.patience import wait_until


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ServiceManager]:
    with ServiceManager(tmp_path / "notify") as listening:
        yield listening


def ready(message: Message) -> bool:
    return message.get("READY") == "1"


def alive(message: Message) -> bool:
    return message.get("WATCHDOG") == "1"


def test_it_is_ready_when_the_api_answers(site: Site, manager: ServiceManager) -> None:
    daemon = site.start(NOTIFY_SOCKET=manager.address)
    payload = manager.next(ready, "readiness")
    assert payload["MAINPID"] == str(daemon.pid)
    assert daemon.client.status().inbox == ()
    daemon.ready()  # once it has looked at the inbox as well, for which nobody waits
    assert not any("WATCHDOG" in message for message in manager.heard), "nobody asked for signs of life"


def test_an_abstract_socket_is_spoken_to(site: Site) -> None:
    with ServiceManager(f"@claudomator-test-{os.getpid()}-{time.monotonic_ns()}") as manager:
        site.start(NOTIFY_SOCKET=manager.address)
        manager.next(ready, "readiness")


def test_a_manager_that_has_gone_stops_nothing(site: Site, tmp_path: Path) -> None:
    daemon = site.start(NOTIFY_SOCKET=str(tmp_path / "nobody")).ready()
    site.drop("one.yaml", document("one"))
    assert ended(daemon, "one").state == "COMPLETED"


def test_the_status_line_counts(site: Site, manager: ServiceManager) -> None:
    site.configure(concurrency={"total": 1})
    daemon = site.start(NOTIFY_SOCKET=manager.address).ready()
    manager.status("running 0, queued 0, waiting 0, needs you 0")
    go_on = site.root / "go-on"
    site.drop("one.yaml", document("one", f"do: until [ -e {go_on} ]; do sleep 0.05; done"))
    manager.status("running 1, queued 0")
    site.drop("two.yaml", document("two", depends_on=["one"]))
    site.drop("three.yaml", document("three"))
    manager.status("running 1, queued 1, waiting 1")
    daemon.client.drain("maintenance")
    manager.status("drained; running 1")
    go_on.touch()
    manager.status("drained; running 0, queued 2")


def test_a_stop_is_told_and_the_agents_never_hear_of_the_manager(site: Site, manager: ServiceManager) -> None:
    daemon = site.start(NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="60000000").ready()
    site.drop("one.yaml", document("one", f"do: env > {site.root / 'seen'}"))
    ended(daemon, "one")
    seen = (site.root / "seen").read_text()
    assert "PATH=" in seen
    assert "NOTIFY_SOCKET" not in seen
    assert "WATCHDOG" not in seen
    manager.pending()
    assert daemon.stop() == 0
    assert {"STOPPING": "1"} in manager.pending()


def test_signs_of_life_come_only_from_ticks_that_end(site: Site, manager: ServiceManager) -> None:
    """The tick hangs while what it waits for does: the process that forks a shim for it."""
    daemon = site.start(NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="400000").ready()
    site.drop("first.yaml", document("first"))
    assert ended(daemon, "first").state == "COMPLETED"
    for _ in range(3):
        manager.next(alive, "a sign of life")
    go_on = site.root / "go-on"

    def fork_servers() -> list[int]:
        # The shim that it has forked ahead is in the session that it leads.
        servers = [pid for pid, command in site.processes().items() if "forkserver" in command]
        return [pid for pid in servers if os.getsid(pid) == pid]

    (fork_server,) = wait_until(fork_servers, "the fork server")
    os.kill(fork_server, signal.SIGSTOP)
    try:
        # Two shims need no fork: that of the first, which waits for another run, and one that was forked ahead.
        for name in ("second", "third"):
            site.drop(f"{name}.yaml", document(name, f"do: until [ -e {go_on} ]; do sleep 0.05; done"))
            in_state(daemon, name, "RUNNING")
            wait_until(shim_file(site, last_run(daemon, name).id).exists, f"the shim of {name}")
        site.drop("fourth.yaml", document("fourth"))
        in_state(daemon, "fourth", "RUNNING")
        manager.pending()
        assert manager.silent_for(1.5), "a daemon that hangs said that it was alive"
        assert daemon.running
    finally:
        os.kill(fork_server, signal.SIGCONT)
        go_on.touch()
    manager.next(alive, "a sign of life once the tick has ended")
    for name in ("second", "third", "fourth"):
        assert ended(daemon, name).state == "COMPLETED"


def test_a_reload_is_told_from_its_beginning_to_its_end(site: Site, manager: ServiceManager) -> None:
    daemon = site.start(NOTIFY_SOCKET=manager.address).ready()
    manager.next(ready, "readiness")
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    for good in (True, False):
        site.configure(concurrency={"total": 2 if good else "many"})
        daemon.send(signal.SIGHUP)
        payload = manager.next(lambda message: message.get("RELOADING") == "1", "the beginning of a reload")
        assert before <= int(payload["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        manager.next(ready, "its end")
