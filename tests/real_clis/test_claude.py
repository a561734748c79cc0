"""Claude Code itself, under a shim, against a fake of its service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.agent import ModelChoice
from claudomator_py.domain.outcome import OutcomeStatus, Provenance, Reason
from claudomator_py.domain.task import PermissionMode, Permissions
from tests.fakes.http_api import INPUT_TOKENS, OUTPUT_TOKENS, Text
from tests.fakes.messages_api import MessagesApi, overloaded, throttled, unauthorized, used_up
from tests.integration.hosts.rig import Rig
from tests.real_clis.bench import CONVERSATION, Bench, bench_for, task
from tests.real_clis.clis import CLAUDE

pytestmark = CLAUDE.marks

RESETS_AT_S = 1_900_000_000


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as opened:
        yield opened


@pytest.fixture
def bench(api: MessagesApi, rig: Rig, tmp_path: Path) -> Bench:
    return bench_for(CLAUDE, api, rig, tmp_path, ModelChoice(model="sonnet"))


def with_login(bench: Bench) -> None:
    """In the place of the key, a subscription."""
    del bench.env["ANTHROPIC_API_KEY"]
    bench.env.update(CLAUDE.login)


def test_it_edits_a_file_and_says_what_it_used(bench: Bench, api: MessagesApi) -> None:
    api.script(CLAUDE.writes(bench.repository / "hello.txt"), Text("I wrote it."))
    outcome = bench.run(task(permissions=Permissions(mode=PermissionMode.ACCEPT_EDITS)))

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (bench.repository / "hello.txt").read_text() == "hello\n"
    assert outcome.text == "I wrote it."
    assert outcome.conversation_id == CONVERSATION
    assert (outcome.tokens.input, outcome.tokens.output) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)
    assert outcome.cost_usd is not None
    assert outcome.cost_usd > 0
    assert "Write a greeting." in str(api.requests[0].body["messages"])
    assert "sonnet" in api.requests[0].body["model"]


def test_a_resumed_conversation_counts_its_own_share_only(bench: Bench, api: MessagesApi) -> None:
    api.script(Text("One."))
    first = bench.run(task())
    api.script(Text("Two."))
    second = bench.run(task(instructions="Go on."), resume=CONVERSATION)

    assert second.status is OutcomeStatus.SUCCEEDED, second
    assert second.conversation_id == CONVERSATION
    assert "Write a greeting." in str(api.requests[-1].body["messages"]), "it remembers the first run"
    assert second.tokens == first.tokens
    assert second.cost_usd == pytest.approx(first.cost_usd)


def test_a_denied_tool_is_said(bench: Bench, api: MessagesApi) -> None:
    api.script(CLAUDE.writes(bench.repository / "hello.txt"), Text("I could not."))
    outcome = bench.run(task())

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert outcome.detail is not None
    assert outcome.detail.startswith("1 tool call was denied: Write.")
    assert not (bench.repository / "hello.txt").exists()


def test_each_allowed_tool_is_allowed(bench: Bench, api: MessagesApi) -> None:
    permissions = Permissions(allowed_tools=("Bash(touch:*)", "Write"))
    touch = CLAUDE.shell("touch touched")
    api.script(touch, CLAUDE.writes(bench.repository / "hello.txt"), Text())
    outcome = bench.run(task(permissions=permissions))

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert outcome.detail is None
    assert (bench.repository / "touched").exists()
    assert (bench.repository / "hello.txt").exists()


def test_each_disallowed_tool_is_gone_and_further_folders_are_open(
    bench: Bench, api: MessagesApi, tmp_path: Path
) -> None:
    further = tmp_path / "further"
    further.mkdir()
    permissions = Permissions(mode=PermissionMode.ACCEPT_EDITS, disallowed_tools=("WebFetch", "WebSearch"))
    write = CLAUDE.writes(further / "note.txt", "note\n")
    api.script(write, Text())
    outcome = bench.run(task(permissions=permissions, add_dirs=(str(further),)))

    assert outcome.status is OutcomeStatus.SUCCEEDED, outcome
    assert (further / "note.txt").read_text() == "note\n"
    offered = {tool["name"] for tool in api.requests[0].body["tools"]}
    assert "Write" in offered
    assert not offered & {"WebFetch", "WebSearch"}


BACKGROUND = {"Monitor", "ScheduleWakeup", "SendMessage", "Workflow", "CronCreate"}


def offered(api: MessagesApi) -> set[str]:
    """The tools that the model was told of: those that it has at once, and those that it may look up."""
    asked = api.requests[0].body
    record = str(asked["messages"])
    return {tool["name"] for tool in asked["tools"]} | {tool for tool in BACKGROUND if rf"\n{tool}\n" in record}


def test_by_default_no_tool_leaves_anything_in_the_background(bench: Bench, api: MessagesApi) -> None:
    api.script(Text())
    assert bench.run(task()).status is OutcomeStatus.SUCCEEDED
    assert not offered(api) & BACKGROUND
    shell = next(tool for tool in api.requests[0].body["tools"] if tool["name"] == "Bash")
    assert "run_in_background" not in shell["input_schema"]["properties"]


def test_a_task_may_allow_background_work(bench: Bench, api: MessagesApi) -> None:
    api.script(Text())
    assert bench.run(task(background=True)).status is OutcomeStatus.SUCCEEDED
    assert offered(api) >= BACKGROUND


def test_turns_are_limited(bench: Bench, api: MessagesApi) -> None:
    api.script(CLAUDE.shell("true"))
    outcome = bench.run(task(max_turns=2, permissions=Permissions(allowed_tools=("Bash",))))

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.TURN_LIMIT), outcome


def test_a_subscription_limit_has_its_reset_time(bench: Bench, api: MessagesApi) -> None:
    api.script(used_up(RESETS_AT_S))
    with_login(bench)
    outcome = bench.run(task())

    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), outcome
    assert outcome.reset_at == RESETS_AT_S * 1000
    assert outcome.provenance is Provenance.REPORTED
    assert outcome.limit == "five_hour"


def test_an_api_key_limit_has_to_be_estimated(bench: Bench, api: MessagesApi) -> None:
    api.script(throttled(retry_after_s=3600))
    outcome = bench.run(task())

    assert (outcome.status, outcome.reason) == (OutcomeStatus.LIMITED, Reason.RATE_LIMITED), outcome
    assert outcome.reset_at is None
    assert outcome.provenance is Provenance.ESTIMATED


def test_a_refused_key_is_told_after_few_requests(bench: Bench, api: MessagesApi) -> None:
    api.script(unauthorized())
    outcome = bench.run(task())

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome
    assert len(api.requests) <= 5


def test_no_login_is_told(bench: Bench, api: MessagesApi) -> None:
    api.script(Text())
    del bench.env["ANTHROPIC_API_KEY"]
    outcome = bench.run(task())

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH), outcome
    assert api.requests == []


def test_an_overloaded_service_is_told(bench: Bench, api: MessagesApi) -> None:
    api.script(overloaded())
    outcome = bench.run(task())

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.OVERLOADED), outcome


def test_an_answer_that_quotes_a_limit_message_is_an_answer(bench: Bench, api: MessagesApi) -> None:
    quote = "The log says: You've hit your 5-hour limit · resets 6:36pm (America/New_York)"
    api.script(Text(quote))
    outcome = bench.run(task())

    assert (outcome.status, outcome.text) == (OutcomeStatus.SUCCEEDED, quote)


def test_a_conversation_that_is_not_there_is_our_mistake(bench: Bench, api: MessagesApi) -> None:
    api.script(Text())
    outcome = bench.run(task(), resume=CONVERSATION)

    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.BAD_INVOCATION), outcome


def test_it_has_the_tools_that_are_named_and_no_other(bench: Bench, api: MessagesApi) -> None:
    target = bench.repository / "hello.txt"
    api.script(CLAUDE.writes(target), Text("I could not write it."))
    tools = ("Read", "Grep", "Bash(git diff:*, git log:*)")
    bench.run(task(permissions=Permissions(mode=PermissionMode.ACCEPT_EDITS, tools=tools)))

    offered = {tool["name"] for tool in api.requests[0].body["tools"]}
    assert {"Bash", "Grep", "Read"} <= offered
    assert not offered & {"Agent", "Edit", "NotebookEdit", "WebFetch", "Write"}
    assert not target.exists()
