"""``policy test``: the rules of a configuration asked about files, and ``policy show``."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from claudomator_py.__main__ import application
from claudomator_py.resources.policy import PolicyView, RuleView
from claudomator_py.resources.policy.cli import rules_table
from tests.fakes.command import Command

POLICY = """
policy:
  - name: no-production
    when: '"prod" in task.tags && actor.role != "admin"'
    deny: production is for admins
  - name: infra
    when: task.paths.exists(p, p.startsWith("infra/"))
    approve: {by: [admin], within: 12h}
  - name: nights
    when: now.hour >= 22
    tier: {ceiling: fast}
    tools: {mode: plan, disallowed_tools: [Bash]}
    concurrency: 1
  - name: dear
    when: spent.day.usd > 5.0
    exclude_agents: [claude]
  - name: never-the-dba
    when: task.specialist == "dba"
    deny: not the dba
budget: {timezone: UTC}
"""
TASK = "name: dig\ninstructions: Change infra/main.tf.\n"


def run(folder: Path, *arguments: str, task: str = TASK, policy: str = POLICY) -> tuple[int, str, str]:
    (folder / "claudomator.yaml").write_text(policy)
    (folder / "task.yaml").write_text(task)
    files = ["policy", "test", str(folder / "task.yaml"), "--config", str(folder / "claudomator.yaml")]
    result = CliRunner().invoke(application(), [*files, *arguments])
    return result.exit_code, result.stdout, f"{result.stderr}{result.exception or ''}"


def verdict(folder: Path, *arguments: str, **given: str) -> dict[str, Any]:
    _, printed, text = run(folder, *arguments, "-o", "json", **given)
    results: list[dict[str, Any]] = json.loads(printed)
    assert len(results) == 1, text
    return results[0]


NO_RULES = """
agents:
  claude: {}
  sh: {kind: command, command: [sh]}
  behind: {kind: command, command: [timeout, "60", nice, sh]}
  scripted: {kind: command, command: [sh, -c, "cat | bash -s"]}
  lint: {kind: command, command: [make, lint]}
  wrapped: {kind: command, command: [sh, -c, ./run.sh], reads_task: true}
  distant: {kind: a2a, url: "https://agents.example.com/"}
  player: {kind: simulated}
"""
DANGER = "name: danger\ninstructions: Delete the production database.\nagent: {type: %s}\n"


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("claude", "held"),
        ("distant", "held"),
        ("sh", "held"),
        ("wrapped", "held"),
        ("behind", "held"),
        ("scripted", "held"),
        ("lint", "allowed"),
        ("player", "allowed"),
    ],
)
def test_the_text_for_an_agent_that_does_what_it_is_configured_to_do_is_no_order(
    tmp_path: Path, agent: str, says: str
) -> None:
    """As the daemon has it; somebody who is to do it reads it."""
    results = verdict(tmp_path, task=DANGER % agent, policy=NO_RULES)
    assert results["verdict"] == says
    assert verdict(tmp_path, "--specialist", "dba", task=DANGER % agent, policy=NO_RULES)["verdict"] == "held"


def test_it_explains_rule_by_rule(tmp_path: Path) -> None:
    code, printed, _ = run(tmp_path, "--at", "2026-11-23T23:00:00Z")
    assert code == 0
    assert "dig is held, with low risk: the policy requires approval (infra)." in printed
    for words in (
        "Approval by admin within 12h.",
        "Tier from fast to fast.",
        "mode plan at most",
        "At most 1 at a time",
    ):
        assert words in printed
    fields = {line.split()[0]: line.split()[1] for line in printed.splitlines() if len(line.split()) > 1}
    assert (fields["no-production"], fields["infra"], fields["nights"], fields["dear"]) == ("no", "yes", "yes", "no")


def test_a_refused_task_ends_it_with_1(tmp_path: Path) -> None:
    task = TASK + "tags: [prod]\n"
    assert run(tmp_path, task=task)[0] == 0
    code, printed, _ = run(tmp_path, "--role", "operate", "--creator", "mara", task=task)
    assert code == 1
    assert "production is for admins" in printed


def test_what_a_file_does_not_say_can_be_assumed(tmp_path: Path) -> None:
    assert verdict(tmp_path, "--at", "2026-11-23T12:00:00Z", "--spent-usd", "9")["constraints"]["excluded_agents"] == [
        "claude"
    ]
    assert verdict(tmp_path, "--specialist", "dba")["verdict"] == "denied"


def test_what_is_built_in_is_told(tmp_path: Path) -> None:
    task = "name: dig\ninstructions: Drop the customers schema in production.\n"
    assert verdict(tmp_path, task=task)["rules"] == ["high-risk"]
    assert verdict(tmp_path, task=task, policy="routing: {preset: none}")["verdict"] == "allowed"


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ("policy: [{name: a, when: task.nope, deny: x}]", "task.nope"),
        ("policy: [{name: a, when: 'task.risk == \"hgih\"', deny: x}]", "did you mean `high`?"),
    ],
)
def test_a_bad_rule_is_named(tmp_path: Path, policy: str, text: str) -> None:
    code, _, message = run(tmp_path, policy=policy)
    assert code != 0
    assert text in message
    assert "policy[0].when" in message


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    code, _, text = run(tmp_path, task="name: dig\n")
    assert code == 2
    assert "instructions" in text


def test_without_rules_it_says_where_they_go(command: Command) -> None:
    done = command("policy", "show")
    assert done.returncode == 0
    assert "`policy` in the configuration" in done.stdout + done.stderr


def test_rules_that_are_built_in_are_shown_as_such() -> None:
    own = RuleView(name="mine", when='"prod" in task.tags', effects=("deny",), applied=2)
    built_in = RuleView(name="high-risk", effects=("approve",), applied=3)

    alone = rules_table(PolicyView(days=30, built_in=(built_in,)))
    both = rules_table(PolicyView(days=30, rules=(own,), built_in=(built_in,)))

    assert "no rules" not in alone
    assert "high-risk" in alone
    assert "built in: judged by the text of the task" in alone
    assert both.index("mine") < both.index("high-risk")
    assert "There are no rules" in rules_table(PolicyView(days=30))


def test_a_folder_without_task_files_and_a_time_that_is_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "claudomator.yaml").write_text(POLICY)
    config = ["--config", str(tmp_path / "claudomator.yaml")]
    empty = CliRunner().invoke(application(), ["policy", "test", str(tmp_path / "empty"), *config])
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "There are no task files." in empty.stderr
    code, _, text = run(tmp_path, "--at", "yesterday")
    assert code == 2
    assert "is not a time" in text


def test_agents_that_cannot_enforce_what_rules_demand_are_named(tmp_path: Path) -> None:
    agents = "agents: {claude: {}, codex: {}, mine: {kind: codex}, spare: {kind: simulated}}\n"
    rules = """
policy:
  - name: offline
    when: '"offline" in task.tags'
    tools: {disallowed_tools: [WebFetch]}
    exclude_agents: [mine, spare]
  - name: codex-alone
    when: '"codex" in task.tags'
    agents: [codex]
"""
    task = "name: dig\ninstructions: Dig.\ntags: [offline]\n"
    _, printed, _ = run(tmp_path, policy=agents + rules, task=task)
    assert "Not on codex: codex cannot keep to permissions.disallowed_tools" in printed
    assert "Not on claude" not in printed
    assert "Not on mine:" not in printed, "the rules exclude it anyway"
    assert "No agent is left" not in printed
    _, printed, _ = run(tmp_path, policy=agents + rules, task=task.replace("[offline]", "[offline, codex]"))
    assert "No agent is left: it would wait." in printed
    results = verdict(tmp_path, policy=rules, task=task)
    assert "claude" in results["agents"], "without a configuration of agents, any kind may be there"
    assert {"codex", "gemini"} <= results["unfit"].keys()
