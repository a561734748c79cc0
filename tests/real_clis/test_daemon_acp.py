"""Agents over ACP under a daemon: limits, timeouts, a reach, and the run's own tools over HTTP."""

from claudomator_py.agents.acp.profiles import profile_of
from claudomator_py.resources.tasks import AnswerRequest
from tests.e2e.scenarios_support import ended, in_state, last_run, why
from tests.fakes.http_api import Refusal, Text, ToolCall
from tests.patience import wait_until
from tests.real_clis.acp_clis import ACP_CLIS, OverAcp
from tests.real_clis.clis import each
from tests.real_clis.place import EDITS, END_S, NEXT, SLEEP, Place

COPILOT = next(cli for cli in ACP_CLIS if cli.kind == "copilot")
KEPT = [cli for cli in ACP_CLIS if profile_of((cli.kind,)).fences]
"""Those that can be kept within a reach."""
FENCED = [cli for cli in KEPT if cli.kind not in ("codex-acp", "gemini")]
"""Codex runs in its sandbox what it need not ask about; Gemini CLI goes on a minute later."""
QUESTION = "Shall it be formal?"


@each(*ACP_CLIS)
def test_a_limit_is_met_and_another_agent_goes_on(place: Place, cli: OverAcp) -> None:
    place.configure(next_agent=True)
    place.api.script(Refusal(429, cli.limited(), {"retry-after": "7200"}))
    daemon = place.start()
    permissions = EDITS if cli.asks else {}
    place.drop("greet", permissions=permissions, retry={"max_attempts": 2, "backoff": "1s"}, stall_timeout="20s")
    task = ended(daemon, "greet", END_S)
    assert (task.state, task.agent) == ("COMPLETED", NEXT), why(daemon, "greet")
    (held,) = place.agent(daemon).holds
    assert held.reason in ("rate_limited", "overloaded")


@each(*(cli for cli in ACP_CLIS if cli.kind != "codex-acp"))
def test_a_run_that_takes_too_long_ends_with_all_that_it_started(place: Place, cli: OverAcp) -> None:
    place.api.script(place.sleeps(), Text("Done."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, timeout="25s", retry={"max_attempts": 1})
    task = ended(daemon, "greet", END_S)
    assert (task.state, task.reason) == ("FAILED", "timeout"), why(daemon, "greet")
    wait_until(lambda: not place.running(SLEEP), "its tool to end")
    wait_until(lambda: not place.running(str(cli.program)), "its program to end")


@each(*(cli for cli in KEPT if cli not in FENCED))
def test_what_goes_too_far_is_stopped(place: Place, cli: OverAcp) -> None:
    acted = place.site.work / "acted"
    place.api.script(cli.asking_shell(f"touch {acted}; git push --force origin main"), Text("I may not."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, reach="network")
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert task.asks is not None, why(daemon, "greet")
    assert "git push --force origin main" in task.asks.tools[0].input
    assert not acted.exists()


@each(*FENCED)
def test_what_goes_too_far_is_asked_and_then_let_through_alone(place: Place, cli: OverAcp) -> None:
    acted = place.site.work / "acted"
    act = cli.shell(f"touch {acted}; git push --force origin main")
    place.api.script(act, Text("I may not."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, reach="network")
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert task.reason == "approval", why(daemon, "greet")
    assert task.asks is not None
    assert "git push --force origin main" in task.asks.tools[0].input
    assert not acted.exists()
    first = last_run(daemon, "greet")
    place.api.script(act, cli.shell(f"touch {acted}2; git push origin :gone"), Text("One of two."))
    daemon.client.approve("greet")
    wait_until(lambda: last_run(daemon, "greet").id != first.id, "the next run", END_S)
    in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert acted.exists()
    assert not place.site.work.joinpath("acted2").exists()
    assert "Write a greeting." in str(place.api.requests[-1].body), "it is the same conversation"


@each(COPILOT)
def test_tools_over_http_ask_the_operator(place: Place, cli: OverAcp) -> None:
    place.api.script(
        ToolCall("claudomator-report_progress", {"text": "Looking around.", "percent": 10}),
        ToolCall("claudomator-ask_operator", {"question": QUESTION, "choices": ["yes", "no"]}),
        Text("I have asked."),
    )
    daemon = place.start()
    place.drop("greet")
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    progress = last_run(daemon, "greet").progress
    assert (progress.text if progress is not None else None) == "Looking around.", why(daemon, "greet")
    assert task.reason_text == f"{QUESTION}\n- yes\n- no"
    place.api.script(Text("Dear all."))
    daemon.client.answer("greet", AnswerRequest(text="Yes, very."))
    assert ended(daemon, "greet", END_S).result_text == "Dear all."
