"""How the shim starts an agent: where, with what environment, files and streams; and what it says if it cannot."""

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.hosts.rig import PATH, Rig, alive, ended
from tests.patience import wait_until


def test_the_exit_code_is_recorded(rig: Rig) -> None:
    run = rig.sh("echo out; echo err >&2; exit 3")
    assert (run.exit.exit_code, run.exit.ended_by, run.exit.error) == (3, None, None)
    assert run.stdout == "out\n"
    assert (run.path / "stderr.log").read_text() == "err\n"
    assert 0 < run.exit.started_ms <= run.exit.ended_ms


def test_a_signal_is_a_negative_exit_code(rig: Rig) -> None:
    assert rig.sh("kill -SEGV $$").exit.exit_code == -11


def test_the_prompt_is_a_regular_file_on_stdin(rig: Rig) -> None:
    run = rig.sh("cat; test -f /dev/stdin && echo regular", stdin="do this\nünd that\n")
    assert run.stdout == "do this\nünd that\nregular\n"


def test_commands_run_one_after_another(rig: Rig) -> None:
    run = rig.run(("sh", "-c", "cat; echo one"), ("sh", "-c", "cat; echo two"), stdin="again\n")
    assert run.stdout == "again\none\nagain\ntwo\n"
    assert (run.exit.exit_code, run.exit.step) == (0, 1)


def test_the_first_command_that_fails_is_the_last(rig: Rig) -> None:
    run = rig.run(("true",), ("sh", "-c", "exit 7"), ("echo", "never"))
    assert (run.exit.exit_code, run.exit.step, run.stdout) == (7, 1, "")


def test_the_agent_gets_the_named_variables_and_nothing_else(rig: Rig) -> None:
    run = rig.run(("env",), env={"KEY": "secret", "OTHER": "not yours"}, env_names=["PATH", "KEY", "UNSET"])
    variables = dict(line.split("=", 1) for line in run.stdout.splitlines())
    assert variables == {
        "PATH": PATH,
        "KEY": "secret",
        "PWD": str(run.path / "work"),
        "CLAUDOMATOR_RUN": run.path.name,
    }


def test_a_secret_is_in_no_file(rig: Rig) -> None:
    run = rig.sh("test ${#KEY} = 12", env={"KEY": "s3cr3t-value"}, env_names=["PATH", "KEY"])
    assert run.exit.exit_code == 0
    files = [path for path in run.path.rglob("*") if path.is_file()]
    assert len(files) >= 8
    assert not [path for path in files if b"s3cr3t-value" in path.read_bytes()]


def test_nothing_but_the_standard_streams_is_inherited(rig: Rig) -> None:
    script = "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd')))"
    run = rig.run((sys.executable, "-I", "-S", "-c", script))
    # The fourth is the listing itself.
    assert run.stdout == "[0, 1, 2, 3]\n"


def test_signals_are_as_a_program_expects_them(rig: Rig) -> None:
    lines = rig.run(("cat", "/proc/self/status")).stdout.splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
    # 32 and 33 are the C library's own: nobody can set them, and they stay as whoever started the tests left them.
    reserved = 0b11 << 31
    assert [mask & ~reserved for mask in masks] == [0] * 3


def test_the_agent_leads_a_session_of_its_own(rig: Rig) -> None:
    pid, _, session = rig.sh("echo $$ $(cut -d' ' -f5,6 /proc/$$/stat)").stdout.split()
    assert pid == session


def test_folders_and_files_are_private(rig: Rig) -> None:
    before = os.umask(0)
    try:
        run = rig.sh("echo x")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (run.path, *run.path.iterdir())}
    folders = {run.path.name, "work"}
    assert {name: mode for name, mode in modes.items() if mode != (0o700 if name in folders else 0o600)} == {}


def test_the_agents_own_files_follow_the_daemons_umask(rig: Rig) -> None:
    before = os.umask(0o022)
    try:
        run = rig.sh("touch made")
    finally:
        os.umask(before)
    assert stat.S_IMODE((run.path / "work" / "made").stat().st_mode) == 0o644


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-program", "/etc/passwd"])
def test_a_program_that_cannot_be_started_is_an_error_and_no_exit_code(rig: Rig, program: str) -> None:
    run = rig.run(("true",), (program,))
    assert run.exit.exit_code is None
    assert run.exit.error is not None
    assert program in run.exit.error
    assert run.exit.step == 1


def test_a_working_directory_that_is_missing_is_an_error(rig: Rig, tmp_path: Path) -> None:
    run = rig.run(("true",), cwd=tmp_path / "nowhere")
    assert run.exit.exit_code is None
    assert run.exit.error == f"{tmp_path / 'nowhere'}: No such file or directory"


def test_a_working_directory_within_the_roots_is_allowed(rig: Rig, tmp_path: Path) -> None:
    inner = tmp_path / "root" / "inner"
    inner.mkdir(parents=True)
    link = tmp_path / "link-to-root"
    link.symlink_to(tmp_path / "root")
    assert rig.run(("pwd", "-P"), cwd=inner, roots=[tmp_path / "root"]).stdout == f"{inner}\n"
    assert rig.run(("pwd", "-P"), cwd=inner, roots=[link]).stdout == f"{inner}\n"
    assert rig.run(("pwd", "-P"), cwd=tmp_path / "root", roots=[tmp_path / "root"]).exit.exit_code == 0


def test_a_working_directory_outside_the_roots_is_refused(rig: Rig, tmp_path: Path) -> None:
    for name in ("root", "rootless"):
        (tmp_path / name).mkdir()
    run = rig.run(("touch", "been-here"), cwd=tmp_path / "rootless", roots=[tmp_path / "root"])
    assert run.exit.exit_code is None
    assert "lies in none of" in str(run.exit.error)
    assert not list((tmp_path / "rootless").iterdir())


def test_a_symbolic_link_does_not_lead_out_of_the_roots(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    run = rig.run(("touch", "been-here"), cwd=tmp_path / "root" / "link", roots=[tmp_path / "root"])
    assert "lies in none of" in str(run.exit.error)
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("where", ["reserved", "reserved/inner", ".", "link"])
def test_a_working_directory_in_or_around_a_reserved_folder_is_refused(rig: Rig, tmp_path: Path, where: str) -> None:
    (tmp_path / "reserved" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "reserved")
    run = rig.run(("touch", "been-here"), cwd=tmp_path / where, reserved=[tmp_path / "reserved"])
    assert run.exit.exit_code is None
    assert "where no task may be" in str(run.exit.error)
    assert not list(tmp_path.rglob("been-here"))


@pytest.mark.parametrize("where", ["/proc", "/proc/self", "/dev", "/dev/fd"])
def test_no_folder_of_the_system_is_a_working_directory(rig: Rig, where: str) -> None:
    run = rig.run(("true",), cwd=Path(where), reserved=[Path("/proc"), Path("/dev")])
    assert "where no task may be" in str(run.exit.error)


def test_a_further_folder_that_became_a_link_or_lies_elsewhere_is_refused(rig: Rig, tmp_path: Path) -> None:
    inside, outside = tmp_path / "root" / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to(inside)
    allowed: dict[str, Any] = {"cwd": inside, "roots": [tmp_path / "root"]}
    assert rig.run(("true",), folders=[inside, tmp_path / "root" / "not there"], **allowed).exit.exit_code == 0
    for folder, words in ((tmp_path / "root" / "link", "a link was put in its place"), (outside, "lies in none of")):
        run = rig.run(("touch", "been-here"), folders=[folder], **allowed)
        assert run.exit.exit_code is None
        assert words in str(run.exit.error)
    assert list(inside.iterdir()) == []


def test_exchanging_the_directory_after_the_check_leads_nowhere(rig: Rig, tmp_path: Path) -> None:
    """Between two commands of one run the path is made to lead elsewhere; the second stays where the first was."""
    inside, outside = tmp_path / "root" / "inside", tmp_path / "outside"
    inside.mkdir(parents=True)
    outside.mkdir()
    swap = f"mv {inside} {inside}.moved && ln -s {outside} {inside}"
    run = rig.run(("sh", "-c", swap), ("touch", "been-here"), cwd=inside, roots=[tmp_path / "root"])
    assert run.exit.exit_code == 0
    assert not list(outside.iterdir())
    assert (inside.with_name("inside.moved") / "been-here").exists()


def test_a_specification_that_cannot_be_read_is_an_error(rig: Rig) -> None:
    path = rig.prepare(("true",))
    (path / "spec.json").write_text("{")
    rig.shim(path).wait()
    run = ended(path)
    assert run.exit.exit_code is None
    assert "spec.json" in str(run.exit.error)


@pytest.mark.parametrize(
    "data",
    [b"no newline", b"\xff\xfe\x00 invalid \x80\n", b"\x1b]0;title\x07\x1b[2J\x1b[31mred\n", b"\r\n\0\n" * 1000],
    ids=["no newline", "not utf-8", "terminal codes", "nulls"],
)
def test_output_is_kept_byte_for_byte(rig: Rig, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "data").write_bytes(data)
    run = rig.run(("cat", str(tmp_path / "data")))
    assert (run.path / "stdout.jsonl").read_bytes() == data


def test_closing_its_output_does_not_end_an_agent(rig: Rig, tmp_path: Path) -> None:
    path = rig.prepare(("sh", "-c", f"exec >&- 2>&-; while test ! -e {tmp_path}/go; do sleep .01; done; exit 5"))
    shim = rig.shim(path)
    wait_until(lambda: (path / "started").exists())
    assert alive(shim.process.pid)
    (tmp_path / "go").touch()
    shim.wait()
    assert ended(path).exit.exit_code == 5
