"""The client of agents that speak ACP, with a scripted agent: real processes that do what agents do, and worse."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.agents.acp.kind import KIND
from claudomator_py.domain.agent import AgentSpec, ModelChoice
from claudomator_py.domain.outcome import OutcomeStatus, Provenance, Reason
from claudomator_py.domain.run import ExitRecord
from tests.fakes.acp import ASKED, SESSION
from tests.unit.agents.acp_runs import NOW_MS, Runs, task

TOUCH = {"toolCallId": "c1", "title": "Make a file", "kind": "execute", "rawInput": {"command": "touch made"}}
OK: list[dict[str, Any]] = [{"say": "Done."}, {"end": {}}]
STEPS = ("initialize", "session/new", "session/prompt")


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def tool(status: str, call: str = "c1", **more: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status, **more}}


def test_it_offers_nothing_but_version_1(runs: Runs) -> None:
    ran = runs.run({})
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED
    asked = ran.asked("initialize")[0]
    assert asked["protocolVersion"] == 1
    assert asked["clientCapabilities"]["fs"] == {"readTextFile": False, "writeTextFile": False}
    assert asked["clientCapabilities"]["terminal"] is False
    assert ran.asked("session/new") == [{"cwd": str(runs.place), "mcpServers": []}]
    assert ran.asked("session/prompt")[0]["prompt"] == [{"type": "text", "text": "Do it."}]
    assert (ran.outcome.text, ran.outcome.conversation_id) == ("Done.", SESSION)


@pytest.mark.parametrize("number", ["a-1", 7, 0, -3, 1.5, None, "", "1"])
def test_requests_of_its_own_are_refused_whatever_their_ids_are(runs: Runs, number: object) -> None:
    requests = [{"request": name, "id": number} for name in ("fs/read_text_file", "terminal/create", "own/thing")]
    ran = runs.run({"turn": [*requests, *OK]})
    assert [answer["id"] for answer in ran.answers] == [number] * 3
    assert {answer["error"]["code"] for answer in ran.answers} == {-32601}
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED


def test_requests_before_there_is_a_session_are_refused_too(runs: Runs) -> None:
    before = {"initialize": [{"request": "own/early"}], "session/new": [{"request": "own/late", "id": 1}]}
    ran = runs.run({"before": before})
    assert [answer["error"]["code"] for answer in ran.answers] == [-32601, -32601]
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED


def test_ids_that_come_back_as_texts(runs: Runs) -> None:
    assert runs.run({"ids_as_text": True}).outcome.status is OutcomeStatus.SUCCEEDED


@pytest.mark.parametrize("version", [2, 0, 99, None, "1", True])
def test_another_version_is_refused(runs: Runs, version: object) -> None:
    ran = runs.run({"initialized": {"protocolVersion": version}})
    assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.FAILED, Reason.SETUP_FAILED)
    assert ran.asked("session/new") == []


def test_lines_that_are_no_messages(runs: Runs) -> None:
    deep = "[" * 5_000 + "]" * 5_000
    noise = ["Welcome!", "", "12", '"text"', "[]", "{", "null", deep, '{"id":1,"result":']
    ran = runs.run({"noise": noise, "turn": [{"raw": "\x00 progress 50%"}, *OK]})
    assert (ran.outcome.status, ran.outcome.text) == (OutcomeStatus.SUCCEEDED, "Done.")


def test_several_messages_in_one_line(runs: Runs) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "First. "}}
    payload = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION, "update": update}}
    assert runs.run({"turn": [{"raw": json.dumps([payload, payload])}, *OK]}).outcome.text == "First. First. Done."


def test_a_megabyte_in_a_line(runs: Runs) -> None:
    ran = runs.run({"turn": [{"big": 3_000_000}, {"say": " The end."}, {"end": {}}]})
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED
    assert (ran.outcome.text or "").endswith(" The end.")


def test_a_prompt_that_is_longer_than_a_pipe(runs: Runs) -> None:
    ran = runs.run({}, task=task(instructions="word " * 150_000))
    assert len(ran.asked("session/prompt")[0]["prompt"][0]["text"]) > 700_000
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED


@pytest.mark.parametrize("step", STEPS)
def test_death_at_a_step(runs: Runs, step: str) -> None:
    ran = runs.run({"faults": {step: "die"}})
    assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.FAILED, Reason.AGENT_ERROR)
    assert step in (ran.outcome.detail or "")


def test_death_by_a_signal_in_the_turn(runs: Runs) -> None:
    ran = runs.run({"turn": [{"say": "I begin."}, {"kill": True}]})
    assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.FAILED, Reason.INTERRUPTED)
    assert ran.outcome.conversation_id == SESSION


def test_an_answer_before_it_dies_is_one(runs: Runs) -> None:
    assert runs.run({"turn": [*OK, {"die": 1}]}).outcome.status is OutcomeStatus.SUCCEEDED


def test_a_program_that_says_that_it_does_nothing_and_exits_with_0(runs: Runs) -> None:
    program = runs.place / "stub"
    program.write_text("#!/bin/sh\necho 'This is no longer maintained.'\n")
    program.chmod(0o755)
    launch, asked = runs.launch({})
    order = launch.argv[-1].replace(str(runs.place / "scripted"), str(program))
    ended = subprocess.run([*launch.argv[:-1], order], input=b"x", capture_output=True, check=False, timeout=60)
    ran = runs.read(asked, ended.stdout, ended.stderr, ended.returncode)
    assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.FAILED, Reason.AGENT_ERROR)
    assert "no longer maintained" in (ran.outcome.detail or "")


def test_a_program_that_is_not_there(runs: Runs) -> None:
    launch, asked = runs.launch({})
    (runs.place / "scripted").unlink()
    ended = subprocess.run(launch.argv, input=b"x", capture_output=True, check=False, timeout=60)
    ran = runs.read(asked, ended.stdout, ended.stderr, ended.returncode)
    assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.FAILED, Reason.SETUP_FAILED)


def test_no_session_is_no_login(runs: Runs) -> None:
    refused = {"error": {"code": -32000, "message": "Authentication required"}}
    answers: list[dict[str, Any]] = [refused, {"result": {}}]
    for answer in answers:
        ran = runs.run({"answers": {"session/new": answer}})
        assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.FAILED, Reason.AUTH)


# --- silence ---


def silent(runs: Runs, turn: list[dict[str, Any]], **script: Any) -> Any:
    return runs.run({"turn": turn, **script}, task=task(stall_timeout="2s"))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"result": {"stopReason": "end_turn", "usage": {"inputTokens": 9, "outputTokens": 9}}},
        {"result": {"stopReason": "cancelled"}},
        {"error": {"code": 429, "message": "try again in 5 hours"}},
    ],
)
def test_what_is_answered_after_silence_is_never_a_success(runs: Runs, answer: object) -> None:
    ran = silent(runs, [{"say": "I begin."}, {"until_cancelled": True}], on_cancel=answer)
    assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.FAILED, Reason.OVERLOADED)
    assert ran.asked("session/cancel") == [{"sessionId": SESSION}]


def test_silence_after_a_word_about_a_limit_is_one_without_a_time(runs: Runs) -> None:
    retrying = {"tell": "_session/retrying", "params": {"category": "rate_limit", "detail": "HTTP 429"}}
    ran = silent(runs, [retrying, {"until_cancelled": True}])
    assert (ran.outcome.status, ran.outcome.provenance) == (OutcomeStatus.LIMITED, Provenance.ESTIMATED)
    assert ran.outcome.reset_at is None


def told(**update: object) -> dict[str, Any]:
    """What an agent tells of its session outside the protocol."""
    return {"tell": "_x/session_notification", "params": {"sessionId": SESSION, "update": update}}


def test_a_retry_may_be_told_as_an_update_of_the_session(runs: Runs) -> None:
    retrying = told(sessionUpdate="retry_state", attempt=1, reason="API error (status 429 Too Many Requests)")
    ran = silent(runs, [told(sessionUpdate="title", title="A retry"), retrying, {"until_cancelled": True}])
    assert (ran.outcome.status, ran.outcome.provenance) == (OutcomeStatus.LIMITED, Provenance.ESTIMATED)


def test_what_came_of_a_request_that_is_sent_again_is_no_part_of_the_answer(runs: Runs) -> None:
    retrying = told(sessionUpdate="retry_state", reason="Transport error")
    assert runs.run({"turn": [{"say": "I beg"}, retrying, {"say": "I begin."}, {"end": {}}]}).outcome.text == "I begin."


def test_a_run_that_is_stopped_while_it_asks_again_ends_as_what_it_waits_for(runs: Runs) -> None:
    retrying = told(sessionUpdate="retry_state", reason="error sending request: connection refused")
    launch, asked = runs.launch({"turn": [retrying, {"until_cancelled": True}]})
    with subprocess.Popen(launch.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        next(line for line in iter(process.stdout.readline, b"") if b'"retry"' in line)
        process.terminate()
        printed = process.stdout.read()
    reader = KIND.reader(asked)
    reader.feed("stdout", printed)
    outcome = reader.outcome(ExitRecord(1, "timeout", NOW_MS - 1_000, NOW_MS), NOW_MS)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.FAILED, Reason.NETWORK)


@pytest.mark.parametrize(("ended", "dropped"), [("c1", 0), ("c2", 1)])
def test_a_command_that_is_still_in_the_background_at_the_end_is_dropped(runs: Runs, ended: str, dropped: int) -> None:
    begun = told(sessionUpdate="task_backgrounded", task_id="c1", command="make")
    over = told(sessionUpdate="task_completed", task_snapshot={"task_id": ended, "exit_code": 0})
    outcome = runs.run({"turn": [begun, over, *OK]}).outcome
    assert (outcome.status, outcome.dropped) == (OutcomeStatus.SUCCEEDED, dropped)


def test_words_that_it_asks_again_do_not_break_the_silence(runs: Runs) -> None:
    again: list[dict[str, Any]] = [{"tell": "x/retry", "params": {"message": "again"}}, {"wait": 0.5}]
    states: list[dict[str, Any]] = [{"update": {"sessionUpdate": "usage_update", "used": 1, "size": 2}}, {"wait": 0.5}]
    ran = silent(runs, [*again, *states, *again, *states, *again, *OK])
    assert ran.outcome.reason is Reason.OVERLOADED


def test_a_tool_at_work_is_no_silence(runs: Runs) -> None:
    ran = silent(runs, [tool("in_progress"), {"wait": 3}, tool("completed"), *OK])
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED


# --- permissions ---


def asked_for(runs: Runs, call: dict[str, Any], options: list[dict[str, str]] = ASKED, **permissions: Any) -> Any:
    made = runs.place / "made"
    turn = [{"ask": call, "options": options, "does": str(made)}, {"say": "After."}, {"end": {}}]
    return runs.run({"turn": turn}, task=task(permissions=permissions))


def chosen(ran: Any) -> str | None:
    result: str | None = ran.answers[0]["result"]["outcome"].get("optionId")
    return result


@pytest.mark.parametrize(
    ("permissions", "call", "option"),
    [
        ({}, TOUCH, "no"),
        ({"mode": "acceptEdits"}, TOUCH, "no"),
        ({"mode": "acceptEdits"}, {"toolCallId": "e", "kind": "edit", "title": "a.py"}, "yes"),
        ({"mode": "bypassPermissions"}, TOUCH, "yes"),
        ({"mode": "bypassPermissions", "disallowed_tools": ["execute"]}, TOUCH, "no"),
        ({"allowed_tools": ["execute"]}, TOUCH, "yes"),
        ({"allowed_tools": ["execute(touch made)"]}, TOUCH, "yes"),
        ({"allowed_tools": ["execute(touch:*)"]}, TOUCH, "yes"),
        ({"allowed_tools": ["execute(touch)"]}, TOUCH, "no"),
        ({"allowed_tools": ["execute(tou:*)"]}, TOUCH, "no"),
        ({"allowed_tools": ["edit"]}, TOUCH, "no"),
        (
            {"allowed_tools": ["execute(touch:*)"]},
            {**TOUCH, "rawInput": {"command": "touch made && rm -rf x"}},
            "no",
        ),
        ({"allowed_tools": ["execute(touch:*)"]}, {**TOUCH, "rawInput": {"commands": ["touch made", "rm x"]}}, "no"),
        ({"allowed_tools": ["Bash"]}, {**TOUCH, "_meta": {"claudeCode": {"toolName": "Bash"}}}, "yes"),
        ({}, {"toolCallId": "m", "kind": "other", "title": "ask_operator (claudomator MCP Server)"}, "yes"),
        ({}, {**TOUCH, "title": "claudomator"}, "no"),
    ],
)
def test_permissions_are_decided_by_the_task(
    runs: Runs, permissions: dict[str, Any], call: dict[str, Any], option: str
) -> None:
    ran = asked_for(runs, call, **permissions)
    assert chosen(ran) == option
    assert (runs.place / "made").exists() is (option == "yes")
    assert ran.outcome.denials == (1 if option == "no" else 0)


def test_a_denied_call_is_told_with_what_allows_it(runs: Runs) -> None:
    ran = asked_for(runs, TOUCH)
    assert [(call.tool, call.input, call.rule) for call in ran.outcome.denied] == [
        ("execute", "touch made", "execute(touch made)")
    ]


def test_what_could_only_be_allowed_for_good_is_not(runs: Runs) -> None:
    ran = asked_for(runs, TOUCH, ASKED[:1], mode="bypassPermissions")
    assert ran.answers[0]["result"]["outcome"] == {"outcome": "cancelled"}
    assert ran.outcome.denials == 1


def test_a_call_of_which_only_the_id_is_told_is_known_by_what_was_told_before(runs: Runs) -> None:
    payload = {"update": {"sessionUpdate": "tool_call", **TOUCH}}
    turn = [payload, {"ask": {"toolCallId": "c1"}, "does": str(runs.place / "made")}, {"say": "After."}, {"end": {}}]
    ran = runs.run({"turn": turn}, task=task(permissions={"allowed_tools": ["execute(touch made)"]}))
    assert chosen(ran) == "yes"


def test_a_turn_that_ends_at_a_denial_is_no_success(runs: Runs) -> None:
    ran = runs.run(
        {"turn": [{"ask": TOUCH}, tool("failed"), {"end": {"usage": {"inputTokens": 9, "outputTokens": 1}}}]}
    )
    assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.FAILED, Reason.PERMISSION_DENIED)
    assert ran.outcome.denied


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_a_question_of_its_own_reaches_the_operator(runs: Runs, mode: str) -> None:
    questions = [{"question": "Which one?", "options": [{"label": "A"}, {"label": "B"}]}]
    call = {"toolCallId": "q", "kind": "other", "title": "ask", "rawInput": {"questions": questions}}
    ran = runs.run({"turn": [{"ask": call}, {"end": {}}]}, task=task(permissions={"mode": mode}))
    assert chosen(ran) == "no", "whoever allows all tools has not answered it"
    assert ran.outcome.question == "Which one?\n- A\n- B"
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED


# --- modes and models ---


def modes(current: str, *offered: str, about: str = "") -> dict[str, Any]:
    described = {"description": about} if about else {}
    listed = [{"id": entry, "name": entry, **described} for entry in offered]
    return {"modes": {"currentModeId": current, "availableModes": listed}}


@pytest.mark.parametrize(
    ("session", "set_to"),
    [
        (modes("auto", "plan", "default", "auto", "yolo"), "default"),
        (modes("accept-edits", "ask", "accept-edits"), "ask"),
        (modes("default", "default", "yolo"), None),
        (modes("build", "build", "plan"), None),
        (modes("code", "code", "ask", about="Get answers, without changes to the code."), None),
        (modes("agent", "agent", "plan", "read-only", about="Look, and change nothing."), None),
        (modes("code", "ask", "code", about="Request permission before making any changes"), "ask"),
        (modes("auto", "read-only", "auto", about="Requires approval to edit files."), "read-only"),
        ({}, None),
    ],
)
def test_a_mode_in_which_it_allows_itself_things_is_switched_off(
    runs: Runs, session: dict[str, Any], set_to: str | None
) -> None:
    ran = runs.run({"session": session})
    assert [asked["modeId"] for asked in ran.asked("session/set_mode")] == ([set_to] if set_to else [])
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED


@pytest.mark.parametrize(
    "script",
    [
        {"session": modes("auto", "auto", "yolo")},
        {
            "session": modes("auto", "default", "auto"),
            "answers": {"session/set_mode": {"error": {"code": -32603, "message": "no"}}},
        },
    ],
)
def test_one_that_cannot_be_kept_from_it_is_asked_nothing(runs: Runs, script: dict[str, Any]) -> None:
    ran = runs.run(script)
    assert (ran.outcome.status, ran.outcome.reason) == (OutcomeStatus.FAILED, Reason.SETUP_FAILED)
    assert ran.asked("session/prompt") == []


def test_a_mode_may_be_an_option(runs: Runs) -> None:
    values = [{"group": "g", "options": [{"value": "default"}, {"value": "auto"}]}]
    option = {"id": "mode", "category": "mode", "currentValue": "auto", "options": values}
    ran = runs.run({"session": {"configOptions": [option]}})
    assert ran.asked("session/set_config_option")[0]["value"] == "default"


def test_a_model_is_chosen_of_what_is_offered(runs: Runs) -> None:
    ran = runs.run({}, model=ModelChoice(model="a-model"))
    assert ran.asked("session/set_config_option")[0]["value"] == "a-model"
    other = runs.run({}, model=ModelChoice(model="another"))
    assert (other.outcome.status, other.outcome.reason) == (OutcomeStatus.FAILED, Reason.INVALID_MODEL)
    assert "usual, a-model" in (other.outcome.detail or "")


# --- sessions ---


def test_a_session_is_resumed_and_its_replay_is_no_answer(runs: Runs) -> None:
    old: list[dict[str, Any]] = [{"say": "An old answer."}, tool("completed", "old")]
    script = {"before": {"session/resume": old}, "after": {"session/resume": [{"wait": 0.1}, *old]}}
    ran = runs.run({**script, "turn": [{"say": "New."}, {"end": {}}]}, conversation="s-9", resume=True)
    assert ran.asked("session/resume")[0]["sessionId"] == "s-9"
    assert (ran.outcome.text, ran.outcome.conversation_id) == ("New.", "s-9")
    assert ran.asked("session/new") == []


def test_replay_alone_is_no_success(runs: Runs) -> None:
    after = {"session/resume": [{"say": "An old answer."}]}
    ran = runs.run({"after": after, "turn": [{"end": {}}]}, conversation="s-9", resume=True)
    assert ran.outcome.reason is Reason.NO_ANSWER


def test_one_that_cannot_resume_loads(runs: Runs) -> None:
    script = {"initialized": {"agentCapabilities": {"loadSession": True}}}
    ran = runs.run(script, conversation="s-9", resume=True)
    assert ran.asked("session/load")[0]["sessionId"] == "s-9"
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED


@pytest.mark.parametrize("code", [-32002, -32602, -32603, -32601])
def test_a_session_that_it_does_not_know_is_lost(runs: Runs, code: int) -> None:
    unknown = {"error": {"code": code, "message": "no such session"}}
    ran = runs.run({"answers": {"session/resume": unknown, "session/load": unknown}}, conversation="s-9", resume=True)
    assert ran.outcome.conversation_lost
    assert ran.asked("session/prompt") == []


def test_the_run_has_its_own_server(runs: Runs) -> None:
    env = {"CLAUDOMATOR_RUN": "r1", "CLAUDOMATOR_RUN_TOKEN": "secret"}
    ran = runs.run({}, mcp_command=("python", "-m", "server"), env=env)
    (server,) = ran.asked("session/new")[0]["mcpServers"]
    assert (server["command"], server["args"]) == ("python", ["-m", "server"])
    assert {entry["name"]: entry["value"] for entry in server["env"]} == env
    assert "secret" not in json.dumps(ran.events)


def test_it_ends_what_does_not_end(runs: Runs) -> None:
    ran = runs.run({"ignores_eof": True, "ignores_term": True}, task=task())
    assert ran.outcome.status is OutcomeStatus.SUCCEEDED


def test_what_it_cannot_be_held_to_is_said(tmp_path: Path) -> None:
    everything = task(
        permissions={"mode": "plan", "tools": ["x"], "disallowed_tools": ["read"]}, max_turns=3, add_dirs=["/tmp"]
    )
    goose = AgentSpec(name="goose", kind="acp", command=("goose", "acp"))
    text = "\n".join(KIND.unsupported(everything, goose))
    assert all(word in text for word in ("permissions.tools", "max_turns", "add_dirs", "not read"))
    pi = AgentSpec(name="pi", kind="acp", command=("pi-acp",))
    assert any("does not ask" in name for name in KIND.unsupported(everything, pi))
    kimi = AgentSpec(name="kimi", kind="acp", command=("kimi", "acp"))
    careful = task(permissions={"disallowed_tools": ["edit", "execute"]}, max_turns=3)
    assert KIND.unsupported(careful, kimi) == ["kimi may use edit without asking, so permissions cannot deny it"]


def test_turns_are_limited_by_a_variable_if_the_agent_has_one(tmp_path: Path) -> None:
    launch, _ = Runs(tmp_path, program="kimi").launch({}, task=task(max_turns=3))
    assert launch.env["KIMI_LOOP_MAX_STEPS_PER_TURN"] == "3"
    assert "KIMI_LOOP_MAX_STEPS_PER_TURN" not in Runs(tmp_path, program="kimi").launch({})[0].env


def test_programs_have_their_own_accounts_and_one_program_has_one() -> None:
    def account(name: str, *command: str, label: str = "default") -> str:
        return AgentSpec(name=name, kind="acp", command=command, account=label).quota_account

    assert account("a", "goose", "acp") == account("b", "/opt/bin/goose", "acp") == "goose"
    assert account("a", "kimi", "acp") == "kimi"
    assert account("a", "unknown") == "a"
    assert account("b", "unknown") == "b"
    assert account("a", "goose", "acp", label="work") == "work"
