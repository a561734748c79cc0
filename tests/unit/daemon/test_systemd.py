"""The notify protocol, heard by a real socket."""

import os
import time
from pathlib import Path

import pytest

from claudomator_py.daemon.systemd import Notifier
from tests.fakes.service_manager import ServiceManager


def test_each_thing_that_is_told(tmp_path: Path) -> None:
    with ServiceManager(tmp_path / "notify") as manager:
        notifier = Notifier(manager.address, watchdog_s=1.0)
        notifier.ready()
        notifier.reloading()
        notifier.alive()
        notifier.extend_timeout(90)
        notifier.stopping()
        heard = manager.pending()
    assert heard[0] == {"READY": "1", "MAINPID": str(os.getpid())}
    assert heard[1]["RELOADING"] == "1"
    assert time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000 - int(heard[1]["MONOTONIC_USEC"]) >= 0
    assert heard[2:] == [{"WATCHDOG": "1"}, {"EXTEND_TIMEOUT_USEC": "90000000"}, {"STOPPING": "1"}]


def test_a_status_is_one_line_and_sent_when_it_changes(tmp_path: Path) -> None:
    with ServiceManager(tmp_path / "notify") as manager:
        notifier = Notifier(manager.address)
        for text in ("one", "one", "two\nREADY=1", "one"):
            notifier.status(text)
        assert manager.pending() == [{"STATUS": "one"}, {"STATUS": "two READY=1"}, {"STATUS": "one"}]


def test_an_abstract_address() -> None:
    with ServiceManager(f"@claudomator-test-{os.getpid()}") as manager:
        Notifier(manager.address).stopping()
        assert manager.pending() == [{"STOPPING": "1"}]


@pytest.mark.parametrize("address", [None, "", "vsock:2:1", "@", "relative"])
def test_without_a_usable_address_nothing_happens(address: str | None) -> None:
    notifier = Notifier.from_environ({} if address is None else {"NOTIFY_SOCKET": address})
    notifier.ready()
    assert not notifier.enabled


def test_a_full_or_missing_socket_stops_nothing(tmp_path: Path) -> None:
    Notifier(str(tmp_path / "nobody")).ready()
    with ServiceManager(tmp_path / "notify") as manager:
        notifier = Notifier(manager.address, watchdog_s=1.0)
        for _ in range(2_000):
            notifier.alive()  # nobody reads, and it never blocks
        assert manager.pending()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "3000000"}, 1.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "own"}, 1.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_signs_of_life_are_due_in_half_the_time_allowed(environ: dict[str, str], seconds: float | None) -> None:
    own = {name: str(os.getpid()) for name, value in environ.items() if value == "own"}
    assert Notifier.from_environ(environ | own).watchdog_s == seconds
