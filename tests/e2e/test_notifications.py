"""Somebody is told, by a real daemon through a real command, over crashes of the one and faults of the other."""

import json
import signal
import sys
from pathlib import Path

from claudomator_py.client import ServiceProblem
from claudomator_py.client.http import Client
from claudomator_py.domain.notice import DeliveryState
from tests.e2e.site import Site
from tests.patience import wait_until

SCRIPT = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
notice = json.load(sys.stdin)
if (folder / "refuse").exists():
    sys.exit("the phone is off")
with (folder / "told").open("a") as told:
    told.write(json.dumps(notice) + "\\n")
"""


def telling(site: Site, *kinds: str) -> Path:
    """Have the daemon tell a script of these; the folder in which the script keeps what it was told."""
    folder = site.root / "phone"
    folder.mkdir()
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(folder / "script.py"), str(folder)]
    site.configure(notify={"phone": {"kind": "command", "command": command, "events": list(kinds)}})
    return folder


def told(folder: Path) -> list[str]:
    file = folder / "told"
    return [json.loads(line)["title"] for line in file.read_text().splitlines()] if file.exists() else []


def test_each_end_is_told_once_whatever_becomes_of_the_daemon(site: Site) -> None:
    folder = telling(site, "completed", "failed")
    daemon = site.start().ready()
    site.drop("good.yaml", "instructions: hi\nagent: {type: sh}\n")
    site.drop("bad.yaml", 'instructions: "do: exit 3"\nagent: {type: sh}\nretry: {max_attempts: 1}\n')
    # One that a daemon could not record any more would be told again.
    wait_until(lambda: len(daemon.client.notifications(DeliveryState.DELIVERED).items) == 2, "two notices")
    daemon.kill()
    again = site.start().ready()
    site.drop("third.yaml", "instructions: hi\nagent: {type: sh}\n")
    wait_until(lambda: len(told(folder)) == 3, "the third notice")
    assert sorted(told(folder)[:2]) == ["bad: failed (agent_error)", "good: completed"]
    assert told(folder)[2] == "third: completed"
    wait_until(lambda: len(again.client.notifications(DeliveryState.DELIVERED).items) == 3, "its record")


def test_what_happened_without_a_daemon_to_tell_of_it_is_told_by_the_next(site: Site) -> None:
    folder = telling(site, "completed")
    (folder / "refuse").touch()
    daemon = site.start(crash_at="notice-sent").ready()
    site.drop("good.yaml", "instructions: hi\nagent: {type: sh}\n")
    wait_until(lambda: [item.error for item in daemon.client.notifications().items if item.error], "a refusal")
    assert "the phone is off" in str(daemon.client.notifications().items[0].error)
    daemon.kill()
    (folder / "refuse").unlink()
    again = site.start().ready()
    wait_until(lambda: told(folder), "the notice after its pause")
    assert told(folder) == ["good: completed"]
    wait_until(lambda: again.client.notifications(DeliveryState.DELIVERED).items, "the delivery to be recorded")


def test_a_target_that_came_with_a_reload_can_be_tested_at_once(site: Site) -> None:
    daemon = site.start().ready()
    folder = telling(site, "failed")
    daemon.send(signal.SIGHUP)
    wait_until(lambda: _tested(daemon.client), "the target to be there")
    assert told(folder) == ["A test of Claudomator's notifications"]


def _tested(client: Client) -> bool:
    try:
        return client.test_notification("phone").state is DeliveryState.DELIVERED
    except ServiceProblem:
        return False
