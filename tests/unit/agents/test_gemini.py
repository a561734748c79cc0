"""How Gemini CLI is started."""

import json
from functools import partial
from pathlib import Path

import pytest

from claudomator_py.agents.gemini import kind as gemini
from claudomator_py.agents.gemini.kind import Gemini
from claudomator_py.agents.gemini_family import SettingsFile
from claudomator_py.domain.agent import ModelChoice
from tests.unit.agents.starting import launched, task, unsupported_by

CONVERSATION = "6f1c3a52-0b7e-5d7e-9c55-2f0f6a4d9b11"
launch = partial(launched, Gemini(), "--yolo\n", CONVERSATION)
unsupported = partial(unsupported_by, Gemini())


def test_the_least_command_line() -> None:
    assert launch().argv == ("gemini", "--output-format=stream-json", f"--session-id={CONVERSATION}")


def test_the_prompt_is_on_stdin_and_nowhere_else() -> None:
    assert launch().stdin == "--yolo\n"
    assert not any("yolo" in word for word in launch().argv)


def test_it_is_one_process_that_heeds_signals_and_works_where_it_is_told() -> None:
    env = launch().env
    assert env["GEMINI_CLI_NO_RELAUNCH"] == "true"
    assert env["GEMINI_CLI_TRUST_WORKSPACE"] == "true"


def test_a_resumed_conversation() -> None:
    argv = launch(resume=True).argv
    assert f"--resume={CONVERSATION}" in argv
    assert not any(word.startswith("--session-id") for word in argv)


def test_all_that_a_task_can_ask_for() -> None:
    spec = task(
        permissions={"mode": "acceptEdits", "allowed_tools": ["run_shell_command(git)", "-y"]},
        add_dirs=["~/shared", "/data"],
    )
    argv = launch(spec, {"command": ("npx", "gemini"), "extra_args": ("-e", "none")}, ModelChoice(model="pro")).argv

    assert argv[:3] == ("npx", "gemini", "--output-format=stream-json")
    assert argv[4:] == (
        *("--model=pro", "--approval-mode=auto_edit", "-e", "none"),
        *("--allowed-tools=run_shell_command(git)", "--allowed-tools=-y"),
        *(f"--include-directories={Path('~/shared').expanduser()}", "--include-directories=/data"),
    )
    assert unsupported(permissions={"mode": "acceptEdits", "allowed_tools": ["glob"]}, add_dirs=["/data"]) == []


@pytest.mark.parametrize(("mode", "flag"), [("plan", "plan"), ("bypassPermissions", "yolo")])
def test_permission_modes(mode: str, flag: str) -> None:
    assert f"--approval-mode={flag}" in launch(task(permissions={"mode": mode})).argv


def test_without_a_mode_its_own_settings_decide() -> None:
    assert not any(word.startswith("--approval") for word in launch(task(permissions={"mode": "default"})).argv)


def test_what_it_cannot_be_told() -> None:
    (sentence,) = unsupported(permissions={"disallowed_tools": ["web_fetch"]})
    assert "permissions.disallowed_tools" in sentence
    (sentence,) = unsupported(permissions={"tools": ["glob"]})
    assert "permissions.tools" in sentence
    (sentence,) = unsupported(max_turns=3)
    assert "max_turns" in sentence
    (sentence,) = unsupported(add_dirs=["/data/a,b"])
    assert "'/data/a,b' in add_dirs" in sentence


def test_a_folder_that_would_be_several_is_not_handed_over() -> None:
    """A link that a task names may lead to it."""
    with pytest.raises(ValueError, match="for several"):
        launch(task(add_dirs=["/data/a,b"]))


def test_its_attempts_are_bounded_where_it_takes_the_word_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemini, "_only_root_writes", lambda path: True)
    monkeypatch.setattr(gemini, "_DEFAULTS", SettingsFile(gemini._DEFAULTS.variable, Path("/nowhere")))
    gemini_cli_system_defaults_path = launch().env["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"]
    assert json.loads(Path(gemini_cli_system_defaults_path).read_text())["general"]["maxAttempts"] < 10
    assert "GEMINI_CLI_SYSTEM_DEFAULTS_PATH" not in launch(agent={"env": {"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": "x"}}).env
    monkeypatch.setattr(gemini, "_DEFAULTS", SettingsFile(gemini._DEFAULTS.variable, Path("/")))
    assert "GEMINI_CLI_SYSTEM_DEFAULTS_PATH" not in launch().env, "the machine has defaults of its own"


def test_a_file_that_others_could_write_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "defaults.json").write_text("{}")
    tmp_path.chmod(0o777)
    monkeypatch.setattr(gemini, "DEFAULTS", tmp_path / "defaults.json")
    assert "GEMINI_CLI_SYSTEM_DEFAULTS_PATH" not in launch().env
