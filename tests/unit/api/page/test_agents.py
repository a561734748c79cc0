"""What the pages say of agents, hosts and the drain, and the buttons that hold and release them."""

import re

from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.host import HostView, NodeView
from claudomator_py.domain.lifecycle import (
    Completed,
    Phase,
    Running,
)
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.units import MINUTE_MS, SECOND_MS
from tests.fakes.prepared import START_MS, PreparedService
from tests.unit.api.page.conftest import Visitor, text_of
from tests.unit.api.page.test_front import AT_THREE, section


def test_that_no_agent_can_take_anything_is_said_once(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude", AT_THREE)
    assert "All agents are limited. The next to be available is claude, at 2026-09-21 15:00 UTC" in text_of(
        operator.get("/")
    )
    prepared.add_agent("codex")
    assert "All agents are limited" not in text_of(operator.get("/"))


def test_a_share_from_before_a_limit_is_not_shown_as_of_now(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    shares = {
        name: WindowUse(used=used, resets_at=AT_THREE) for name, used in (("five_hour", 0.43), ("seven_day", 0.2))
    }
    prepared.add_run(prepared.add("it", Completed()), outcome=Outcome(status=OutcomeStatus.SUCCEEDED, windows=shares))
    assert 'value="0.43"' in operator.get("/agents").body.decode()
    prepared.world.now_ms += 2 * MINUTE_MS
    prepared.limit("claude", AT_THREE, window="five_hour", source="five_hour")
    page = operator.get("/agents")
    assert 'value="0.43"' not in page.body.decode()
    assert "limited resets 2026-09-21 15:00 UTC ; 43% was read" in text_of(page)
    assert 'value="0.2"' in page.body.decode(), "the other window has its own"
    prepared.limit("claude", AT_THREE + MINUTE_MS)
    page = operator.get("/agents")
    assert 'value="0.2"' not in page.body.decode()
    assert "20% before the limit, read" in text_of(page)


def test_an_agent_that_is_limited_for_a_while_needs_nobody(operator: Visitor, prepared: PreparedService) -> None:
    until = "2026-09-21T15:00:00.000Z"
    prepared.add_agent("claude")
    task = prepared.add("it", Completed())
    warned = Outcome(
        status=OutcomeStatus.SUCCEEDED, near_limit="seven_day", near_limit_used=0.93, near_limit_until=AT_THREE
    )
    run = prepared.add_run(task, outcome=warned)
    prepared.limit("claude", AT_THREE, window="five_hour", source="five_hour", run_id=run)
    prepared.limit("claude", START_MS + SECOND_MS, family="opus", window="seven_day_opus", run_id=run)
    prepared.world.now_ms += MINUTE_MS
    words = "being tried after its limit (7d opus window, "
    page = operator.get("/")
    text = text_of(page)
    assert "Nothing needs you." in text
    shown = f'<time datetime="{until}" data-show="until">2026-09-21 15:00 UTC</time>'
    assert f"limited (5h window, reported) until {shown}" in page.body.decode()
    assert f"7d window is 93% used; it resets {shown}" in page.body.decode()
    for expected in ("claude/default", f"read from run {run[:8]}", words, "Release opus"):
        assert expected in text
    assert operator.post("/agents/claude/release", {"family": "opus"}).status == 303
    assert [left.family for left in prepared.agents()[0].holds] == [None]
    assert operator.post("/agents/claude/release", {"family": "no family"}).status == 422


def test_an_agent_is_held_and_the_daemon_drained_by_buttons(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    page = operator.get("/").body.decode()
    assert 'action="/agents/claude/hold"' in page
    assert 'action="/drain"' in page
    assert operator.post("/agents/claude/hold").status == 303
    assert operator.post("/drain").status == 303
    page = operator.get("/").body.decode()
    assert 'action="/agents/claude/hold"' not in page
    assert 'action="/agents/claude/release"' in page
    assert 'action="/drain"' not in page
    assert "Drained: nothing starts" in page
    assert operator.post("/undrain").status == 303
    assert 'action="/drain"' in operator.get("/").body.decode()
    assert operator.post("/agents/nobody/hold").status == 404


def test_the_head_of_every_page_says_what_is_not_started_and_leads_back(
    operator: Visitor, prepared: PreparedService
) -> None:
    for name in ("claude", "codex", "gemini", "opencode"):
        prepared.add_agent(name)
    assert 'action="/drain"' in operator.get("/night").body.decode()
    answer = operator.post("/drain", Referer="http://any.test/report?since=24h")
    assert (answer.status, answer.headers["location"]) == (303, "/report?since=24h")
    assert operator.post("/drain", Referer="http://any.test//evil.test/x").headers["location"] == "/"
    needs = section(operator.get("/"), "needs-you")
    assert not re.search(r"\d\dT\d\d:", needs), "an instant is worded"
    assert " UTC" in needs
    for path in ("/night", "/report", "/channels", "/new"):
        page = operator.get(path).body.decode()
        assert "Drained: nothing starts" in page
        assert 'action="/undrain"' in page
    operator.post("/undrain")
    operator.post("/agents/codex/hold")
    page = operator.get("/schedules").body.decode()
    assert "codex held" in page
    assert "Nothing starts on it until it is released." in text_of(operator.get("/"))
    assert 'action="/agents/codex/release"' in page
    for name in ("claude", "gemini", "opencode"):
        operator.post(f"/agents/{name}/hold")
    page = operator.get("/schedules").body.decode()
    assert "2 more held" in page


def test_release_ends_the_holds_and_leads_back(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude")
    answer = operator.post("/agents/claude/release")
    assert (answer.status, answer.headers["location"]) == (303, "/#agents")
    assert not prepared.agents()[0].limited
    assert operator.post("/agents/nobody/release").status == 404


def test_agents_have_a_page(operator: Visitor, prepared: PreparedService) -> None:
    assert "claudomator init" in text_of(operator.get("/agents"))
    prepared.add_agent("claude")
    prepared.limit("claude", AT_THREE)
    page = operator.get("/agents")
    assert "limited" in text_of(page)
    assert 'action="/agents/claude/release"' in page.body.decode()


def test_where_runs_take_place_is_shown_once_there_is_more_than_this_machine(
    operator: Visitor, prepared: PreparedService
) -> None:
    for path in ("/", "/agents"):
        assert 'id="hosts"' not in operator.get(path).body.decode()
    prepared.add_agent("claude")
    prepared.add_run(prepared.add("here", Running(Phase.RUNNING)))
    there = prepared.add_run(prepared.add("there", Running(Phase.RUNNING)))
    host = prepared.world.host
    waits = {"no node has room (Resources)": 1}
    lost = NodeView(name="n2", state="drained", reason="a new disk")
    host.clusters = [
        HostView(
            name="cluster",
            kind="slurm",
            live=7,
            waits=waits,
            clock_skew=-61.2,
            nodes={"idle": 2, "drained": 1},
            unusable=(lost,),
            version="slurm 22.05.8",
            cpus=12,
            cpus_used=1,
        )
    ]
    host.hosts_of_runs[there] = "cluster"
    for path in ("/", "/agents"):
        page = operator.get(path).body.decode()
        shown = page[page.index('id="hosts"') :]
        assert "1 not placed yet: no node has room (Resources)" in shown
        assert "n2 is drained: a new disk" in shown
        for words in ("slurm 22.05.8", "2 nodes idle", "1 node drained", "1/12 CPUs"):
            assert f"<span>{words}</span>" in shown
        assert "The clock of a node differs by at least 61.2 s." in shown
        assert shown.count("claude 1") == 2
        assert shown.count("</span>1/2</span>") == 1, "an agent works on this machine unless it says where"
        assert shown.count("</span>1/0</span>") == 1
    assert operator.post("/hosts/cluster/drain").status == 404, "the daemon of this test has none"
    assert operator.post("/hosts/local/drain").status == 303
    assert 'action="/hosts/local/undrain"' in operator.get("/agents").body.decode()
    assert operator.post("/hosts/local/undrain").status == 303
    assert 'action="/hosts/local/drain"' in operator.get("/").body.decode()
