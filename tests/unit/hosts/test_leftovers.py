"""Folders that an agent made hard to remove."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from claudomator_py.hosts import leftovers
from tests.e2e.security.second_user import NOBODY

DEPTH = 3_000
"""Deeper than Python's stack, and with a path longer than the system takes."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def deep(folder: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        for _ in range(DEPTH):
            Path("d").mkdir()
            os.chdir("d")
        Path("file").write_bytes(b"x" * 10_000)
    finally:
        os.fchdir(here)
        os.close(here)


def test_a_folder_of_any_depth_is_removed_and_measured(folder: Path) -> None:
    deep(folder)
    (folder / "file").write_bytes(b"x" * 10_000)
    (folder / ".removed-0").mkdir()
    (folder / ".removed-1").write_text("in the way")
    assert leftovers.size_of(folder) >= 10_000
    leftovers.remove(folder)
    assert not folder.exists()


def test_links_are_not_followed(folder: Path) -> None:
    kept = folder.parent / "kept"
    kept.mkdir()
    (kept / "file").write_bytes(b"x" * 10_000)
    (folder / "to-folder").symlink_to(kept)
    (folder / "below").mkdir()
    (folder / "below" / "to-file").symlink_to(kept / "file")
    (folder / "dangling").symlink_to("nowhere")
    assert leftovers.size_of(folder) < 10_000
    leftovers.remove(folder)
    assert (kept / "file").exists()


def locked(folder: Path) -> None:
    below = folder / "a" / "b" / "c"
    below.mkdir(parents=True)
    (below / "file").touch()
    for path in (below, below.parent, below.parent.parent, folder):
        path.chmod(0)


AS_USER = """
import inspect
import os
import subprocess
import sys
from pathlib import Path
from claudomator_py.hosts import leftovers

{locked}
if os.geteuid() == 0:
    os.setresuid({user}, {user}, {user})
folder = Path("work")
folder.mkdir()
locked(folder)
leftovers.remove(folder)
"""


def test_permissions_keep_nothing(tmp_path: Path) -> None:
    """As a user for whom permissions count."""
    tmp_path.chmod(0o777)
    program = AS_USER.format(locked=inspect.getsource(locked), user=NOBODY)
    environ = {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_said(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        leftovers.remove(folder / "nothing")
