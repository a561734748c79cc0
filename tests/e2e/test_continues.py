"""``continues``: tasks that go on in one conversation, one after the other, whatever is killed on the way."""

import itertools
import json
from datetime import datetime

import pytest

from claudomator_py.resources.runs import RunView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, last_run, why
from tests.e2e.site import Site


def heard(daemon: Daemon, run: RunView) -> list[str]:
    """The first lines of the prompts that the agent remembered when the run began."""
    start = json.loads(daemon.client.log(run.id).data.splitlines()[0])
    return [prompt.splitlines()[0] for prompt in start["remembered"]]


def moment(text: str | None) -> datetime:
    assert text is not None
    return datetime.fromisoformat(text)


def drop_thread(site: Site) -> None:
    """A task, and three that continue it, one of them through another."""
    more = {"agent": None, "continues": "dig"}
    site.drop("fill.yaml", document(None, "Fill it.", "simulate: delay=200ms text=filled", **more))
    site.drop("water.yaml", document(None, "Water it.", "simulate: delay=200ms text=watered", **more))
    seed = {"agent": None, "continues": "fill"}
    site.drop("sow.yaml", document(None, "Sow.", "simulate: delay=200ms text=sown", **seed))
    site.drop("dig.yaml", document(None, "Dig a hole.", "simulate: delay=200ms text=dug", agent="simulated"))


def assert_one_after_the_other(daemon: Daemon) -> None:
    """All four are done, no two runs overlapped, and each heard all that were before it."""
    names = ("dig", "fill", "water", "sow")
    for name in names:
        assert ended(daemon, name, 60).state == "COMPLETED", why(daemon, name)
    runs = sorted(
        (run for name in names for run in daemon.client.runs(name) if run.state == "ended"),
        key=lambda run: moment(run.started_at),
    )
    assert len(runs) == 4, "none was done twice"
    for earlier, later in itertools.pairwise(runs):
        assert moment(earlier.ended_at) <= moment(later.started_at)
        assert later.resumes == earlier.id
    assert heard(daemon, runs[0]) == []
    messages = heard(daemon, runs[3])
    assert messages[0] == "Dig a hole."
    assert len(messages) == 3


def test_a_thread_goes_on_one_after_the_other(site: Site) -> None:
    site.configure(agents={"simulated": {"kind": "simulated", "auto_select": True, "max_concurrent": 4}})
    daemon = site.start().ready()
    drop_thread(site)
    assert_one_after_the_other(daemon)
    assert "It continues fill (COMPLETED), in the thread that task" in why(daemon, "sow")


@pytest.mark.parametrize("crash_at", ["start-committed:2", "start-spawned:3", "finish-committed"])
def test_whatever_is_killed_one_run_of_a_thread_lives(site: Site, crash_at: str) -> None:
    site.configure(agents={"simulated": {"kind": "simulated", "auto_select": True, "max_concurrent": 4}})
    drop_thread(site)
    site.start(crash_at=crash_at).wait()
    assert_one_after_the_other(site.start().ready())


def test_a_conversation_that_is_lost_goes_on_afresh_with_a_note(site: Site) -> None:
    site.configure(agents={"simulated": {"kind": "simulated", "auto_select": True}})
    daemon = site.start().ready()
    site.drop("dig.yaml", document(None, "Dig a hole.", "simulate: text=dug", agent="simulated"))
    ended(daemon, "dig")
    first = last_run(daemon, "dig")
    for kept in (site.state / "runs" / first.id / "work" / ".simulated").iterdir():
        kept.unlink()
    site.drop("fill.yaml", document(None, "Fill it.", "simulate: text=filled", agent=None, continues="dig"))
    assert ended(daemon, "fill").state == "COMPLETED", why(daemon, "fill")
    runs = daemon.client.runs("fill")
    assert [run.resumes for run in runs] == [first.id, None]
    assert daemon.client.task("fill").attempts == 1
    prompt = (site.state / "runs" / runs[1].id / "prompt.md").read_text()
    assert "This task continues another one, dig, which simulated has done." in prompt
    assert "[simulated] dug" in prompt


def test_it_waits_for_a_name_that_was_not_seen_yet(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("fill.yaml", document(None, "Fill it.", agent="simulated", continues="dig"))
    task = in_state(daemon, "fill", "WAITING")
    assert task.continues is not None
    assert (task.continues.name, task.continues.state) == ("dig", None)
    assert "dig (not seen yet)" in (task.reason_text or "")
