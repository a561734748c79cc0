"""Directories that no task can have: each is refused with the field, what is wrong and what to do."""

from pathlib import Path

import pytest

from claudomator_py.environment.workdirs import Workdirs, path_problem, real_paths

LONG = "a" * 256


@pytest.fixture
def circle(tmp_path: Path) -> Path:
    (tmp_path / "here").symlink_to("there")
    (tmp_path / "there").symlink_to("here")
    return tmp_path / "here"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"/{LONG}", "has 256 bytes; the system takes at most 255"),
        (f"/tmp/{LONG}/x", "has 256 bytes"),
        (f"~/{LONG}", "has 256 bytes"),
        ("/" + "é" * 128, "has 256 bytes"),
        ("/a" * 2_048, "more than the 4095 bytes"),
        ("/\udce9", "cannot be written as UTF-8"),
    ],
)
def test_what_is_too_long_for_the_system_is_refused(path: str, words: str) -> None:
    for problem in (Workdirs((), ()).problem(path), path_problem("working_dir", path)):
        assert problem is not None
        assert (problem.field, words in problem.message) == ("working_dir", True)
        assert problem.remedy
        assert len(problem.message) < 300


def test_the_longest_that_the_system_takes_is_taken(tmp_path: Path) -> None:
    assert Workdirs((), ()).problem(str(tmp_path / LONG[1:])) is None


def test_links_in_a_circle_are_said(circle: Path) -> None:
    for path in (circle, circle / "x"):
        problem = Workdirs((), ()).problem(str(path))
        assert problem is not None
        assert "circle" in problem.message


def test_a_root_in_a_circle_allows_nothing_and_keeps_no_other_root(circle: Path, tmp_path: Path) -> None:
    """The daemon starts with it all the same."""
    (tmp_path / "src").mkdir()
    assert Workdirs((circle,), ()).problem(str(tmp_path / "x")) is not None
    assert Workdirs((circle, tmp_path / "src"), ()).problem(str(tmp_path / "src" / "shop")) is None
    assert real_paths((circle, tmp_path / "src")) == (str(circle), str(tmp_path / "src"))


def test_a_reserved_folder_in_a_circle_is_reserved_as_it_is_written(circle: Path, tmp_path: Path) -> None:
    """An inbox that became a loop must not keep every task from its directory."""
    workdirs = Workdirs((), (circle,))
    assert workdirs.problem(str(tmp_path / "x")) is None
    assert workdirs.problem(str(circle)) is not None


@pytest.mark.parametrize(
    "folder", ["/proc", "/proc/self/cwd", "/proc/1/root/srv", "/sys/kernel", "/dev", "/dev/fd/0", "/run/user/0"]
)
def test_folders_of_the_running_system_are_refused_by_any_way(folder: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "further").symlink_to("link/..")
    for path in (folder, str(tmp_path / "link"), str(tmp_path / "link" / "x"), f"/usr/..{folder}"):
        problem = Workdirs((), ()).problem(path)
        assert problem is not None, path
        assert "which is the system's" in problem.message
        assert problem.remedy == "choose an ordinary folder"


def test_a_link_that_leads_through_a_process_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    """It ends elsewhere for the daemon, which looks now, than for the agent."""
    (tmp_path / "here").symlink_to(f"/proc/self/root{tmp_path}")
    problem = Workdirs((tmp_path,), ()).problem(str(tmp_path / "here"))
    assert problem is not None
    assert "leads through /proc" in problem.message


@pytest.mark.parametrize("folder", ["/", "/run", "/proc", "/sys", "/dev"])
def test_what_is_or_contains_such_a_folder_is_refused(folder: str) -> None:
    problem = Workdirs((), ()).problem(folder)
    assert problem is not None
    assert "is or contains" in problem.message


def test_shared_memory_is_an_ordinary_folder() -> None:
    assert Workdirs((), ()).problem("/dev/shm/build") is None


def test_further_folders_are_judged_as_the_working_directory_is(tmp_path: Path) -> None:
    workdirs = Workdirs((tmp_path / "src",), (tmp_path / "src" / "state",))
    (tmp_path / "src" / "state").mkdir(parents=True)
    (tmp_path / "src" / "out").symlink_to(tmp_path)
    (tmp_path / "src" / "in").symlink_to("state")
    for name, words in (
        ("../other", "is not under a root"),
        ("out", "is not under a root"),
        ("state/runs", f"state/runs lies in {tmp_path}/src/state, which Claudomator itself uses"),
        ("in", f"in is {tmp_path}/src/state, which Claudomator itself uses"),
        (".", f" contains {tmp_path}/src/state, which Claudomator itself uses"),
    ):
        problem = workdirs.problem(str(tmp_path / "src" / name), "add_dirs[2]")
        assert problem is not None, name
        assert problem.field == "add_dirs[2]"
        assert words in problem.message
    assert workdirs.problem(str(tmp_path / "src" / "shop"), "add_dirs[2]") is None
