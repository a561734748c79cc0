"""``submit --wait`` and ``wait``: they follow what happens, whatever becomes of the daemon, and change no task."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from claudomator_py.domain.task import TaskSpec
from tests.e2e.scenarios_support import document, in_state, started
from tests.e2e.site import Site
from tests.patience import PATIENCE_S, wait_until

GATED = "do: until [ -e go ]; do sleep 0.05; done"


@contextmanager
def waiting(site: Site, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """``submit --wait`` on a task that ends once its folder has ``go`` in it."""
    (site.root / "gated.yaml").write_text(document(None, GATED, working_dir=str(site.work)))
    process = site.command.start("submit", "gated.yaml", "--wait", *arguments)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_the_wait_outlasts_a_killed_daemon_that_comes_back_elsewhere(site: Site) -> None:
    daemon = site.start().ready()
    first = site.endpoint
    with waiting(site, "-o", "json") as process:
        in_state(daemon, "gated", "RUNNING")
        assert process.stderr is not None
        wait_until(lambda: "RUNNING" in str(process.stderr and process.stderr.readline()), "the wait to tell of it")
        started(site)  # a run that is committed and has not begun is given up for another one
        daemon.kill()
        daemon = site.start().ready()
        assert site.endpoint != first
        (site.work / "go").touch()
        out, text = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, [task["state"] for task in json.loads(out)]) == (0, ["COMPLETED"])
    assert "gated: COMPLETED" in text
    assert daemon.client.task("gated").runs == 1


def test_one_that_runs_is_waited_for_by_name(site: Site) -> None:
    daemon = site.start().ready()
    daemon.client.submit(TaskSpec(name="gated", instructions=GATED, working_dir=str(site.work)))
    in_state(daemon, "gated", "RUNNING")
    with site.command.start("wait", "gated", "-o", "json") as process:
        (site.work / "go").touch()
        out, text = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, [task["state"] for task in json.loads(out)]) == (0, ["COMPLETED"]), text


def test_to_interrupt_the_wait_leaves_the_task(site: Site) -> None:
    daemon = site.start().ready()
    with waiting(site) as process:
        in_state(daemon, "gated", "RUNNING")
        assert process.stderr is not None
        wait_until(lambda: "RUNNING" in str(process.stderr and process.stderr.readline()), "the wait to tell of it")
        process.send_signal(signal.SIGINT)
        out, text = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "gated" in out
    assert "The tasks continue" in text
    assert daemon.client.task("gated").state == "RUNNING"
    (site.work / "go").touch()
    assert in_state(daemon, "gated", "COMPLETED").runs == 1


def test_without_a_person_the_wait_ends_for_an_approval_that_another_task_waits_for(site: Site) -> None:
    daemon = site.start().ready()
    work = str(site.work)
    daemon.client.submit(TaskSpec(name="first", instructions="do: true", working_dir=work, approval=True))
    in_state(daemon, "first", "NEEDS_INPUT")
    daemon.client.submit(TaskSpec(name="second", instructions="do: true", working_dir=work, depends_on=("first",)))
    (site.root / "third.yaml").write_text(document(None, "do: true", working_dir=work, depends_on=["second"]))
    done = site.command("submit", "third.yaml", "--wait", "--no-input")
    assert done.returncode == 6, done.stderr
    assert "first needs a person" in done.stderr
    daemon.client.approve("first")
    done = site.command("wait", "third", "--no-input")
    assert done.returncode == 0, done.stderr
