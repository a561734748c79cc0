"""What rules can look at: every name has a value, whatever a task says or leaves out."""

import posixpath
from math import inf
from typing import Any

import pytest

from claudomator_py.domain.budget import Budget
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.task import TaskSpec
from claudomator_py.policy.facts import MAX_PATHS, Facts, names, paths_in
from tests.growth import grows_linearly


def facts(by: Principal | None = None, **fields: Any) -> Facts:
    spec = TaskSpec.model_validate({"name": "a", "instructions": "x", **fields})
    return Facts(spec) if by is None else Facts(spec, by)


def test_where_a_task_says_nothing_a_condition_finds_nothing() -> None:
    task = facts().values["task"]
    silent = ("organisation", "specialist", "skill", "agent", "model", "tier", "continues", "working_dir")
    assert [task[name] for name in silent] == [""] * len(silent)
    assert task["budget"] == {"usd": 0.0, "tokens": 0.0, "runs": 0.0}
    assert task["creator"] == task["author"] != ""
    assert facts().values["limits"]["day"] == {"usd": inf, "tokens": inf, "runs": inf}


def test_what_a_task_says_is_found() -> None:
    values = Facts(
        facts(agent={"type": "claude", "model": "opus", "tier": "fast"}, continues="b", budget={"usd": 2.5}).spec,
        Principal("ann", Role.OPERATE, "acme"),
        specialist="painter",
        skill="walls",
        creator="bob",
        limits=Budget(runs=3),
    ).values
    results = {
        "creator": "bob",
        "author": "ann",
        "organisation": "acme",
        "specialist": "painter",
        "skill": "walls",
        "agent": "claude",
        "model": "opus",
        "tier": "fast",
        "continues": "b",
        "budget": {"usd": 2.5, "tokens": 0.0, "runs": 0.0},
    }
    assert {name: values["task"][name] for name in results} == results
    assert values["actor"] == {"id": "ann", "role": "operate", "roles": ["operate"], "organisation": "acme"}
    assert values["limits"]["day"]["runs"] == 3.0


def test_names_are_known_at_any_depth() -> None:
    assert {"day", "day.usd"} <= names()["spent"]
    assert {"budget", "budget.usd", "risk"} <= names()["task"]


@pytest.mark.parametrize(
    ("text", "folder", "paths"),
    [
        ("src/a.py, then src/a.py again and src/b.py", "/srv", ("src/a.py", "src/b.py")),
        ("~/.ssh/config", "/srv", ("~/.ssh/config",)),
        ("~/src/../.ssh/config", "/srv", ("~/.ssh/config",)),
        ("~/../ann/.ssh/config", "/srv", ("~/../ann/.ssh/config",)),
        ("src/../x.py", "", ("x.py",)),
        ("Read /etc/passwd", "", ("/etc/passwd",)),
        ("/srv/x.py /srv-2/x.py", "/srv", ("x.py", "/srv-2/x.py")),
        ("Read /etc/passwd", "/", ("etc/passwd",)),
    ],
)
def test_a_path_is_told_from_the_folder_in_which_the_task_works(text: str, folder: str, paths: tuple[str, ...]) -> None:
    assert paths_in(text, folder) == paths


def test_links_are_followed_to_where_they_lead() -> None:
    def real(path: str) -> str:
        return posixpath.normpath(path).replace("/srv/link", "/srv/infra")

    assert paths_in("link/main.tf", "/srv", real) == ("infra/main.tf",)


def test_a_link_is_followed_in_a_path_of_many_folders_too() -> None:
    def real(path: str) -> str:
        return posixpath.normpath(path).replace("/srv/link", "/srv/infra")

    assert paths_in(f"{'link/x/../../' * 100}link/main.tf", "/srv", real) == ("infra/main.tf",)


def test_of_a_path_not_every_folder_is_looked_for() -> None:
    asked: list[str] = []

    def real(path: str) -> str:
        asked.append(path)
        return path

    assert paths_in("a/" * 100_000, "/srv", real) == (("a/" * 100_000).rstrip("/"),)
    assert asked == []


@pytest.mark.parametrize("piece", ["a.", "a-", "a@", "@", "www.", "a+", "a@a.", "w@", "a://", "~/", "ab/", "a b/"])
def test_a_text_is_searched_for_paths_in_time_that_grows_with_its_length(piece: str) -> None:
    """Each of these once was read again from each of its places: 40,000 characters took sixteen times as long as
    10,000, and a million more than half an hour."""
    assert grows_linearly(lambda text: paths_in(text, "/srv"), piece)


@pytest.mark.parametrize(("named", "result"), [(3, 3), (MAX_PATHS, MAX_PATHS), (MAX_PATHS + 9, MAX_PATHS + 1)])
def test_of_many_paths_it_is_known_that_there_are_more(named: int, result: int) -> None:
    assert len(paths_in(" ".join(f"src/{number}.py" for number in range(named)), "/srv")) == result
