"""Private files copied to where others may write: nothing of theirs is followed, replaced or left readable."""

import os
import stat
from pathlib import Path

import pytest

from claudomator_py.resources.daemon.cli import copy_to_new


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(b"precious")
    path.chmod(0o644)
    return path


def test_the_copy_is_private_under_any_umask(tmp_path: Path, source: Path) -> None:
    before = os.umask(0)
    try:
        copy_to_new(source, tmp_path / "copy")
    finally:
        os.umask(before)
    assert (tmp_path / "copy").read_bytes() == b"precious"
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"source", "copy"}


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "no hard links"])
def test_nothing_is_replaced_or_followed(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    copy_to_new(source, tmp_path / "copy")
    (tmp_path / "link").symlink_to("elsewhere")
    for name in ("copy", "link"):
        with pytest.raises(FileExistsError):
            copy_to_new(source, tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"source", "copy", "link"}
