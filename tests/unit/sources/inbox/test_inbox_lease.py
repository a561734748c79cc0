import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from claudomator_py.sources.inbox.files import Mounts, Writers, read_lease

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:51 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
41 22 0:52 / /mnt/box rw,nosuid shared:3 - fuse.sshfs me@host:/ rw
42 22 0:53 / /tmp rw - tmpfs tmpfs rw
"""


def writers(path: Path) -> Writers:
    fd = os.open(path, os.O_RDONLY)
    try:
        with read_lease(fd) as writers:
            return writers
    finally:
        os.close(fd)


def test_an_open_writer_is_seen_and_a_reader_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    assert writers(path) is Writers.NONE
    with path.open("ab"):
        assert writers(path) is Writers.SOME
    with path.open("rb"):
        assert writers(path) is Writers.NONE


def test_a_writer_who_comes_during_the_lease_neither_gets_in_nor_ends_the_process(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    script = """
import os, sys
from claudomator_py.sources.inbox.files import read_lease
fd = os.open(sys.argv[1], os.O_RDONLY)
with read_lease(fd):
    try:
        os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
    except BlockingIOError:
        print("kept out")
os.close(os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK))
print("let in")
"""
    ran = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "kept out\nlet in\n")


@pytest.mark.parametrize(
    ("device", "elsewhere"), [((8, 1), False), ((0, 51), True), ((0, 52), True), ((0, 53), False), ((9, 9), False)]
)
def test_file_systems_that_others_write_to_are_known(tmp_path: Path, device: tuple[int, int], elsewhere: bool) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    with closing(Mounts(mounts)) as table:
        assert table.written_elsewhere(os.makedev(*device)) is elsewhere


def test_without_a_table_of_mounts_leases_are_trusted(tmp_path: Path) -> None:
    assert Mounts(tmp_path / "none").written_elsewhere(1) is False


def test_the_table_of_mounts_is_closed_at_the_end_of_the_process() -> None:
    script = "from claudomator_py.sources.inbox import files; files.written_elsewhere(1)"
    command = [sys.executable, "-W", "error", "-c", script]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


_MOUNTING = """
import os, subprocess, sys
from claudomator_py.sources.inbox import files
files._SHARED_FILE_SYSTEMS = {"ramfs"}
mounts, place = files.Mounts(), sys.argv[1]
before = mounts.written_elsewhere(os.stat(place).st_dev)
subprocess.run(["mount", "-t", "ramfs", "none", place], check=True)
print(before, mounts.written_elsewhere(os.stat(place).st_dev))
"""


def test_a_new_mount_is_noticed(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount anything")
    (tmp_path / "place").mkdir()
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", _MOUNTING, str(tmp_path / "place")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout.split() == ["False", "True"], result.stderr
