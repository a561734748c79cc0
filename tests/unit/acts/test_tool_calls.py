"""Whether a tool call goes beyond a reach, and what allows exactly it."""

from typing import Any

import pytest

from claudomator_py.acts.place import Place
from claudomator_py.acts.reach import Reach
from claudomator_py.acts.tool_calls import beyond, digest_in, digest_of, rule_for, subject_of, without_words

PLACE = Place("/work/shop", ("/work/shop",), "/home/ada")


@pytest.mark.parametrize(
    ("tool", "given", "least"),
    [
        ("Bash", {"command": "npm publish", "description": "As asked"}, Reach.PUBLISH),
        ("Bash", {"command": "npm test"}, Reach.TREE),
        ("exec_command", {"cmd": "npm ci"}, Reach.NETWORK),
        ("shell", {"command": ["bash", "-lc", "npm publish"]}, Reach.PUBLISH),
        ("shell", {"command": ["git", "commit", "-m", "npm publish; rm -rf ~"]}, Reach.TREE),
        ("Write", {"file_path": "/work/shop/a.py", "content": "npm publish"}, Reach.TREE),
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
        ("Grep", {"pattern": "npm publish", "path": "/work/shop"}, Reach.TREE),
        ("TodoWrite", {"todos": ["npm publish"]}, Reach.TREE),
    ],
)
def test_how_far_a_call_goes(tool: str, given: dict[str, Any], least: Reach) -> None:
    assert next(reach for reach in Reach if beyond(tool, given, reach, PLACE) is None) is least


def test_a_grant_is_for_exactly_that_call() -> None:
    given = {"command": "cd a &&\nnpm publish", "timeout": 1}
    digest = digest_in(rule_for("Bash", given))
    assert digest is not None
    assert beyond("Bash", {**given, "timeout": 2}, Reach.NETWORK, PLACE, [digest]) is None
    for other in ("cd b &&\nnpm publish", "cd a && npm publish", "npm publish", "cd a &&\nnpm publish; rm -rf ~"):
        assert beyond("Bash", {"command": other}, Reach.NETWORK, PLACE, [digest]) is not None
    assert beyond("Monitor", given, Reach.NETWORK, PLACE, [digest]) is not None


@pytest.mark.parametrize("command", ["npm publish", "a\nb", "x" * 5_000, "\x1b[31m", "é"])
def test_the_rule_is_a_printable_line(command: str) -> None:
    rule = rule_for("Bash", {"command": command})
    assert rule.isprintable()
    assert len(rule) < 300
    assert digest_in(rule) == digest_of("Bash", command)
    bare = without_words(rule)
    assert bare is not None
    assert command not in bare
    assert digest_in(bare) == digest_in(rule)


@pytest.mark.parametrize("rule", ["Bash(npm publish)", "beyond-reach:", "beyond-reach:0123456789abcdefX", ""])
def test_other_rules_are_none_of_these(rule: str) -> None:
    assert digest_in(rule) is None
    assert without_words(rule) is None


def test_what_a_call_is_about_does_not_depend_on_what_is_said_beside_it() -> None:
    assert subject_of({"command": "x", "description": "a"}) == subject_of({"description": "b", "command": "x"})
    assert subject_of({"b": 1, "a": 2}) == subject_of({"a": 2, "b": 1})
