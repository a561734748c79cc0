"""``notifications``: the list, trying again, and a test."""

import json

from claudomator_py.domain.notice import DeliveryState
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService


def test_it_lists_what_was_told_newest_first(command: Command, prepared: PreparedService) -> None:
    prepared.add_delivery("phone", DeliveryState.DELIVERED)
    prepared.add_delivery("desk", DeliveryState.DEAD, "HTTP 404")
    lines = command("notifications").stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["2", "dead", "desk"], ["1", "delivered", "phone"]]
    assert "HTTP 404" in lines[1]
    dead = json.loads(command("notifications", "--state", "dead", "-o", "json").stdout)
    assert [entry["target"] for entry in dead] == ["desk"]


def test_an_empty_list_says_so(command: Command) -> None:
    done = command("notifications")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "There are no notifications.\n")


def test_what_is_dead_can_be_sent_again(command: Command, prepared: PreparedService) -> None:
    for _ in range(3):
        prepared.add_delivery("phone", DeliveryState.DEAD, "HTTP 404")
    assert command("notifications", "--retry", "2").returncode == 0
    assert prepared.deliveries() == ["dead", "pending", "dead"]
    refused = command("notifications", "--retry", "2")
    assert (refused.returncode, "Only one that was given up" in refused.stderr) == (1, True)
    assert command("notifications", "--retry-all").returncode == 0
    assert set(prepared.deliveries()) == {"pending"}


def test_a_test_says_whether_it_got_there(command: Command, prepared: PreparedService) -> None:
    prepared.add_target("phone")
    prepared.add_target("desk", "HTTP 403")
    assert command("notifications", "--test", "phone").returncode == 0
    failed = command("notifications", "--test", "desk")
    assert failed.returncode == 1
    assert "The test notification did not reach desk: HTTP 403." in failed.stderr
    unknown = command("notifications", "--test", "nobody")
    assert (unknown.returncode, "There is no target" in unknown.stderr) == (1, True)


def test_it_does_one_thing_at_a_time(command: Command) -> None:
    assert command("notifications", "--retry-all", "--test", "phone").returncode == 2
