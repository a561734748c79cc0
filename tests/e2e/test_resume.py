"""Restart with ``--resume``, from the command line to the agent's own process, which remembers."""

import json
import re
import shutil
from typing import Any

import pytest

from claudomator_py.client import DaemonNotRunning
from claudomator_py.domain.requests import RestartRequest
from claudomator_py.resources.runs import RunView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, last_run, why
from tests.e2e.site import Site
from tests.patience import wait_until

TOLD = "Dig a hole."


def begun(site: Site, *script: str, **fields: object) -> tuple[Daemon, RunView]:
    """A daemon, and the first run of the task ``dig``, which has ended."""
    daemon = site.start().ready()
    site.drop("dig.yaml", document(None, TOLD, *script, agent="simulated", **fields))
    ended(daemon, "dig")
    return daemon, last_run(daemon, "dig")


def resumed(daemon: Daemon, **request: Any) -> RunView:
    """Restart it so, and wait for the end of its run."""
    daemon.client.restart("dig", RestartRequest(resume=True, **request))
    ended(daemon, "dig")
    return last_run(daemon, "dig")


def remembered(daemon: Daemon, run: RunView) -> list[str]:
    """The prompts that the agent remembered when the run began."""
    start = json.loads(daemon.client.log(run.id).data.splitlines()[0])
    return list(start["remembered"])


def test_a_person_has_a_failed_task_go_on_where_it_stopped(site: Site) -> None:
    daemon, first = begun(site, "simulate: outcome=fail", "simulate: text=deeper", retry={"max_attempts": 1})
    assert daemon.client.task("dig").state == "FAILED"

    typed = site.command("restart", "dig", "--resume", "--reason", "Use the spade.")
    assert typed.returncode == 0, typed.stderr

    assert ended(daemon, "dig").result_text == "[simulated] deeper"
    second = last_run(daemon, "dig")
    assert second.resumes == first.id
    (text,) = remembered(daemon, second)
    assert text.startswith(TOLD)
    shown = site.command("show", "dig").stdout
    assert re.findall(rf"\b{first.id[:8]}\b(?!-)", shown) == [first.id[:8]] * 2, shown
    explained = site.command("why", "dig").stdout
    assert f"resumes the conversation of run {first.id[:8]} on simulated" in explained

    third = resumed(daemon)
    heard = remembered(daemon, third)
    assert len(heard) == 2
    assert heard[1].endswith("The operator adds:\n\nUse the spade.\n")


def test_a_command_that_makes_no_sense_says_what_to_do(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("run.yaml", document(None, "do: true"))
    ended(daemon, "run")
    typed = site.command("restart", "run", "--resume")
    assert typed.returncode != 0
    assert "which holds no conversations" in typed.stderr
    assert "Restart it without `resume`." in typed.stderr


def test_a_conversation_that_is_forgotten_begins_afresh(site: Site) -> None:
    daemon, first = begun(site)
    shutil.rmtree(site.state / "runs" / first.id / "work" / ".simulated")

    last = resumed(daemon, reason="Deeper.")

    assert [run.resumes for run in daemon.client.runs("dig")] == [None, first.id, None]
    assert (daemon.client.task("dig").state, daemon.client.task("dig").attempts) == ("COMPLETED", 1)
    assert remembered(daemon, last) == []
    assert f"The conversation of run {first.id[:8]} was given up: simulated no longer knows it." in why(daemon, "dig")


def test_a_forced_resumption_outlives_the_daemon_that_was_asked_for_it(site: Site) -> None:
    daemon = site.start(crash_at="restart-committed").ready()
    site.drop("dig.yaml", document(None, TOLD, "simulate: outcome=hang", "simulate: text=awake", agent="simulated"))
    in_state(daemon, "dig", "RUNNING")
    first = last_run(daemon, "dig")
    wait_until(lambda: b'"start"' in daemon.client.log(first.id).data, "the agent to begin")

    with pytest.raises(DaemonNotRunning):
        daemon.client.restart("dig", RestartRequest(resume=True, force=True, reason="Wake up."))
    daemon.wait()
    daemon = site.start().ready()

    assert ended(daemon, "dig").result_text == "[simulated] awake"
    last = last_run(daemon, "dig")
    assert (last.resumes, last.generation) == (first.id, 2)
    assert len(remembered(daemon, last)) == 1
