"""Questions and approvals, from the command line to the agent's own process, which remembers, and over crashes."""

import json

import pytest

from claudomator_py.client import ConnectionLost, DaemonNotRunning, ServiceProblem
from claudomator_py.resources.runs import RunView
from claudomator_py.resources.tasks import AnswerRequest, TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, last_run
from tests.e2e.site import Site
from tests.patience import wait_until

ASKS = "simulate: outcome=question text='Red or blue?'"
DONE = "simulate: text=painted"
ALLOWED = "shell(publish)"
PUBLISHES = f"simulate: needs={ALLOWED} write=published text=out"


def asking(site: Site, name: str, *script: str, **fields: object) -> tuple[Daemon, TaskView]:
    """A daemon, and a task of the simulated agent that needs a person."""
    daemon = site.start().ready()
    site.drop(f"{name}.yaml", document(None, "Paint it.", *script, agent="simulated", **fields))
    return daemon, in_state(daemon, name, "NEEDS_INPUT")


def remembered(daemon: Daemon, run: RunView) -> list[str]:
    """The prompts that the agent remembered when the run began."""
    start = json.loads(daemon.client.log(run.id).data.splitlines()[0])
    return list(start["remembered"])


def test_a_person_answers_and_the_agent_goes_on_where_it_asked(site: Site) -> None:
    daemon, task = asking(site, "fence", ASKS, ASKS, DONE, working_dir=str(site.work))
    first = last_run(daemon, "fence")
    assert (task.reason, task.reason_text) == ("question", "[simulated] Red or blue?")
    shown = site.command("status").stdout
    assert shown.index("NEEDS YOU") < shown.index("Red or blue?")
    typed = site.command("answer", "fence", "Blue.")
    assert typed.returncode == 0, typed.stderr
    wait_until(lambda: last_run(daemon, "fence").id != first.id, "the next run")
    in_state(daemon, "fence", "NEEDS_INPUT")
    assert site.command("answer", "fence", "--file", "-", stdin="Not red,\nblue.\n").returncode == 0
    task = ended(daemon, "fence")
    assert (task.state, task.result_text, task.attempts, task.generation) == ("COMPLETED", "[simulated] painted", 1, 1)
    last = last_run(daemon, "fence")
    assert remembered(daemon, last)[1:] == ["The operator answers your question:\n\nBlue.\n"]
    assert [run.resumes for run in daemon.client.runs("fence")][0::2] == [None, daemon.client.runs("fence")[1].id]
    again = site.command("answer", "fence", "Blue.")
    assert again.returncode == 1
    assert "fence is COMPLETED: nothing waits to be answered." in again.stderr


def test_a_denied_tool_is_allowed_by_a_person_and_then_works(site: Site) -> None:
    daemon, task = asking(site, "ship", PUBLISHES, PUBLISHES, working_dir=str(site.work))
    assert task.reason_text == "simulated asks to use shell(publish)"
    assert not (site.work / "published").exists()
    explained = site.command("why", "ship").stdout
    assert f"`claudomator approve ship` allows {ALLOWED};" in explained
    typed = site.command("approve", "ship")
    assert typed.returncode == 0, typed.stderr
    assert ended(daemon, "ship").state == "COMPLETED"
    assert (site.work / "published").read_text() == "out\n"


def test_what_was_denied_is_said_of_a_task_that_does_without(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("ship.yaml", document(None, PUBLISHES, agent="simulated", on_input="deny", working_dir=str(site.work)))
    task = ended(daemon, "ship")
    assert (task.state, task.denials, task.reason_text) == ("COMPLETED", 1, "done, with 1 denial")
    assert "done, with 1 denial" in site.command("status").stdout
    assert site.command("why", "ship").stdout.startswith("ship is COMPLETED: done, with 1 denial.")


def test_nothing_runs_before_the_approval_and_a_rejection_ends_it(site: Site) -> None:
    daemon, _ = asking(site, "one", DONE, approval=True)
    site.drop("two.yaml", document(None, "Paint.", agent="simulated", approval=True))
    in_state(daemon, "two", "NEEDS_INPUT")
    assert site.command("reject", "two", "Not today.").returncode == 0
    assert site.command("approve", "one").returncode == 0
    assert ended(daemon, "one").state == "COMPLETED"
    task = ended(daemon, "two")
    assert (task.reason, task.runs) == ("rejected", 0)
    assert (task.reason_text or "").endswith("Not today.")


def test_a_daemon_killed_after_the_answer_starts_the_next_run_once(site: Site) -> None:
    daemon, task = asking(site, "fence", ASKS, DONE)
    daemon.stop()
    killed = site.start(crash_at="input-committed").ready()
    with pytest.raises((ConnectionLost, DaemonNotRunning)):
        killed.client.answer("fence", AnswerRequest(text="Blue."), if_version=task.version, idempotency_key="once")
    assert killed.wait() == -9
    daemon = site.start().ready()
    answer = daemon.client.answer("fence", AnswerRequest(text="Blue."), if_version=task.version, idempotency_key="once")
    assert answer.version > task.version
    task = ended(daemon, "fence")
    assert (task.state, task.runs) == ("COMPLETED", 2)
    with pytest.raises(ServiceProblem):
        daemon.client.answer("fence", AnswerRequest(text="Blue."))


def test_a_daemon_killed_before_the_next_run_is_started_starts_it_once(site: Site) -> None:
    daemon, _ = asking(site, "fence", ASKS, DONE)
    daemon.stop()
    killed = site.start(crash_at="start-committed").ready()
    killed.client.answer("fence", AnswerRequest(text="Blue."))
    assert killed.wait() == -9
    daemon = site.start().ready()
    assert ended(daemon, "fence").state == "COMPLETED"
    begun = [run for run in daemon.client.runs("fence") if run.state != "revoked"]
    assert [run.resumes for run in begun] == [None, begun[0].id]
