"""Who could change a file: owners, modes, access lists, sticky folders and links, of the place and of all above it."""

import grp
import os
import pwd
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.settings import Settings
from claudomator_py.schema.trust import Exposure, Trust

NOBODY = 65534
GROUP = 54321


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    before = os.umask(0o022)
    path = tmp_path / "above" / "place"
    path.mkdir(parents=True)
    yield path
    os.umask(before)


def said(exposure: Exposure | None) -> str:
    return "" if exposure is None else f"{exposure.path}: {exposure.why}; {exposure.command}"


def test_what_is_ours_is_trusted(place: Path) -> None:
    trust = Trust()
    assert trust.place(str(place)) is None
    assert trust.way(str(place / "not" / "there")) is None
    assert trust.place("/") is None


@pytest.mark.parametrize("mode", [0o777, 0o702, 0o1777])
def test_a_place_that_all_can_write_to(place: Path, mode: int) -> None:
    place.chmod(mode)
    result = said(Trust().place(str(place)))
    assert result == f"{place}: every user can write to it (mode {mode:04o}); chmod go-w {place}"
    assert Trust().way(str(place)) is None


def test_a_folder_above_that_lets_others_exchange_the_place(place: Path) -> None:
    place.parent.chmod(0o777)
    assert said(Trust().way(str(place))).startswith(f"{place.parent}: every user can write to it")
    place.parent.chmod(0o1777)
    assert Trust().place(str(place)) is None
    assert Trust().way(str(place.parent / "not there")) is None


@pytest.mark.needs_root
def test_owners(place: Path) -> None:
    os.chown(place, NOBODY, -1)
    exposure = Trust().place(str(place))
    assert exposure is not None
    assert (exposure.path, exposure.user) == (str(place), pwd.getpwuid(NOBODY).pw_name)
    assert exposure.user is not None
    assert Trust([exposure.user]).place(str(place)) is None
    assert Trust([str(NOBODY)]).place(str(place)) is None
    assert said(Trust().way(str(place / "file"))).startswith(f"{place}: it belongs to ")


@pytest.mark.needs_root
def test_in_a_sticky_folder_only_the_owner_is_trusted(place: Path) -> None:
    place.parent.chmod(0o1777)
    os.chown(place, NOBODY, -1)
    assert said(Trust().way(str(place))).startswith(f"{place}: it belongs to ")
    os.chown(place, 0, -1)
    os.chown(place.parent, NOBODY, -1)
    assert said(Trust().way(str(place))).startswith(f"{place.parent}: it belongs to ")


@pytest.mark.needs_root
def test_the_way_leads_through_links_and_is_judged_where_they_lie(place: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("above/../above/place")
    assert Trust().place(str(link)) is None
    place.parent.chmod(0o777)
    assert said(Trust().place(str(link))).startswith(f"{place.parent}: ")
    place.parent.chmod(0o755)
    tmp_path.chmod(0o1777)
    os.lchown(link, NOBODY, -1)
    assert said(Trust().place(str(link))).startswith(f"{link}: it belongs to ")
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(OSError, match="symbolic links"):
        Trust().place(str(link))


@pytest.mark.needs_root
def test_a_group_is_trusted_with_all_its_members(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.chmod(0o775)
    os.chown(place, -1, GROUP)
    # Nobody that is listed is in it: programs may be.
    assert said(Trust().place(str(place))) == (
        f"{place}: everyone in the group {GROUP} can write to it (mode 0775); chmod g-w {place}"
    )
    assert Trust(groups=[str(GROUP)]).place(str(place)) is None
    members = ["root"]
    known = grp.getgrgid
    named = grp.struct_group(("build", "x", GROUP, members))
    monkeypatch.setattr(grp, "getgrgid", lambda gid: named if gid == GROUP else known(gid))
    monkeypatch.setattr(grp, "getgrnam", lambda name: {"build": named}[name])
    assert Trust().place(str(place)) is None
    members.append(pwd.getpwuid(NOBODY).pw_name)
    assert "the group build" in said(Trust().place(str(place)))
    assert Trust(groups=["build"]).place(str(place)) is None
    assert Trust(users=members).place(str(place)) is None


@pytest.mark.needs_root
def test_the_files_of_a_trusted_groups_members_are_trusted(place: Path) -> None:
    os.chown(place, NOBODY, -1)
    assert Trust(groups=[str(pwd.getpwuid(NOBODY).pw_gid)]).place(str(place)) is None
    assert Trust(groups=[str(GROUP)]).place(str(place)) is not None


def test_an_access_list_says_who_may_write(place: Path) -> None:
    entries = [(0x01, 7, -1), (0x02, 7, NOBODY), (0x04, 5, -1), (0x10, 7, -1), (0x20, 5, -1)]
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(place, "system.posix_acl_access", value)
    except OSError:
        pytest.skip("there are no access lists on this file system")
    exposure = Trust().place(str(place))
    assert "its access list lets" in said(exposure)
    assert Trust([str(NOBODY)]).place(str(place)) is None


def test_names_that_the_machine_does_not_know() -> None:
    assert Trust(["root", "no-such-user"], ["no-such-group", "0"]).unknown == ["no-such-user", "no-such-group"]


def test_trusted_users_and_groups_are_names_or_numbers_one_or_several() -> None:
    parsed = parse_settings({"inbox": {"trusted_users": ["ann", 1001], "trusted_groups": "build"}})
    assert isinstance(parsed, Settings)
    assert (parsed.inbox.trusted_users, parsed.inbox.trusted_groups) == (("ann", "1001"), ("build",))
    refused = parse_settings({"inbox": {"trusted_users": [True]}})
    assert isinstance(refused, list)
    assert refused[0].field == "inbox.trusted_users[0]"
