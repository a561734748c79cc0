"""Keeping a stream within its cap: what is kept, what is given back, and where that cannot be done."""

import errno
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from claudomator_py.domain.report import tail_of
from claudomator_py.hosts.local.output import read_output
from claudomator_py.hosts.shim import linux
from claudomator_py.hosts.shim.output import STDOUT, CappedOutput, disk_is_full

CAP = 1 << 20
KIB = 1 << 10


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def stream(directory: int) -> Iterator[CappedOutput]:
    output = CappedOutput(directory, STDOUT, CAP)
    yield output
    os.close(output.fd)


def write(stream: CappedOutput, data: bytes) -> bool:
    os.write(stream.fd, data)
    assert stream.grew() == len(data)
    return stream.within_cap()


def test_up_to_the_cap_everything_is_kept(stream: CappedOutput, tmp_path: Path) -> None:
    assert write(stream, b"x" * CAP)
    assert (tmp_path / STDOUT).read_bytes() == b"x" * CAP


def test_over_the_cap_the_first_quarter_and_the_last_half_are_kept(stream: CappedOutput, tmp_path: Path) -> None:
    for letter in b"abcdefghij":
        assert write(stream, bytes([letter]) * (256 * KIB))
    data = (tmp_path / STDOUT).read_bytes()
    assert len(data) == 2560 * KIB
    assert data[: 256 * KIB] == b"a" * (256 * KIB)
    assert data[-512 * KIB :] == b"i" * (256 * KIB) + b"j" * (256 * KIB)
    assert (tmp_path / STDOUT).stat().st_blocks * 512 <= CAP


def test_it_stays_within_its_cap_however_it_grows(stream: CappedOutput, tmp_path: Path) -> None:
    for size in [1, 5000, 100 * KIB, 3 * CAP, 17, 700 * KIB, 2 * CAP + 1] * 5:
        assert write(stream, b"y" * size)
        assert (tmp_path / STDOUT).stat().st_blocks * 512 <= CAP + 8 * KIB


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.ENOSYS])
def test_where_holes_cannot_be_punched_the_stream_is_to_be_ended(
    stream: CappedOutput, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(linux, "punch_hole", refuse)
    assert write(stream, b"x" * CAP)
    assert not write(stream, b"x")


def test_emptied_by_its_writer_it_has_not_grown(stream: CappedOutput) -> None:
    write(stream, b"x" * 5000)
    os.ftruncate(stream.fd, 0)
    assert stream.grew() == 0
    assert write(stream, b"again")


@pytest.mark.parametrize(
    ("uid", "free", "available", "full"),
    [(0, 15, 0, True), (0, 16, 0, False), (1000, 1000, 15, True), (1000, 1000, 16, False)],
    ids=["root, nothing left", "root, the reserve", "user, only the reserve", "user, some left"],
)
def test_a_disk_is_full_when_nothing_is_left_for_this_user(
    monkeypatch: pytest.MonkeyPatch, uid: int, free: int, available: int, full: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(os, "fstatvfs", lambda _: SimpleNamespace(f_bfree=free, f_bavail=available, f_frsize=4096))
    assert disk_is_full(3) is full


def test_a_hole_is_skipped_in_reading(stream: CappedOutput, tmp_path: Path) -> None:
    write(stream, b"".join(b"%099d\n" % number for number in range(30_000)))
    chunk = read_output(tmp_path, "stdout", 256 * KIB)
    assert chunk.start > 256 * KIB
    assert b"\0" not in chunk.data
    assert chunk.next == chunk.start + len(chunk.data)
    assert chunk.size == 3_000_000


def test_the_end_of_a_stream_is_read_without_what_is_before_it(stream: CappedOutput, tmp_path: Path) -> None:
    write(stream, b"x" * (4 * CAP) + b"the end")
    assert tail_of(partial(read_output, tmp_path, "stdout"), 10) == b"xxxthe end"
    across = tail_of(partial(read_output, tmp_path, "stdout"), 4 * CAP)
    assert len(across) < CAP, "the hole is left out"
    assert across.startswith(b"x")
    assert across.endswith(b"the end")
    assert read_output(tmp_path, "stdout", 0, 0).size == 4 * CAP + 7


def test_a_run_without_output_reads_as_empty(tmp_path: Path) -> None:
    assert read_output(tmp_path, "stderr", 10).data == b""
    assert tail_of(partial(read_output, tmp_path, "stderr"), 10) == b""
    assert read_output(tmp_path, "stderr", 0, 0).size == 0
