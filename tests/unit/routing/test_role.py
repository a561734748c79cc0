"""What a card adds to a task, and what it leaves open."""

from typing import Any

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.card import Card
from claudomator_py.domain.routing import Constraints
from claudomator_py.domain.task import Permissions, TaskSpec
from claudomator_py.domain.worktree import Isolation
from claudomator_py.routing.role import agent_of, constraints_of, done_by, escalation_of


def card(**fields: Any) -> Card:
    return Card.model_validate({"id": "writer", "description": "Writes.", **fields})


def task(**fields: Any) -> TaskSpec:
    return TaskSpec.model_validate({"name": "page", "instructions": "Write the page.", **fields})


@pytest.mark.parametrize(
    ("asked", "allowed", "given"),
    [
        ({}, {"mode": "acceptEdits"}, {"mode": "acceptEdits"}),
        ({"mode": "plan"}, {"mode": "acceptEdits"}, {"mode": "plan"}),
        ({"mode": "bypassPermissions"}, {"mode": "acceptEdits"}, {"mode": "acceptEdits"}),
        (
            {"mode": "acceptEdits"},
            {"disallowed_tools": ["Bash"]},
            {"mode": "acceptEdits", "disallowed_tools": ["Bash"]},
        ),
        ({"allowed_tools": ["Read", "Bash"]}, {"allowed_tools": ["Read"]}, {"allowed_tools": ["Read"]}),
        ({"allowed_tools": ["Bash"]}, {}, {"allowed_tools": ["Bash"]}),
        ({}, {"allowed_tools": ["Read"]}, {"allowed_tools": ["Read"]}),
        ({"mode": "acceptEdits"}, {"tools": ["Read"]}, {"mode": "acceptEdits", "tools": ["Read"]}),
        ({}, {"tools": ["Bash"]}, {"tools": ["Bash"]}),
        ({"tools": ["Read", "Bash"]}, {"tools": ["Bash", "Edit"]}, {"tools": ["Bash"]}),
        ({"tools": ["Read"]}, {"tools": ["Bash"]}, {"tools": []}),
        (
            {"allowed_tools": ["Bash", "Edit"]},
            {"tools": ["Bash(git diff:*)", "Read"]},
            {"tools": ["Bash(git diff:*)", "Read"], "allowed_tools": ["Bash(git diff:*)"]},
        ),
        ({"disallowed_tools": ["Edit"]}, {"disallowed_tools": ["Bash"]}, {"disallowed_tools": ["Bash", "Edit"]}),
    ],
)
def test_a_task_restricts_what_the_card_allows_and_extends_nothing(
    asked: dict[str, Any], allowed: dict[str, Any], given: dict[str, Any]
) -> None:
    done = done_by(task(permissions=asked), card(permissions=allowed))
    assert done.permissions == Permissions.model_validate(given)


@pytest.mark.parametrize(
    ("asked", "allowed", "forbidden", "given"),
    [
        ([], ["Bash", "Read"], ["Bash"], ["Read"]),
        ([], ["Bash(git *)", "Read"], ["Bash"], ["Read"]),
        ([], ["Bash", "Read"], ["Bash(rm *)"], ["Read"]),
        ([], ["Bash(git *)", "Read"], ["Bash(git push *)"], ["Read"]),
        ([], ["Bash", "Read"], ["Edit"], ["Bash", "Read"]),
        (["Bash"], ["Read"], ["Bash"], ["Bash"]),
    ],
)
def test_a_card_that_only_adds_allows_nothing_that_it_forbids(
    asked: list[str], allowed: list[str], forbidden: list[str], given: list[str]
) -> None:
    matched = card(permissions={"allowed_tools": allowed, "disallowed_tools": forbidden})
    done = done_by(task(permissions={"allowed_tools": asked}), matched, Constraints(role_adds=True))
    assert done.permissions == Permissions.model_validate({"allowed_tools": given})


@pytest.mark.parametrize(
    ("card_permissions", "given"),
    [
        ({"mode": "bypassPermissions"}, {"mode": "bypassPermissions"}),
        ({"mode": "bypassPermissions", "disallowed_tools": ["Bash"]}, {}),
        ({"mode": "bypassPermissions", "tools": ["Read"]}, {}),
        ({"mode": "acceptEdits", "disallowed_tools": ["Bash"]}, {"mode": "acceptEdits"}),
        ({"tools": ["Read"], "allowed_tools": ["Bash", "Read"]}, {"allowed_tools": ["Read"]}),
    ],
)
def test_a_card_that_only_adds_grants_no_more_than_to_a_task_that_names_it(
    card_permissions: dict[str, Any], given: dict[str, Any]
) -> None:
    done = done_by(task(), card(permissions=card_permissions), Constraints(role_adds=True))
    assert done.permissions == Permissions.model_validate(given)


def test_a_card_without_permissions_leaves_them_to_the_task() -> None:
    asked = task(permissions={"mode": "plan"})
    assert done_by(asked, card()) is asked


def test_without_a_card_and_with_that_of_somebody_remote_a_task_stays_as_it_is() -> None:
    asked = task(permissions={"mode": "plan"})
    assert done_by(asked, None) is asked
    remote = card(url="https://example.org", permissions={"mode": "acceptEdits"}, expected_output="The page.")
    assert done_by(task(), remote) == task()


@pytest.mark.parametrize("by", [None, card()], ids=["nobody", "a specialist"])
def test_a_rule_that_isolates_puts_a_task_with_a_directory_into_a_work_tree(by: Card | None) -> None:
    isolated = Constraints(isolated=True)
    in_place = task(working_dir="/srv/shop")
    assert done_by(in_place, by).isolation is not Isolation.WORKTREE
    assert done_by(in_place, by, isolated) == task(working_dir="/srv/shop", isolation="worktree")
    assert done_by(task(), by, isolated) == task(), "it has a directory of its own"


def test_the_card_says_what_is_handed_back_where_the_task_does_not() -> None:
    writes = card(expected_output="The page.")
    assert done_by(task(), writes).expected_output == "The page."
    assert done_by(task(expected_output="Two pages."), writes).expected_output == "Two pages."


def test_what_a_card_says_of_agents_and_tiers() -> None:
    assert constraints_of(card()) == Constraints()
    local = card(allowed_agents=["claude"], default_tier="powerful")
    assert constraints_of(local) == Constraints(agents=("claude",), default_tier=Tier.POWERFUL)
    assert constraints_of(card(url="https://example.org")).agents == ("http:writer",)


@pytest.mark.parametrize(
    ("by", "to"),
    [
        (None, ("human_review",)),
        (card(), ("human_review",)),
        (card(fallback="editor", escalation="lawyer"), ("editor", "lawyer", "human_review")),
        (card(fallback="editor", escalation="editor"), ("editor", "human_review")),
        (card(escalation="human_review"), ("human_review",)),
    ],
)
def test_where_a_task_goes_next_and_at_last_to_a_person(by: Card | None, to: tuple[str, ...]) -> None:
    assert escalation_of(by) == to


def test_a_remote_specialist_is_an_agent_that_is_asked_for_by_name_and_gets_its_own_secret_alone() -> None:
    secret = {"scheme": "bearer", "secret": "WRITER_TOKEN"}
    over_http = agent_of(card(url="https://example.org", authentication=secret, max_concurrent=3))
    assert (over_http.name, over_http.kind, over_http.specialist) == ("http:writer", "a2a", "writer")
    assert (over_http.auto_select, over_http.pass_env, over_http.max_concurrent) == (False, ("WRITER_TOKEN",), 3)
    assert agent_of(card(url="https://example.org")).pass_env == ()
    at_the_hub = agent_of(card(url="ws-agent://writer", authentication=secret, max_concurrent=3))
    assert (at_the_hub.name, at_the_hub.kind, at_the_hub.specialist) == ("hub:writer", "hub", "writer")
    assert (at_the_hub.auto_select, at_the_hub.pass_env, at_the_hub.max_concurrent) == (False, (), 3)
    with pytest.raises(ValueError, match="not reached over HTTP"):
        agent_of(card())
