"""Each line of the data has examples of what it is and what it is not; all of them are tried."""

from collections.abc import Mapping
from typing import Any

import pytest

from claudomator_py.acts import Reach
from claudomator_py.acts.catalogue import catalogue, data, read
from claudomator_py.acts.pattern import Call, Pattern, Place
from claudomator_py.acts.reading import acts
from claudomator_py.acts.words import WordTests
from tests.fakes.acts import least_reach

ENTRIES: list[Mapping[str, Any]] = data()["act"]


@pytest.mark.parametrize(
    ("kind", "line"), [(entry["kind"], line) for entry in ENTRIES for line in entry["is"]], ids=lambda entry: str(entry)
)
def test_what_is(kind: str, line: str) -> None:
    result = acts(line)
    assert kind in {act.kind for act in result}
    assert least_reach(result) >= catalogue().kinds[kind].reach


@pytest.mark.parametrize(
    ("kind", "line"),
    [(entry["kind"], line) for entry in ENTRIES for line in entry["is_not"]],
    ids=lambda entry: str(entry),
)
def test_what_is_not(kind: str, line: str) -> None:
    assert kind not in {act.kind for act in acts(line)}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["kind"]))
def test_each_entry_says_what_it_is(entry: Mapping[str, Any]) -> None:
    assert entry["does"]
    assert entry["is"] or entry["tools"]
    assert entry["is_not"] or entry["tools"]
    assert Reach(entry["reach"]) > Reach.TREE


def test_a_test_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no test \{nowhere\}"):
        Pattern.parse("scp {nowhere}", WordTests(catalogue().files).by_name())


def test_a_damaged_reach_is_refused() -> None:
    fields = {**data(), "act": [{**ENTRIES[0], "reach": "moon"}]}
    with pytest.raises(ValueError, match="moon"):
        read(fields)


@pytest.mark.parametrize(
    ("pattern", "program", "words", "matches"),
    [
        ("kubectl delete", "kubectl", "-n prod delete pod x", True),
        ("kubectl delete", "kubectl", "--context=prod delete pod", True),
        ("kubectl delete", "kubectl", "get delete", False),
        ("aws * ^list-*|get-*", "aws", "iam list-users", False),
        ("aws * ^list-*|get-*", "aws", "iam create-user", True),
        ("gcloud ... delete", "gcloud", "compute instances delete vm", True),
        ("curl -X|--request=POST,PUT", "curl", "-sXPOST x", True),
        ("curl -X|--request=POST,PUT", "curl", "--request=PUT x", True),
        ("curl -X|--request=POST,PUT", "curl", "-X GET x", False),
        ("git push -f|--force", "git", "push -uf origin x", True),
        ("git push -f|--force", "git", "push origin f", False),
        ("npm publish !--dry-run", "npm", "publish --dry-run", False),
        ("kill +-1", "kill", "-9 -1", True),
    ],
)
def test_patterns(pattern: str, program: str, words: str, matches: bool) -> None:
    parsed = Pattern.parse(pattern, WordTests(catalogue().files).by_name())
    valued = catalogue().values.get(program, frozenset())
    assert parsed.matches(Call(program, tuple(words.split()), {}, Place(), valued)) is matches
