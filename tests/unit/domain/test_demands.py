"""Tasks with the same demands are refused by the same agents: their kinds look at nothing else."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.report import unmeasured
from claudomator_py.domain.task import TaskSpec
from claudomator_py.scheduler.lanes import demands
from tests.fakes.agents import CLAUDE_MODELS
from tests.fakes.steps import spec

TOOLS: Sequence[list[str]] = ([], ["Bash"], ["web*", "Edit"], ["Bash(git log:*)"], ["Read(a,b)"], ["Edit", "Read(a,b)"])
MODES = ("default", "acceptEdits", "plan", "bypassPermissions")
CHOICES: Mapping[str, Sequence[Any]] = {
    "max_turns": (None, 1, 7),
    "add_dirs": ([], ["/srv/lib"], ["/srv/a,b"], ["/srv/a*"], ["/srv/lib", "/srv/other"]),
    "env": ({}, {"CI": "1"}, {"IS_SANDBOX": "0"}, {"IS_SANDBOX": "1"}, {"OPENCODE_PERMISSION": "{}"}),
    "budget": ({}, {"usd": 1.0}, {"usd": 2.0}, {"tokens": 1000}, {"runs": 3}),
}
ENVS: tuple[Mapping[str, str], ...] = ({}, {"IS_SANDBOX": "1"}, {"OPENCODE_PERMISSION": "{}"})


AGENTS = [
    AgentSpec(name=f"{kind}-{number}", kind=kind, command=("prog",), models=CLAUDE_MODELS, env=dict(env))
    for kind in AGENT_KINDS
    for number, env in enumerate(ENVS)
]


def refusing(task: TaskSpec) -> list[str]:
    return [
        agent.name for agent in AGENTS if AGENT_KINDS[agent.kind].unsupported(task, agent) or unmeasured(task, agent)
    ]


def test_the_same_demands_are_refused_by_the_same_agents() -> None:
    chance = random.Random(1)
    seen: dict[str, tuple[Mapping[str, Any], list[str]]] = {}
    for _ in range(1_500):
        fields = {name: chance.choice(choices) for name, choices in CHOICES.items()}
        fields["permissions"] = {
            "mode": chance.choice(MODES),
            "allowed_tools": chance.choice(TOOLS),
            "disallowed_tools": chance.choice(TOOLS),
        }
        task = spec("t", **{name: value for name, value in fields.items() if value})
        refused = refusing(task)
        before, known = seen.setdefault(repr(demands(task)), (fields, refused))
        assert refused == known, (fields, before)
    assert len(seen) < 1_300, "hardly any two had the same demands"


def test_values_that_do_not_matter_make_no_difference() -> None:
    task_spec = spec("t", add_dirs=["/srv/a"], max_turns=3, env={"CI": "1"}, permissions={"allowed_tools": ["Edit"]})
    other = spec("t", add_dirs=["/srv/b", "/srv/c"], max_turns=9, permissions={"allowed_tools": ["Write", "Read"]})
    assert demands(task_spec) == demands(other) != demands(spec("t"))
    assert demands(spec("t")) == {}
