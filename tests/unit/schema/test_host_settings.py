"""Hosts in the configuration: what is refused, with line and remedy, and where a run goes."""

import subprocess
import sys

import pytest

from claudomator_py.domain.host import choose_host
from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.settings import Settings
from claudomator_py.schema.taskfile import parse_task

CLUSTER = {"kind": "slurm", "root": "/srv/runs"}


def test_an_agent_is_at_home_unless_it_says_otherwise() -> None:
    agents = {"claude": {}, "codex": {"hosts": ["local", "lab"]}, "gemini": {"hosts": "lab"}}
    settings = parse_settings({"hosts": {"lab": CLUSTER}, "agents": agents})
    assert isinstance(settings, Settings)
    assert [agent.hosts for agent in settings.agents.values()] == [("local",), ("local", "lab"), ("lab",)]
    assert settings.hosts["lab"].time_margin == 600_000


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ({"lab": {"kind": "slurm"}}, "root"),
        ({"lab": {**CLUSTER, "kind": "slurmd"}}, "slurm"),
        ({"lab": {**CLUSTER, "root": "runs"}}, "not an absolute path"),
        ({"lab": {**CLUSTER, "partitions": "night"}}, "partition"),
        ({"local": CLUSTER}, "this machine"),
        ({"lab": CLUSTER, "other": {**CLUSTER, "root": "/srv/runs/"}}, "folder of `lab`"),
        ({"lba": CLUSTER}, "there is no host `lab`"),
        ({"lab": {**CLUSTER, "licenses": {"clade": "x"}}}, "licenses.clade: is not an agent; did you mean `claude`?"),
    ],
)
def test_what_cannot_be_meant_is_refused(hosts: dict[str, object], text: str) -> None:
    problems = parse_settings(
        {"hosts": hosts, "agents": {"claude": {"hosts": ["lab"] if "lba" in hosts else ["local"]}}}
    )
    assert isinstance(problems, list)
    (problem,) = problems
    assert text in problem.render()


def test_a_rule_names_hosts_that_there_are() -> None:
    rules = [{"name": "a", "hosts": ["local", "lab"]}, {"name": "b", "exclude_hosts": ["lba"]}]
    problems = parse_settings({"hosts": {"lab": CLUSTER}, "policy": rules})
    assert isinstance(problems, list)
    assert [problem.field for problem in problems] == ["policy[1].exclude_hosts"]
    assert "did you mean `lab`?" in problems[0].render()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"needs": ["build"]}, "`depends_on` for tasks that must complete first"),
        ({"needs": {"cpus": 0}}, "needs.cpus"),
        ({"needs": {"memory": 16}}, "needs.memory"),
        ({"needs": {"gpu": 1}}, "did you mean `gpus`?"),
        ({"host": "local", "needs": {"gpus": 1}}, "name a cluster as `host`"),
    ],
)
def test_what_no_node_can_have_is_refused(fields: dict[str, object], text: str) -> None:
    problems = parse_task({"name": "t", "instructions": "Do it.", **fields})
    assert isinstance(problems, list)
    assert text in "\n".join(problem.render() for problem in problems)


@pytest.mark.parametrize(
    ("active", "waiting", "chosen"),
    [
        ({}, {}, "a"),
        ({"a": 1}, {}, "b"),
        ({"a": 1, "b": 2}, {}, "a"),
        ({"a": 1, "b": 2}, {"a": 1}, "b"),
        ({"a": 2, "b": 2}, {"a": 1, "b": 5}, "a"),
    ],
)
def test_a_run_goes_where_nothing_waits_then_to_the_least_active_then_by_name(
    active: dict[str, int], waiting: dict[str, int], chosen: str
) -> None:
    assert choose_host(("b", "a"), active, waiting) == chosen


def test_one_machine_takes_nothing_of_a_cluster_along() -> None:
    code = "import sys, claudomator_py.app.serving; print([name for name in sys.modules if 'slurm' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
