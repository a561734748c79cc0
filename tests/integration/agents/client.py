"""The client of remote agents as a process."""

import time
from typing import Any

from claudomator_py.agents.a2a.kind import KIND
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.remote import Remote
from claudomator_py.domain.run import ExitRecord, LaunchRequest
from claudomator_py.domain.task import TaskSpec
from tests.patience import PATIENCE_S
from tests.warm import bare


def remote_at(url: str, **fields: Any) -> Remote:
    """What the client is told of the agent there."""
    return Remote(url=url, **fields)


def start(
    remote: Remote, prompt: str, conversation: str | None = None, env: dict[str, str] | None = None
) -> tuple[LaunchRequest, bare.Read]:
    """The client as a process, with the prompt on its stdin."""
    agent = AgentSpec(name="remote", kind="a2a", remote=remote)
    task = TaskSpec(name="t", instructions=prompt)
    request = LaunchRequest("run-1", agent, task, prompt, None, conversation or "", conversation is not None)
    launch = KIND.launch(request)
    environ = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", **(env or {})}
    return request, bare.of_runs().read(launch.argv, given=prompt.encode(), environ=environ)


def finish(request: LaunchRequest, process: bare.Read) -> Outcome:
    """What its run came to."""
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    reader = KIND.reader(request)
    reader.feed("stdout", stdout)
    reader.feed("stderr", stderr)
    now_ms = round(time.time() * 1000)
    outcome = reader.outcome(ExitRecord(process.returncode, None, now_ms - 1, now_ms), now_ms)
    assert stderr == b"", stderr
    assert (process.returncode == 0) == (outcome.status in (OutcomeStatus.SUCCEEDED, OutcomeStatus.NEEDS_INPUT))
    return outcome


def run(remote: Remote, prompt: str, conversation: str | None = None, env: dict[str, str] | None = None) -> Outcome:
    """What a whole run of it comes to."""
    return finish(*start(remote, prompt, conversation, env))
