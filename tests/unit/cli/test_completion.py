"""What a shell completes: names and ids that a running daemon knows, and nothing at all where it is not there."""

from dataclasses import replace

import pytest

from claudomator_py.domain.lifecycle import Completed
from claudomator_py.domain.worktree import Tree
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService


def completed(command: Command, typed: str) -> list[str]:
    """What bash is offered behind these words, the last of which is not complete."""
    variables = {"_CLAUDOMATOR_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = command(**variables)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("words", ["show", "why", "logs", "result", "cancel", "restart", "cancel other", "log --task"])
def test_tasks_are_completed_by_name_and_by_id(command: Command, prepared: PreparedService, words: str) -> None:
    nightly = prepared.add("nightly-triage", Completed())
    prepared.add("notes")
    prepared.add("other")
    assert sorted(completed(command, f"claudomator {words} n")) == ["nightly-triage", "notes"]
    assert completed(command, f"claudomator {words} nig") == ["nightly-triage"]
    assert nightly in completed(command, f"claudomator {words} {nightly[:4]}")
    assert completed(command, f"claudomator {words} zz") == []


def test_agents_and_specialists_are_completed(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("codex")
    prepared.add("it")
    for words in ("hold", "release", "restart it --agent", "status --agent", "decisions list --agent"):
        assert "codex" in completed(command, f"claudomator {words} co")
    for words in ("specialists show", "status --specialist", "channel create c --primary"):
        assert completed(command, f"claudomator {words} zz") == []


def test_an_old_task_is_completed_behind_however_many_newer_ones(
    command: Command, prepared: PreparedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = prepared.add("nightly-triage", Completed())
    monkeypatch.setattr("claudomator_py.cli.completion._MAX_OFFERED", 3)
    for number in range(5):
        prepared.add(f"other-{number}")
    assert completed(command, "claudomator show nig") == ["nightly-triage"]
    assert completed(command, f"claudomator show {old[:-1]}") == [old]
    assert len(completed(command, "claudomator show other")) == 3


def test_tags_decisions_tokens_and_sessions_are_completed(command: Command, prepared: PreparedService) -> None:
    prepared.add("it", tags=("shop", "night"))
    assert command("token", "create", "phone", "--role", "read").returncode == 0
    for words in ("list --tag", "status --tag", "cancel --tag", "restart --tag", "approve --tag", "add x --tag"):
        assert completed(command, f"claudomator {words} s") == ["shop"]
    assert completed(command, "claudomator token revoke p") == ["phone"]
    for words in ("decisions show", "sessions end", "specialists export", "channel create c"):
        assert completed(command, f"claudomator {words} zz") == []


def test_a_target_of_a_merge_is_a_branch_of_the_repository_of_the_task(
    command: Command, prepared: PreparedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = []
    for name, repository, onto in (("it", "/shop", "main"), ("other", "/shop", "main-2"), ("far", "/blog", "master")):
        task = prepared.add(name, Completed())
        tree = Tree(
            name, f"/{name}", f"claudomator/{name}", task, repository, "", None, left_out=False, submodules=False
        )
        trees.append(replace(tree, onto=f"refs/heads/{onto}"))
    monkeypatch.setattr(prepared.world.trees, "all", lambda: trees)
    for words in ("merge it --into", "pr it --into"):
        assert sorted(completed(command, f"claudomator {words} m")) == ["main", "main-2"]
    assert completed(command, "claudomator merge far --into c") == ["claudomator/far"]


@pytest.mark.parametrize("words", ["show", "hold", "specialists show", "schedule pause", "channel show"])
def test_where_no_daemon_runs_nothing_is_completed_and_nothing_is_said(offline: Command, words: str) -> None:
    assert completed(offline, f"claudomator {words} n") == []
    (offline.home / "claudomator.yaml").write_text("concurency: {total: 2}\n")
    assert completed(offline, f"claudomator {words} n") == []
