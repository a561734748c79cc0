"""Whether a tool call goes beyond a reach, and what allows exactly it."""

from collections.abc import Collection
from typing import Any

import pytest

from claudomator_py.acts import Reach, digest_in, without_words
from claudomator_py.acts.pattern import Place
from claudomator_py.acts.tool_calls import (
    BeyondReach,
    digest_of,
    digest_of_acts,
    exceeding,
    rule_for,
    subject_of,
)

PLACE = Place("/code/shop", ("/code/shop",), "/home/ada")


@pytest.mark.parametrize(
    ("tool", "given", "least"),
    [
        ("Bash", {"command": "npm publish", "description": "As asked"}, Reach.PUBLISH),
        ("Bash", {"command": "npm test"}, Reach.TREE),
        ("exec_command", {"cmd": "npm ci"}, Reach.NETWORK),
        ("shell", {"command": ["bash", "-lc", "npm publish"]}, Reach.PUBLISH),
        ("shell", {"command": ["git", "commit", "-m", "npm publish; rm -rf ~"]}, Reach.TREE),
        ("Write", {"file_path": "/code/shop/a.py", "content": "npm publish"}, Reach.TREE),
        ("write_file", {"file_path": "../other/a.py"}, Reach.NETWORK),
        ("Edit", {"file_path": "/home/ada/.bashrc"}, Reach.PUBLISH),
        ("Read", {"file_path": "/home/ada/notes.txt"}, Reach.TREE),
        ("Read", {"file_path": "/home/ada/.ssh/id_rsa"}, Reach.PUBLISH),
        ("apply_patch", {"command": "*** Begin Patch\n*** Update File: /etc/hosts\n@@\n"}, Reach.PUBLISH),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: src/a.py\n+rm -rf ~\n"}, Reach.TREE),
        ("WebFetch", {"url": "https://example.org"}, Reach.NETWORK),
        ("google_web_search", {"query": "npm publish"}, Reach.NETWORK),
        ("mcp__tracker__list_issues", {}, Reach.NETWORK),
        ("mcp__tracker__close_issue", {}, Reach.PUBLISH),
        ("mcp__claudomator__create_task", {}, Reach.TREE),
        ("Grep", {"pattern": "npm publish", "path": "/code/shop"}, Reach.TREE),
        ("TodoWrite", {"todos": ["npm publish"]}, Reach.TREE),
    ],
)
def test_how_far_a_call_goes(tool: str, given: dict[str, Any], least: Reach) -> None:
    assert next(reach for reach in Reach if beyond(tool, given, reach, PLACE) is None) is least


def beyond(
    tool: str, given: dict[str, Any], reach: Reach, place: Place, granted: Collection[str] = ()
) -> BeyondReach | None:
    """How the call exceeds the reach, unless somebody has granted just that."""
    beyond_reach = exceeding(tool, given, reach, place)
    return None if beyond_reach is None or beyond_reach.digest in granted else beyond_reach


def granted_by(tool: str, given: dict[str, Any], place: Place = PLACE) -> str:
    """What a person allows who approves the call."""
    beyond_reach = beyond(tool, given, Reach.NETWORK, place)
    assert beyond_reach is not None
    digest = digest_in(rule_for(tool, given, beyond_reach.digest))
    assert digest == beyond_reach.digest
    return digest


def holding(**files: str) -> Place:
    """The same place, with these files in its folder."""
    results = {f"/code/shop/{name.replace('_', '.')}": text for name, text in files.items()}
    return Place("/code/shop", ("/code/shop",), "/home/ada", read=results.get)


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        ("./x.sh", {"x_sh": "npm publish\n"}, {"x_sh": "npm publish\ngit push --force\n"}),
        ("./x.sh", {"x_sh": "npm publish\n"}, {"x_sh": "npm publish --tag latest\n"}),
        ("make go", {"Makefile": "go:\n\tkubectl delete pod a\n"}, {"Makefile": "go:\n\tkubectl delete ns a\n"}),
        ("python x.py", {"x_py": "import smtplib\n"}, {"x_py": "import paramiko\nimport smtplib\n"}),
    ],
)
def test_a_grant_is_for_what_the_call_did_then(command: str, before: dict[str, str], after: dict[str, str]) -> None:
    given = {"command": command}
    digest = granted_by("Bash", given, holding(**before))
    assert beyond("Bash", given, Reach.NETWORK, holding(**before), [digest]) is None
    assert beyond("Bash", given, Reach.NETWORK, holding(**after), [digest]) is not None
    harmless = {name: f"# changed\n{text}" for name, text in before.items() if name != "x_py"}
    assert not harmless or beyond("Bash", given, Reach.NETWORK, holding(**harmless), [digest]) is None


def test_all_that_goes_too_far_is_told_the_farthest_first() -> None:
    line = "; ".join(["npm publish", "rm -rf ~", *(f"gh issue close {n}" for n in range(9))])
    beyond_reach = beyond("Bash", {"command": line}, Reach.NETWORK, PLACE)
    assert beyond_reach is not None
    assert beyond_reach.needs is Reach.ANY
    assert beyond_reach.does.startswith("`rm -rf ~` removes the home folder")
    assert beyond_reach.does.endswith("; and 7 more")


def test_a_grant_is_for_exactly_that_call() -> None:
    given = {"command": "cd a &&\nnpm publish", "timeout": 1}
    digest = granted_by("Bash", given)
    assert beyond("Bash", {**given, "timeout": 2}, Reach.NETWORK, PLACE, [digest]) is None
    for other in ("cd b &&\nnpm publish", "cd a && npm publish", "npm publish", "cd a &&\nnpm publish; rm -rf ~"):
        assert beyond("Bash", {"command": other}, Reach.NETWORK, PLACE, [digest]) is not None
    assert beyond("Monitor", given, Reach.NETWORK, PLACE, [digest]) is not None


@pytest.mark.parametrize("command", ["npm publish", "a\nb", "x" * 5_000, "\x1b[31m", "é"])
def test_the_rule_is_a_printable_line(command: str) -> None:
    digest = f"{digest_of('Bash', command)}.{digest_of_acts([])}"
    rule = rule_for("Bash", {"command": command}, digest)
    assert rule.isprintable()
    assert len(rule) < 300
    assert digest_in(rule) == digest
    bare = without_words(rule)
    assert bare is not None
    assert command not in bare
    assert digest_in(bare) == digest_in(rule)


@pytest.mark.parametrize(
    "rule",
    [
        "Bash(npm publish)",
        "beyond-reach:",
        "beyond-reach:0123456789abcdef",
        "beyond-reach:0123456789abcdef.0123456789abcdefX",
        "",
    ],
)
def test_other_rules_are_none_of_these(rule: str) -> None:
    assert digest_in(rule) is None
    assert without_words(rule) is None


def test_what_a_call_is_about_does_not_depend_on_what_is_said_beside_it() -> None:
    assert subject_of({"command": "x", "description": "a"}) == subject_of({"description": "b", "command": "x"})
    assert subject_of({"b": 1, "a": 2}) == subject_of({"a": 2, "b": 1})
