"""Rules that take all the time or memory there is, in a real daemon: it holds the tasks, and all else goes on."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state
from tests.e2e.site import Site
from tests.patience import wait_until
from tests.unit.policy.hostile import MEMORY, TIME

PATHS = " ".join(f"src/file{number}.py" for number in range(200))
LONG = f"{PATHS}\n{'words ' * 160_000}".rstrip()
RULES = [
    {"name": "wide", "when": f"size(task.text) > 5000 && {TIME[0]}", "approve": {}},
    {"name": "deep", "when": f"size(task.text) > 5000 && {MEMORY[0]}", "deny": "too deep"},
    {"name": "own", "when": "size(task.tags) > 0 && task.name.matches(task.tags[0])", "deny": "it says so itself"},
]


def evaluators(daemon: Daemon) -> list[int]:
    """The processes in which it has conditions evaluated."""
    results = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == daemon.pid and b"claudomator_py.policy.evaluator" in (folder / "cmdline").read_bytes():
                results.append(int(folder.name))
    return results


def test_tasks_beyond_the_budget_of_a_rule_are_held_and_others_run(site: Site) -> None:
    site.configure(policy=RULES)
    daemon = site.start().ready()
    for number in range(2):
        site.drop(f"hostile{number}.yaml", document(f"hostile{number}", LONG))
    site.drop("pattern.yaml", document("pattern", tags=[r"(?i)(\pL{90}|\w{90}){9}"]))
    site.drop("plain.yaml", document("plain", tags=["docs"]))

    assert ended(daemon, "plain").state == "COMPLETED"
    held = [in_state(daemon, f"hostile{number}", "NEEDS_INPUT") for number in range(2)]
    for task in held:
        assert "wide: its condition could not be evaluated: it takes more than 0.5 s" in str(task.reason_text)
        assert "deep: its condition could not be evaluated: it takes more than" in str(task.reason_text)
    assert in_state(daemon, "pattern", "NEEDS_INPUT", "COMPLETED").name == "pattern"
    assert daemon.running
    assert len(evaluators(daemon)) == 1

    (before,) = evaluators(daemon)
    os.kill(before, signal.SIGKILL)
    site.drop("more.yaml", document("more", tags=["docs"]))
    assert ended(daemon, "more").state == "COMPLETED"

    (after,) = evaluators(daemon)
    assert after != before
    assert daemon.stop() == 0
    wait_until(lambda: not Path(f"/proc/{after}/cmdline").exists(), "the end of the evaluator")
