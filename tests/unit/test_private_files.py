"""Private files: nobody else can read them, and no reader sees half of one."""

from pathlib import Path

import pytest

from claudomator_py.private_files import UNFINISHED, create_private, replacing, unfinished


def test_a_new_file_is_its_owners_alone_and_replaces_nothing(tmp_path: Path) -> None:
    with create_private(tmp_path / "new") as file:
        file.write(b"text")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("new", "link"):
        with pytest.raises(FileExistsError):
            create_private(tmp_path / name)


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path, durable=True) as file:
        file.write(b"new")
        assert path.read_text() == "old"
        assert [*tmp_path.glob(UNFINISHED)] != []
    assert path.read_text() == "new"
    assert [*tmp_path.iterdir()] == [path]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path):
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]


def test_names_of_incomplete_files_differ(tmp_path: Path) -> None:
    assert unfinished(tmp_path / "file") != unfinished(tmp_path / "file")
