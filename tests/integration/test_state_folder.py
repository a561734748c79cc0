"""The state folder is this user's own: made private, closed if it was open, and refused if others could exchange it."""

import errno
import os
import re
import stat
from pathlib import Path

import pytest

from claudomator_py.app.listening import StateExposed, make_private, remove_leftovers
from claudomator_py.daemon.locks import hold_state
from claudomator_py.private_files import unfinished, write_new
from claudomator_py.schema.trust import STATE_ENTRIES

NOBODY = 65534


@pytest.mark.parametrize("umask", [0, 0o002, 0o077])
def test_it_is_made_private_with_all_that_is_missing_above_it(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("a", "a/b")] == [0o700, 0o700]


def test_one_that_is_open_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    make_private(state)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_one_that_others_could_exchange_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(StateExposed, match=rf"{tmp_path}/state could be exchanged .* run `chmod go-w {tmp_path}`"):
        make_private(tmp_path / "state")
    assert not (tmp_path / "state").exists()
    tmp_path.chmod(0o1777)
    make_private(tmp_path / "state")


@pytest.mark.needs_root
def test_one_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    state.chmod(0o755)
    os.chown(state, NOBODY, -1)
    with pytest.raises(StateExposed, match=f"{state} belongs to .*, and this is root"):
        make_private(state)
    link = tmp_path / "link"
    link.symlink_to(state)
    with pytest.raises(StateExposed, match="belongs to"):
        make_private(link)
    assert stat.S_IMODE(state.stat().st_mode) == 0o755


@pytest.mark.parametrize("name", STATE_ENTRIES)
def test_no_link_is_followed_in_it(tmp_path: Path, name: str) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateExposed, match=f"{state}/{name} is a symbolic link"):
        make_private(state)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.needs_root
def test_nothing_in_it_is_somebody_elses(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "runs").mkdir(parents=True)
    os.chown(state / "runs", NOBODY, -1)
    with pytest.raises(StateExposed, match=rf"{state}/runs belongs to .* run `chown root {state}/runs`"):
        make_private(state)


def test_what_a_killed_daemon_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    left = [str(unfinished(Path(name))) for name in ("token", "agents.json", "backups/claudomator-1.db")]
    for name in [*left, "token", "backups/claudomator-1.db"]:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.rglob("*")} == {"token", "backups", "claudomator-1.db"}


def test_what_is_opened_later_is_no_link_either(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("daemon.lock", "record"):
        (tmp_path / name).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"), hold_state(tmp_path):
        pass
    with pytest.raises(OSError, match="symbolic links"):
        write_new(tmp_path / "record", b"forged")
    assert victim.read_text() == "precious"


def test_a_file_system_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, mode: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("os.fchmod", refuse)
    tmp_path.chmod(0o700)
    with pytest.raises(OSError, match=re.escape(f"Read-only file system: '{tmp_path}'")):
        make_private(tmp_path)
