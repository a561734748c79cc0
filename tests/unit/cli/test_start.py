"""The command itself: version, help, what it imports, how it ends."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from claudomator_py import __version__
from claudomator_py.__main__ import application
from claudomator_py.cli.app import SECTIONS, other_words, run
from claudomator_py.client import ServiceProblem
from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.domain.shape import ProblemDetails
from tests.fakes.command import Command, QuickCommand
from tests.fakes.prepared import PreparedService
from tests.patience import PATIENCE_S

HEAVY = (
    *("sqlmodel", "sqlalchemy", "fastapi", "starlette", "uvicorn", "alembic", "prometheus_client"),
    "claudomator_py.app",
)


def _modules_after(command: Command, *arguments: str) -> set[str]:
    """What is imported once the command has ended."""
    code = (
        "import sys, json, claudomator_py.__main__ as m\n"
        f"sys.argv = ['claudomator', *{list(arguments)!r}]\n"
        "try:\n    m.main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=command.home, env=command.variables({}), capture_output=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_version(process: Command) -> None:
    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"claudomator {__version__}\n", "")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("file", "{home}/file is not a folder; remove it, or choose another state_dir"),
        ("file/below", "{home}/file/below: Not a directory; check that path"),
        ("loop", "{home}/loop: Too many levels of symbolic links; remove the loop of symbolic links"),
    ],
)
def test_serve_says_in_a_line_what_the_system_refuses(state: str, words: str, offline: Command) -> None:
    """Nothing is tried again: the daemon has not started."""
    (offline.home / "file").touch()
    (offline.home / "loop").symlink_to("loop")
    done = offline("serve", "--state-dir", state, "--listen", "127.0.0.1:0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"claudomator: {words.format(home=offline.home)}\n"


# What tells of itself alone, and what asks the daemon: tests/unit/test_start.py.
@pytest.mark.parametrize("arguments", [("validate", "t.yaml"), ("doctor",)])
def test_no_command_imports_the_daemon(process: Command, arguments: tuple[str, ...]) -> None:
    (process.home / "t.yaml").write_text("instructions: Do it.\n")
    assert not _modules_after(process, *arguments) & set(HEAVY)


def test_replay_imports_no_server(process: Command) -> None:
    assert not _modules_after(process, "replay") & {"fastapi", "starlette", "uvicorn", "claudomator_py.api.app"}


def test_every_command_has_help(offline: Command) -> None:
    group = typer.main.get_command(application())
    assert isinstance(group, typer.core.TyperGroup)
    for name in group.commands:
        assert offline(name, "--help").returncode == 0


def test_help_fits_80_columns(offline: Command) -> None:
    text = offline("--help", COLUMNS="80").stdout
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "..." not in text.partition("Commands:")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("status", "--no-such-option"),
        ("show",),
        ("submit",),
        ("submit", "missing.yaml"),
        ("submit", "t.yaml", "--timeout", "5m"),
        ("submit", "t.yaml", "--wait", "--timeout", "5"),
        ("status", "-o", "yaml"),
        ("restart", "it", "--tier", "huge"),
        ("validate",),
    ],
)
def test_wrong_usage_is_exit_2(offline: Command, arguments: tuple[str, ...]) -> None:
    (offline.home / "t.yaml").write_text("instructions: Do it.\n")
    done = offline(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: " in done.stderr


def test_completion_can_be_installed(offline: Command) -> None:
    # Without its look at the parent processes, of which none need be a shell.
    done = offline("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert "claudomator" in done.stdout or "COMPLETE" in done.stdout


def test_no_daemon_is_exit_3(process: Command, tmp_path: Path) -> None:
    done = process("status", "--state-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "claudomator serve" in done.stderr


def test_the_wrong_token_is_exit_4(command: Command, daemon_url: str) -> None:
    done = command("status", CLAUDOMATOR_URL=daemon_url, CLAUDOMATOR_TOKEN="x" * 40)
    assert (done.returncode, done.stdout) == (4, "")
    assert "token" in done.stderr


def test_a_refusal_is_exit_1_with_its_remedy(command: Command) -> None:
    done = command("show", "missing")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: There is no task 'missing'.\nThere are no tasks yet.\n"


def test_what_is_wrong_with_a_request_is_said_once(command: Command, prepared: PreparedService) -> None:
    prepared.add(name="one")
    unknown = command("restart", "one", "--specialist", "nobody")
    assert unknown.returncode == 1
    assert unknown.stderr == "Error: specialist: there is no specialist `nobody`.\nRemove it.\n"
    empty = command("search", "")
    assert empty.stderr == "Error: query: is empty.\nGive it a value.\n"


def test_several_faults_of_a_request_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [Problem(field="a", message="is missing", remedy="add it"), Problem(field="b", message="is empty")]
    refusal = Invalid.of(faults)

    def refused() -> None:
        raise ServiceProblem(
            ProblemDetails(
                type="x",
                title=refusal.title,
                status=422,
                detail=refusal.detail,
                instance="/v1/x",
                code=refusal.status,
                remedy=refusal.remedy,
                problems=refusal.problems,
            )
        )

    app = typer.Typer()
    app.command()(refused)
    monkeypatch.setattr(sys, "argv", ["claudomator"])
    with pytest.raises(SystemExit) as ended:
        run(app)
    assert ended.value.code == 1
    assert capsys.readouterr().err.splitlines() == [
        "a: is missing; add it",
        "b: is empty",
        "Error: The request is not valid.",
        "Fix the listed problems and retry.",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("routing", "stats", "--days", "soon"),
            "it is the text `soon`, but must be a whole number",
        ),
        (("routing", "stats", "--days", "0"), "it is too small; it must be at least 1"),
        (("status", "--state", "lost"), "'lost' is not one of 'waiting', 'queued'"),
    ],
)
def test_an_option_is_refused_in_words_for_people(command: Command, arguments: tuple[str, ...], words: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert f"Invalid value for '{arguments[-2]}': {words}" in done.stderr


def test_ctrl_c_is_clean(process: Command, prepared: PreparedService) -> None:
    prepared.add("it")
    running = process.start("status", "--watch")
    with running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline()
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert errors == ""


def test_a_reader_that_leaves_is_no_error(forked: Command, prepared: PreparedService) -> None:
    for number in range(50):
        prepared.add(f"task-{number}")
    running = forked.start("status", "--watch")
    with running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        prepared.add("one-more")
        errors = running.stderr.read()
        running.wait(timeout=PATIENCE_S)
    assert (running.returncode, errors) == (141, "")


def _on_a_terminal(command: Command, *arguments: str, **environ: str) -> str:
    master, slave = pty.openpty()
    variables = {**command.variables(environ), "TERM": environ.get("TERM", "xterm"), "COLUMNS": "80"}
    process = subprocess.Popen(
        command.argv(arguments), cwd=command.home, env=variables, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    parts = []
    try:
        while part := os.read(master, 65_536):
            parts.append(part)
    except OSError:
        pass  # the terminal's way of saying that nobody is left
    process.wait(timeout=PATIENCE_S)
    os.close(master)
    return b"".join(parts).decode()


def test_colour_is_for_terminals_that_want_it(forked: Command, prepared: PreparedService) -> None:
    prepared.add("it")
    assert "\x1b[" in _on_a_terminal(forked, "status")
    assert "\x1b[" not in _on_a_terminal(forked, "status", NO_COLOR="1")
    assert "\x1b[" not in _on_a_terminal(forked, "status", TERM="dumb")


def test_configuration_of_a_folder_can_be_named(command: Command, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    away = QuickCommand(elsewhere)
    assert away("agents").returncode == 3
    assert away("agents", "--config", str(command.home / "claudomator.yaml")).returncode == 0
    assert away("agents", CLAUDOMATOR_CONFIG=str(command.home / "claudomator.yaml")).returncode == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *(("delete", "cancel"), ("rm", "cancel"), ("ls", "list"), ("ps", "list"), ("kill", "cancel")),
        *(("run", "add"), ("start", "serve"), ("pause", "hold"), ("commit", "diff"), ("STOP", "cancel")),
    ],
)
def test_a_word_of_other_programs_is_answered_with_the_command_that_is_meant(
    offline: Command, typed: str, meant: str
) -> None:
    done = offline(typed, "it")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"No such command '{typed}': `claudomator {meant}" in done.stderr
    assert "Did you mean" not in done.stderr


def test_words_of_other_programs_name_commands_that_exist_and_are_none() -> None:
    group = typer.main.get_command(application())
    assert isinstance(group, typer.core.TyperGroup)
    assert not set(other_words()) & set(group.commands)
    for instead in other_words().values():
        for named in re.findall(r"`claudomator (\w+)", instead):
            assert named in group.commands


def test_the_help_lists_each_command_once_in_its_section(offline: Command) -> None:
    group = typer.main.get_command(application())
    assert isinstance(group, typer.core.TyperGroup)
    sections = [name for names in SECTIONS.values() for name in names]
    assert len(sections) == len(set(sections))
    assert set(group.commands) <= set(sections)
    stdout = offline("--help").stdout
    for title in SECTIONS:
        assert f"\n{title}:\n" in stdout
    for name in group.commands:
        assert len(re.findall(rf"^  {name}  ", stdout, re.MULTILINE)) == 1, name


def test_the_summary_of_a_group_names_commands_that_it_has() -> None:
    group = typer.main.get_command(application())
    assert isinstance(group, typer.core.TyperGroup)
    groups = {name: command for name, command in group.commands.items() if isinstance(command, typer.core.TyperGroup)}
    assert len(groups) > 5
    for name, command in groups.items():
        named = re.findall(r"(?:: |, )([a-z]+)", command.help or "")
        assert set(named) <= set(command.commands), name


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("validate", "--schema"), ("no-such-command",)])
def test_output_that_cannot_be_written_is_an_error_without_a_traceback(
    offline: Command, arguments: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            offline.argv(arguments),
            cwd=offline.home,
            env=offline.variables({}),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    if arguments == ("no-such-command",):  # writes nothing to it
        assert done.returncode == 2
    else:
        assert (done.returncode, done.stderr) == (1, "Error: The output cannot be written: No space left on device.\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_none_that_can_be_missed(offline: Command, closed: str) -> None:
    for arguments in (("--version",), ("status",), ("validate", "--schema")):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {closed}', "sh", *offline.argv(arguments)],
            cwd=offline.home,
            env=offline.variables({}),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == (3 if arguments == ("status",) else 0)
        assert "Traceback" not in done.stderr


def test_what_a_role_may_not_do_is_told_by_its_own_exit_code(command: Command, daemon_url: str) -> None:
    done = command("token", "create", "reader")
    assert (done.returncode, "admin, run" in done.stderr) == (2, False)
    token = command("token", "create", "reader", "--role", "read").stdout.strip()
    done = command("drain", CLAUDOMATOR_TOKEN=token, CLAUDOMATOR_URL=daemon_url)
    assert (done.returncode, "needs admin" in done.stderr) == (4, True), done.stderr
