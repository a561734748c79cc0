"""The page of the policy: rules in their order, what waits for an approval, and what became of others."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claudomator_py.__main__ import application
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.policy.rule import Rule
from claudomator_py.resources.access import TokenRequest
from tests.fakes.daemon import running
from tests.fakes.prepared import PreparedService
from tests.fakes.steps import spec
from tests.unit.api.page.conftest import Visitor, hidden, log_in, text_of

RULES = (
    {"name": "no-prod", "when": '"prod" in task.tags', "deny": "production is for admins"},
    {"name": "infra", "when": 'task.name.startsWith("dig")', "approve": {"by": ["admin"], "within": "12h"}},
    {"name": "odd", "when": "'odd' in task.tags || size(task.name) == 3 && int(task.name) > 3", "risk": "medium"},
)
HOUR_MS = 3_600_000


@pytest.fixture
def policed(prepared: PreparedService) -> Iterator[PreparedService]:
    """Three rules, and a task for each of two, besides one that nothing is said of."""
    prepared.world.policy_rules = tuple(map(Rule.model_validate, RULES))
    prepared.world.restarted_daemon()
    prepared.world.service.submit(spec("live", tags=("prod",)))
    prepared.world.service.submit(spec("dig"))
    prepared.world.service.submit(spec("plain", tags=("odd",)))
    prepared.world.router.route()
    yield prepared
    prepared.world.policy_rules = ()
    prepared.world.restarted_daemon()


@pytest.fixture
def visitor(policed: PreparedService, tmp_path: Path) -> Iterator[Visitor]:
    with running(policed.world, tmp_path / "state2") as daemon:
        yield log_in(daemon)


def test_rules_stand_in_their_order_with_how_often_each_applied(visitor: Visitor) -> None:
    page = visitor.get("/policy")
    text = text_of(page)
    assert page.status == 200
    assert re.findall(r'<th scope="row">([a-z-]+)', page.body.decode()) == [
        "no-prod",
        "infra",
        "odd",
        "high-risk",
        "harmful",
    ]
    assert "1 task denied, 1 held for approval." in text
    assert "high-risk built in judged by the text of the task approve 0" in text
    assert 'no-prod "prod" in task.tags deny: production is for admins 1' in text
    assert "odd 'odd' in task.tags || size(task.name) == 3 && int(task.name) > 3 risk: medium 1 1" in text
    assert "In force since" in text
    assert "no task has been evaluated yet" not in text
    assert visitor.get("/policy?days=0").status == 422


def test_what_waits_is_approved_with_a_reason(visitor: Visitor, policed: PreparedService) -> None:
    page = visitor.get("/policy")
    task = policed.world.row("dig").id
    assert "can be approved by admin until" in text_of(page)
    assert f'href="/tasks/{task}/approve"' in page.body.decode()
    version = hidden(visitor.get(f"/tasks/{task}/approve"), "version")
    sent = {"version": version, "reason": "seen the plan"}
    assert visitor.post(f"/tasks/{task}/approve", sent).status == 303
    text = text_of(visitor.get("/policy"))
    assert "Nothing waits for an approval." in text
    assert "dig given operator seen the plan infra" in text
    assert "Approved seen the plan, rules infra, odd, by operator" in text_of(visitor.get(f"/tasks/{task}"))


def test_what_is_refused_or_expires_is_told_with_why(visitor: Visitor, policed: PreparedService) -> None:
    world = policed.world
    for name in ("dig-more", "dig-late"):
        world.service.submit(spec(name))
    world.router.route()
    task = world.row("dig-more").id
    version = hidden(visitor.get(f"/tasks/{task}/reject"), "version")
    assert visitor.post(f"/tasks/{task}/reject", {"version": version, "reason": "too deep"}).status == 303
    world.now_ms += 13 * HOUR_MS
    world.tick()
    text = text_of(visitor.get("/policy"))
    assert "dig-more refused operator too deep infra" in text
    assert "dig-late expired nobody infra" in text


def test_only_who_may_sees_it_and_what_it_may_do(policed: PreparedService, tmp_path: Path) -> None:
    world = policed.world
    with running(world, tmp_path / "state2") as daemon:
        asking = (
            TokenRequest(name="ann", role="read"),
            TokenRequest(name="joe", role="operate"),
            TokenRequest(name="eve", role="operate", organisation="other"),
        )
        reader, worker, other = (log_in(daemon, world.tokens.create(token_request).token) for token_request in asking)
        assert reader.get("/policy").status == 403
        assert 'href="/policy"' not in reader.get("/").body.decode()
        page = worker.get("/policy").body.decode()
        assert ("/approve" in page, "/reject" in page) == (False, True)
        text = text_of(other.get("/policy"))
        assert "Nothing waits for an approval." in text
        assert "No task was judged in 30 days." in text
        assert policed.world.row("dig").id not in other.get("/policy").body.decode()


def test_nobody_has_written_rules(operator: Visitor, prepared: PreparedService) -> None:
    text = text_of(operator.get("/policy"))
    assert "Nothing waits for an approval." in text
    assert "high-risk built in" in text
    assert "Hash" not in text


TASK = """\
name: dig-a-hole
instructions: Dig a hole.
tags: [odd]
---
name: live
instructions: Deploy it.
tags: [prod]
"""


def test_the_rules_are_asked_about_a_task_that_there_is_not(visitor: Visitor, policed: PreparedService) -> None:
    tasks = len(policed.world.service.page(TaskFilter(), None, 50).items)
    page = visitor.post("/policy", {"text": TASK})
    text = text_of(page)
    assert page.status == 200
    assert "dig-a-hole is held, with medium risk: the policy requires approval (infra)." in text
    assert "Approval by admin within 12h." in text
    assert "no-prod no infra yes approve odd yes risk" in text
    assert "live is denied, with high risk: rule no-prod of the policy refuses it: production is for admins." in text
    assert "name: dig-a-hole" in page.body.decode()
    assert len(policed.world.service.page(TaskFilter(), None, 50).items) == tasks


def test_what_is_wrong_with_the_text_has_its_place_and_what_to_do(visitor: Visitor) -> None:
    page = visitor.post("/policy", {"text": "name: dig\ninstructions: x\npriority: soon\nagnt: {}\n"})
    text = text_of(page)
    assert page.status == 422
    assert "3: priority: soon is not a priority; write one of high, low, normal, urgent" in text
    assert "4: agnt: is not a known key; did you mean agent?" in text
    assert "Fix the listed problems" in text
    assert "agnt: {}" in page.body.decode()
    assert visitor.post("/policy", {"text": " "}).status == 422


def test_who_may_not_see_the_rules_may_not_ask_them(policed: PreparedService, tmp_path: Path) -> None:
    world = policed.world
    with running(world, tmp_path / "state2") as daemon:
        reader = log_in(daemon, world.tokens.create(TokenRequest(name="ann", role="read")).token)
        assert reader.post("/policy", {"text": TASK}).status == 403


def test_it_says_what_the_command_line_says(visitor: Visitor, tmp_path: Path) -> None:
    config, task = tmp_path / "claudomator.yaml", tmp_path / "task.yaml"
    config.write_text(json.dumps({"policy": RULES}))
    task.write_text(TASK)
    ran = CliRunner().invoke(application(), ["policy", "test", str(task), "--config", str(config)])
    text = text_of(visitor.post("/policy", {"text": TASK}))
    lines = [" ".join(line.split()) for line in ran.stdout.splitlines() if not line.startswith("RULE")]
    assert "dig-a-hole is held, with medium risk: the policy requires approval (infra)." in lines
    assert [line for line in lines if line not in text] == []
