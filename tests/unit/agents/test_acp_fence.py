"""A run over ACP is kept within its reach by what its client answers: real processes, with a scripted agent."""

from pathlib import Path
from typing import Any

import pytest

from claudomator_py.acts import Reach, digest_in
from claudomator_py.agents.acp.kind import KIND
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.outcome import OutcomeStatus
from tests.unit.agents.acp_runs import Ran, Runs, task

PUSH = "git push --force origin main"


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def asked(runs: Runs, call: dict[str, Any], reach: Reach = Reach.NETWORK, **request: Any) -> Ran:
    turn = [{"ask": {"toolCallId": "c1", **call}, "does": str(runs.place / "made")}, {"say": "After."}, {"end": {}}]
    permissions = request.pop("permissions", {"mode": "bypassPermissions"})
    return runs.run({"turn": turn}, task=task(permissions=permissions), reach=reach, **request)


def ran_it(runs: Runs) -> bool:
    return (runs.place / "made").exists()


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "execute", "rawInput": {"command": PUSH}},
        {"kind": "execute", "title": PUSH},
        {"kind": "execute", "title": "look around", "rawInput": {"command": f"ls; sh -c '{PUSH}'"}},
        {"kind": "other", "rawInput": {"commands": ["ls", PUSH]}},
        {"rawInput": {"cmd": ["bash", "-lc", PUSH]}},
        {"kind": "edit", "title": "notes", "locations": [{"path": "notes"}, {"path": "/etc/cron.d/job"}]},
        {"kind": "delete", "title": "all", "locations": [{"path": "/etc/hosts"}]},
        {},
        {"kind": "execute"},
    ],
)
def test_what_goes_too_far_is_denied_whatever_the_permissions(runs: Runs, call: dict[str, Any]) -> None:
    ran = asked(runs, call)
    assert not ran_it(runs)
    assert ran.outcome.denials == 1
    assert ran.outcome.denied[0].beyond


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "execute", "rawInput": {"command": "git commit -m 'git push'; npm test"}},
        {"kind": "execute", "title": "npm install left-pad"},
        {"kind": "edit", "title": "notes", "locations": [{"path": "notes"}]},
        {"kind": "delete", "title": "notes", "locations": [{"path": "notes"}]},
        {"kind": "fetch", "rawInput": {"url": "https://example.org"}},
        {"kind": "other", "title": "ask_operator (claudomator MCP Server)"},
    ],
)
def test_what_stays_within_is_not_disturbed(runs: Runs, call: dict[str, Any]) -> None:
    ran = asked(runs, call)
    assert (ran_it(runs), ran.outcome.status) == (True, OutcomeStatus.SUCCEEDED)


def test_permissions_count_within_the_reach(runs: Runs) -> None:
    ran = asked(runs, {"kind": "execute", "rawInput": {"command": "npm test"}}, permissions={})
    assert not ran_it(runs)
    assert (ran.outcome.denied[0].beyond, ran.outcome.denied[0].rule) == (None, "execute(npm test)")


def test_a_nearer_reach(runs: Runs) -> None:
    assert asked(runs, {"kind": "fetch", "rawInput": {"url": "https://example.org"}}, Reach.TREE).outcome.denials == 1
    assert asked(runs, {"kind": "execute", "title": "curl example.org"}, Reach.TREE).outcome.denials == 1


def test_what_a_person_allows_is_exactly_that_call(runs: Runs) -> None:
    call = {"kind": "execute", "rawInput": {"command": PUSH}}
    rule = asked(runs, call).outcome.denied[0].rule
    digest = digest_in(rule or "")
    assert digest is not None
    asked(runs, {**call, "rawInput": {"command": f"{PUSH} --tags"}}, granted_acts=(digest,))
    assert not ran_it(runs)
    asked(runs, call, granted_acts=(digest,), permissions={})
    assert ran_it(runs)


@pytest.mark.parametrize("mode", ["bypassPermissions", "acceptEdits", "default"])
def test_it_asks_about_all_whatever_the_mode(runs: Runs, mode: str) -> None:
    offered = [{"id": name} for name in ("default", "autoEdit", "yolo")]
    script = {"session": {"modes": {"currentModeId": "yolo", "availableModes": offered}}}
    gemini = Runs(runs.place, program="gemini")
    ran = gemini.run(script, task=task(permissions={"mode": mode}), reach=Reach.NETWORK)
    assert [asked["modeId"] for asked in ran.asked("session/set_mode")] == ["default"]


def test_one_that_has_lost_the_mode_in_which_it_asks_is_not_started(runs: Runs) -> None:
    script = {"session": {"modes": {"currentModeId": "yolo", "availableModes": [{"id": "yolo"}]}}}
    gemini = Runs(runs.place, program="gemini")
    ran = gemini.run(script, task=task(permissions={"mode": "bypassPermissions"}), reach=Reach.NETWORK)
    assert ran.outcome.status is OutcomeStatus.FAILED
    assert ran.asked("session/prompt") == []


@pytest.mark.parametrize(
    ("program", "why"),
    [("gemini", None), ("copilot", None), ("pi-acp", "it does not ask"), ("something", "not known to ask")],
)
def test_who_cannot_be_held_says_so(program: str, why: str | None) -> None:
    unfenced = KIND.unfenced(AgentSpec(name="an-agent", kind="acp", command=(program,)))
    assert unfenced is None if why is None else why in (unfenced or "")
