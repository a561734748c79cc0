"""``claudomator sessions``: the browsers that are logged in."""

import json

import pytest

from tests.fakes.command import Command
from tests.fakes.daemon import Daemon
from tests.unit.api.page.conftest import Visitor, log_in


@pytest.fixture
def browsers(daemon: Daemon) -> list[Visitor]:
    daemon.ask("DELETE", "/v1/sessions")
    return [log_in(daemon) for _ in range(2)]


def test_none_is_logged_in(command: Command, daemon: Daemon) -> None:
    daemon.ask("DELETE", "/v1/sessions")
    done = command("sessions", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "No browser" in done.stderr


def test_they_are_listed(command: Command, daemon: Daemon, browsers: list[Visitor]) -> None:
    lines = command("sessions", "list", "-o", "wide").stdout.splitlines()
    assert lines[0].split() == ["ID", "BROWSER", "PRINCIPAL", "SINCE", "USED", "EXPIRES", "HOST"]
    assert len(lines) == 1 + len(browsers)
    assert lines[1].split()[-1] == daemon.page_host


def test_one_is_logged_out(command: Command, browsers: list[Visitor]) -> None:
    first, second = json.loads(command("sessions", "list", "-o", "json").stdout)
    assert json.loads(command("sessions", "end", first["id"], "-o", "json").stdout)[0]["id"] == first["id"]
    assert [load["id"] for load in json.loads(command("sessions", "list", "-o", "json").stdout)] == [second["id"]]
    assert sorted(browser.get("/").status for browser in browsers) == [200, 401]
    again = command("sessions", "end", first["id"])
    assert again.returncode == 1
    assert "sessions list" in again.stderr


def test_log_out_everywhere(command: Command, browsers: list[Visitor]) -> None:
    assert command("sessions", "end", "--all").returncode == 0
    assert [browser.get("/").status for browser in browsers] == [401, 401]


@pytest.mark.parametrize("arguments", [(), ("any", "--all")])
def test_what_is_to_end_is_said(command: Command, arguments: tuple[str, ...]) -> None:
    assert command("sessions", "end", *arguments).returncode == 2
