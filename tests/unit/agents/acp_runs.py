"""Runs of the ACP client with the scripted agent: real processes, without a supervisor."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claudomator_py.agents.acp.kind import KIND
from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.outcome import Outcome, Tokens
from claudomator_py.domain.run import ExitRecord, Launch, LaunchRequest
from claudomator_py.domain.task import TaskSpec
from tests.fakes import acp
from tests.patience import PATIENCE_S

NOW_MS = 1_795_293_400_000
FAKE = Path(acp.__file__)


@dataclass(frozen=True)
class Ran:
    """What came of a run."""

    outcome: Outcome
    events: list[dict[str, Any]]
    heard: list[dict[str, Any]]
    """By the agent."""
    stderr: str

    def asked(self, method: str) -> list[dict[str, Any]]:
        """The parameters of the requests of that name."""
        return [message["params"] for message in self.heard if message.get("method") == method]

    @property
    def answers(self) -> list[dict[str, Any]]:
        """What the agent's own requests were answered."""
        return [message for message in self.heard if "method" not in message]


@dataclass
class Runs:
    """A folder with one scripted agent in it. program: by which name it is known; profiles go by that."""

    place: Path
    program: str = "scripted"

    def agent(self, script: dict[str, Any], **more: Any) -> AgentSpec:
        """The agent with that script."""
        (self.place / "script.json").write_text(json.dumps(script))
        (self.place / "heard").touch()
        path = self.place / self.program
        words = (sys.executable, "-I", "-S", str(FAKE), str(self.place / "script.json"), str(self.place / "heard"))
        path.write_text(f"#!/bin/sh\nexec {' '.join(words)}\n")
        path.chmod(0o755)
        return AgentSpec(name="an-agent", kind="acp", command=(str(path),), **more)

    def launch(
        self, script: dict[str, Any], *, task: TaskSpec | None = None, **request: Any
    ) -> tuple[Launch, LaunchRequest]:
        """What is started for a run with that script."""
        spec = task or TaskSpec(name="a-task", instructions="Do it.")
        agent = self.agent(script)
        model: ModelChoice | None = request.pop("model", None)
        conversation = request.pop("conversation", "none")
        asked = LaunchRequest("run", agent, spec, spec.instructions, model, conversation, **request)
        return KIND.launch(asked), asked

    def run(self, script: dict[str, Any], *, env: dict[str, str] | None = None, **request: Any) -> Ran:
        """Run it to its end."""
        launch, asked = self.launch(script, **request)
        ended = subprocess.run(
            launch.argv,
            input=launch.stdin.encode(),
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.place), **launch.env, **(env or {})},
            cwd=self.place,
            timeout=PATIENCE_S,
            check=False,
        )
        return self.read(asked, ended.stdout, ended.stderr, ended.returncode)

    def read(self, asked: LaunchRequest, stdout: bytes, stderr: bytes, code: int) -> Ran:
        """What came of what was printed."""
        reader = KIND.reader(asked)
        reader.feed("stdout", stdout)
        reader.feed("stderr", stderr)
        outcome = reader.outcome(ExitRecord(code, None, NOW_MS - 1_000, NOW_MS, None), NOW_MS)
        heard = (self.place / "heard").read_text().splitlines()
        return Ran(
            outcome,
            [json.loads(line) for line in stdout.decode().splitlines()],
            [json.loads(line) for line in heard],
            stderr.decode(),
        )


def task(**fields: Any) -> TaskSpec:
    """A task with the fields that matter."""
    return TaskSpec.model_validate({"name": "a-task", "instructions": "Do it.", **fields})


__all__ = ["NOW_MS", "Ran", "Runs", "Tokens", "task"]
