"""``diagnose`` and the notes of ``validate``: what the program knows of its agents, without a daemon."""

import json
import os
from pathlib import Path

from tests.fakes.command import Command

RUN = Path(__file__).parents[2] / "fixtures" / "recordings" / "claude" / "2.1.330" / "oauth_rejected_5h"


def test_a_saved_run_is_read_to_its_outcome(offline: Command) -> None:
    files = ("--stdout", f"{RUN}.stdout")
    done = offline("diagnose", "--agent", "claude", *files, "--exit-code", "1", "-o", "json")

    outcome = json.loads(done.stdout)
    assert done.returncode == 0
    assert (outcome["status"], outcome["reason"], outcome["limit"]) == ("limited", "rate_limited", "five_hour")
    assert (outcome["reset_at"], outcome["provenance"]) == ("2026-11-21T23:36:06.000Z", "reported")
    assert "quota" in offline("diagnose", "--agent", "claude", *files, "--exit-code", "1").stdout


def test_without_an_exit_code_the_run_was_lost_unless_it_said_how_it_ended(offline: Command) -> None:
    (offline.home / "half").write_text('{"type": "system", "subtype": "init", "session_id": "s"}\n')
    done = offline("diagnose", "--agent", "claude", "--stdout", "half", "-o", "json")
    assert json.loads(done.stdout)["status"] == "lost"


def test_a_clock_time_counts_from_when_the_run_was_saved(offline: Command) -> None:
    saved = offline.home / "said"
    saved.write_text("You've hit your session limit · resets 6:47pm (UTC)\n")
    os.utime(saved, (1_790_000_000, 1_790_000_000))  # 2026-09-21T14:13:20Z
    done = offline("diagnose", "--agent", "claude", "--stdout", "said", "--exit-code", "1", "-o", "json")
    assert json.loads(done.stdout)["reset_at"] == "2026-09-21T18:47:00.000Z"


def test_an_unknown_kind_and_an_unreadable_file_say_what_to_do(offline: Command) -> None:
    unknown = offline("diagnose", "--agent", "claud", "--exit-code", "0")
    missing = offline("diagnose", "--agent", "claude", "--stdout", "nowhere")
    assert (unknown.returncode, missing.returncode) == (2, 2)
    assert "`claude`" in unknown.stderr
    assert "nowhere cannot be read" in missing.stderr


def test_validate_speaks_of_the_agents_that_are_configured_and_as_they_are(offline: Command) -> None:
    (offline.home / "t.yaml").write_text("instructions: x\nmax_turns: 3\nbudget: {usd: 1}\n")
    (offline.home / "claudomator.yaml").write_text(
        "agents:\n  claude: {}\n  lint: {kind: command, command: [make, lint]}\n"
        "  codex: {auto_select: false}\n  gemini: {prices: {m: {input: 1, output: 1}}, models: {balanced: m}}\n"
    )
    stdout = offline("validate", "t.yaml").stdout
    assert "note: t: gemini has no option for max_turns" in stdout
    for absent in ("codex", "opencode", "qwen", "lint", "has no price"):
        assert absent not in stdout


def test_validate_warns_of_what_is_not_there(offline: Command) -> None:
    (offline.home / "t.yaml").write_text(
        "instructions: x\nworking_dir: ~/shop\nisolation: worktree\nadd_dirs: [~/docs]\ncheck: [no-such-program]\n"
    )
    done = offline("validate", "t.yaml")
    assert done.returncode == 0
    assert "t.yaml:2: warning: working_dir: ~/shop does not exist; the task would fail" in done.stdout
    assert "t.yaml:4: warning: add_dirs[0]: ~/docs does not exist" in done.stdout
    assert "t.yaml:5: warning: check[0]: there is no program `no-such-program` on PATH" in done.stdout
    (offline.home / "shop").mkdir()
    assert "t.yaml:3: warning: isolation: needs a git repository with a commit" in offline("validate", "t.yaml").stdout


def test_validate_says_which_agents_cannot_enforce_what_a_task_asks_for(offline: Command) -> None:
    (offline.home / "t.yaml").write_text("instructions: x\nmax_turns: 3\n")
    done = offline("validate", "t.yaml")
    assert done.returncode == 0
    assert "t.yaml: ok (t)" in done.stdout
    assert "note: t: codex cannot count turns" in done.stdout
    assert json.loads(offline("validate", "t.yaml", "-o", "json").stdout)[0]["notes"]
