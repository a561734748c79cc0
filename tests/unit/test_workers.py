"""The suite's own workers: what they report, and what is said of one that has ended."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TESTS = """
import os, signal, pytest

@pytest.mark.parametrize("number", range(20))
def test_fine(number, tmp_path, capsys):
    print(number)
    assert capsys.readouterr().out == f"{number}\\n"
    assert tmp_path.parent.name in ("0", "1")

def test_wrong():
    print("what it printed")
    assert 1 == 2

def test_left_out():
    pytest.skip("not here")

@pytest.fixture
def broken():
    yield
    raise ValueError("too late")

def test_of_a_broken_fixture(broken):
    pass

def test_killed():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "pyproject.toml", f"--rootdir={tmp_path}"]
    command += ["--workers=2", *arguments, str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_each_test_is_reported_once_and_as_failed_where_its_worker_was_killed(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--workers=1")  # of several, whichever is killed may have another test to run
    assert code == 1
    assert "2 failed, 21 passed, 1 skipped, 1 error" in output
    assert "what it printed" in output
    assert "ValueError: too late" in output
    assert "No worker has finished it: workers have ended with" in output


def test_after_as_many_failures_as_wanted_no_more_are_run(tmp_path: Path) -> None:
    code, output = run(tmp_path, "-x", "-k", "wrong or fine")
    assert code == 1
    assert "stopping after 1 failures" in output
    assert "1 failed" in output
