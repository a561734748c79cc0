"""The supervisor as one file, from which a Python starts it that has nothing else of ours."""

import json
import os
import subprocess
import sys
from pathlib import Path

from claudomator_py.domain.run import RunSpec
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.launcher import interpreter
from claudomator_py.hosts.slurm.archive import remove_others, supervisor_in
from tests.integration.hosts.rig import LIMITS

WHERE = (
    "import sys; sys.path.append(sys.argv[1]); import claudomator_py.hosts.shim.main as main; print(main.__cached__)"
)


def test_it_is_made_once_and_complete(tmp_path: Path) -> None:
    path = supervisor_in(str(tmp_path))
    made = Path(path).stat()
    assert supervisor_in(str(tmp_path)) == path
    assert Path(path).stat().st_mtime_ns == made.st_mtime_ns
    assert [file.name for file in tmp_path.iterdir()] == [Path(path).name]
    (tmp_path / "elsewhere").mkdir()
    assert Path(supervisor_in(f"{tmp_path}/elsewhere")).read_bytes() == Path(path).read_bytes()
    completed = subprocess.run(
        [sys.executable, "-I", "-S", "-c", WHERE, path], capture_output=True, text=True, check=True
    )
    assert completed.stdout == f"{path}/claudomator_py/hosts/shim/main.pyc\n"


def test_those_that_no_run_needs_are_removed(tmp_path: Path) -> None:
    present = supervisor_in(str(tmp_path))
    old, needed, half, stale = (tmp_path / f".supervisor-{name}" for name in ("a.zip", "b.zip", "half", "stale"))
    for path in (old, needed, half, stale):
        path.touch()
    os.utime(stale, (0, 0))
    for name, archive in (("run", needed), ("over", old)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "submitted").write_text(str(archive))
    (tmp_path / "over" / "exit.json").touch()
    remove_others(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {Path(present).name, needed.name, half.name, "run", "over"}


def test_a_run_is_supervised_from_it(tmp_path: Path) -> None:
    library = supervisor_in(str(tmp_path))
    run = RunDirectory(tmp_path / "run")
    run.create(RunSpec("run", (("sh", "-c", "echo $KEY; exit 7"),), None, (), ("KEY", "PATH"), "", LIMITS))
    (run.path / "variables.json").write_text(json.dumps({"KEY": "kept", "PATH": "/usr/bin:/bin"}))
    command = interpreter("", "main", "main_with_file", str(run.path), library=library)
    assert subprocess.run(command, env={}, check=False).returncode == 0
    assert json.loads((run.path / "exit.json").read_text())["exit_code"] == 7
    assert (run.path / "stdout.jsonl").read_text() == "kept\n"
    assert not (run.path / "variables.json").exists()
    # Started once more, as Slurm does: it has begun, and its variables are gone.
    assert subprocess.run(command, env={}, check=False).returncode == 3
