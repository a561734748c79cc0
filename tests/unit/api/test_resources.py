"""What the resources answer when all is well."""

import pytest

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.lifecycle import Completed, Failed, InputKind, NeedsInput, Running
from claudomator_py.domain.notice import DeliveryState
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from tests.fakes.daemon import Daemon
from tests.fakes.prepared import PreparedService

SUCCESS = Outcome(status=OutcomeStatus.SUCCEEDED)


def test_a_submitted_task_is_created_at_a_location(daemon: Daemon) -> None:
    body = {"name": "fix-login", "instructions": "Fix it.", "priority": "high", "timeout": "45m", "x-ticket": 4711}
    created = daemon.ask("POST", "/v1/tasks", json_body=body)
    assert (created.status, created.json()["state"], created.json()["priority"]) == (201, "QUEUED", "high")
    answer = daemon.ask("GET", created.headers["location"])
    waits = {"reason", "reason_short", "reason_text", "blocked"}
    assert {name: value for name, value in answer.json().items() if name not in waits} == {
        name: value for name, value in created.json().items() if name not in waits
    }, "why it waits is found out by whoever asks for that"
    assert answer.headers["etag"] == created.headers["etag"]
    assert answer.headers["etag"] == f'"{answer.json()["version"]}"'
    assert answer.json()["spec"]["x-ticket"] == 4711
    assert answer.json()["spec"]["timeout"] == "45m"


def test_the_fields_of_a_task_come_in_the_order_of_the_contract(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add("it")
    names = (
        "id, name, version, state, phase, reason, reason_text, waiting_until, priority, tags, working_dir, branch, "
        "specialist, agent, tier, model, attempts, runs, result_text, tokens, cost_usd, created_at, updated_at, "
        "available_actions"
    )
    assert list(daemon.ask("GET", "/v1/tasks/it").json())[:24] == names.split(", ")


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("answer", {"text": "blue\0"}),
        ("answer", {"text": "\ud800"}),
        ("answer", {"text": "  "}),
        ("answer", {}),
        ("approve", {"tools": ["Bash(a\nb)"]}),
        ("approve", {"tools": ["\ud800"]}),
        ("reject", {"reason": "\ud800"}),
        ("reject", {"why": "x"}),
        ("restart", {"reason": "\ud800"}),
    ],
)
def test_what_no_agent_could_be_told_is_refused(
    daemon: Daemon, prepared: PreparedService, what: str, body: dict[str, object]
) -> None:
    prepared.add_run(prepared.add("it", NeedsInput(InputKind.APPROVAL)))
    answer = daemon.ask("POST", f"/v1/tasks/it/{what}", json_body=body)
    assert answer.status == 422, answer.body
    assert prepared.heard() == []


def test_a_person_says_what_a_task_needs_to_hear(daemon: Daemon, prepared: PreparedService) -> None:
    for name, kind in (("asks", InputKind.QUESTION), ("wants", InputKind.APPROVAL), ("no", InputKind.APPROVAL)):
        prepared.add_run(prepared.add(name, NeedsInput(kind)))
    answered = daemon.ask("POST", "/v1/tasks/asks/answer", json_body={"text": "Blue."})
    approved = daemon.ask("POST", "/v1/tasks/wants/approve")
    rejected = daemon.ask("POST", "/v1/tasks/no/reject", json_body={"reason": "No."})
    assert [entry.status for entry in (answered, approved, rejected)] == [202, 202, 202]
    assert [entry.json()["state"] for entry in (answered, approved, rejected)] == ["QUEUED", "QUEUED", "FAILED"]
    assert prepared.heard() == [
        ("asks", "answered", {"answer": "Blue."}),
        ("wants", "approved", {"tools": ["Bash(npm publish)"]}),
        ("no", "rejected", {"reason": "No."}),
    ]
    assert daemon.ask("POST", "/v1/tasks/asks/answer", json_body={"text": "Blue."}).status == 409


def test_the_actions_are_told_by_the_daemon(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add("running", Running())
    prepared.add("done", Completed())
    assert daemon.ask("GET", "/v1/tasks/running").json()["available_actions"] == ["cancel", "restart_force"]
    assert daemon.ask("GET", "/v1/tasks/done").json()["available_actions"] == ["restart"]


def test_a_name_means_the_newest_task_of_that_name(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add("nightly")
    newest = prepared.add("nightly")
    assert daemon.ask("GET", "/v1/tasks/nightly").json()["id"] == newest


def test_pages_hold_every_task_once_newest_first(daemon: Daemon, prepared: PreparedService) -> None:
    ids = [prepared.add(f"task-{number}") for number in range(7)]
    seen: list[str] = []
    sizes = []
    cursor = ""
    while True:
        page = daemon.ask("GET", f"/v1/tasks?limit=3{cursor}").json()
        seen += [task["id"] for task in page["items"]]
        sizes.append(len(page["items"]))
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == ids[::-1]
    assert sizes == [3, 3, 1]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=FAILED", ["broken"]),
        ("tag=shop", ["tagged", "broken"]),
        ("name=tagged", ["tagged"]),
        ("agent=codex", ["tagged"]),
        ("source=file", ["broken"]),
        ("tag=shop&state=QUEUED", ["tagged"]),
        ("tag=nothing", []),
    ],
)
def test_filters_apply_together(daemon: Daemon, prepared: PreparedService, query: str, names: list[str]) -> None:
    prepared.add("broken", Failed(Reason.TIMEOUT), tags=("shop",), source="file")
    prepared.add_run(prepared.add("tagged", tags=("shop", "x")), "codex", outcome=SUCCESS)
    prepared.add("other")
    assert [task["name"] for task in daemon.ask("GET", f"/v1/tasks?{query}").json()["items"]] == names


def test_cancel_and_restart_are_accepted(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add_agent("codex")
    task_id = prepared.add("it", Running())
    prepared.add_run(task_id)
    cancelled = daemon.ask("POST", "/v1/tasks/it/cancel")
    assert (cancelled.status, cancelled.json()["state"]) == (202, "RUNNING")
    prepared.settle()
    assert prepared.task(task_id).state == "CANCELLED"
    restarted = daemon.ask("POST", "/v1/tasks/it/restart", json_body={"agent": "codex", "reason": "again"})
    assert (restarted.status, restarted.json()["generation"], restarted.json()["agent_hint"]) == (202, 2, "codex")
    assert restarted.headers["location"] == f"/v1/tasks/{task_id}"


def test_a_restart_needs_no_body(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add("it", Completed())
    assert daemon.ask("POST", "/v1/tasks/it/restart").status == 202


def test_a_log_is_read_by_offset_until_it_has_ended(daemon: Daemon, prepared: PreparedService) -> None:
    run_id = prepared.add_run(prepared.add("it", Running()), stdout=b"0123456789\xff\x00")
    first = daemon.ask("GET", f"/v1/runs/{run_id}/log?limit=4")
    assert (first.body, first.headers["claudomator-next-offset"], first.headers["claudomator-ended"]) == (
        b"0123",
        "4",
        "false",
    )
    assert first.headers["content-type"] == "application/octet-stream"
    prepared.end_run(run_id, SUCCESS)
    rest = daemon.ask("GET", f"/v1/runs/{run_id}/log?offset=4")
    assert (rest.body, rest.headers["claudomator-ended"]) == (b"456789\xff\x00", "false")
    end = daemon.ask("GET", f"/v1/runs/{run_id}/log?offset={rest.headers['claudomator-next-offset']}")
    assert (end.body, end.headers["claudomator-ended"]) == (b"", "true")
    assert daemon.ask("GET", f"/v1/runs/{run_id}/log?stream=stderr").body == b""


def test_runs_and_the_explanation(daemon: Daemon, prepared: PreparedService) -> None:
    for agent in ("claude", "codex"):
        prepared.add_agent(agent)
    prepared.limit("claude")
    prepared.add("it")
    prepared.world.tick()
    run_id = prepared.world.live("it").id
    runs = daemon.ask("GET", "/v1/tasks/it/runs").json()
    assert [run["id"] for run in runs["items"]] == [run_id]
    assert daemon.ask("GET", f"/v1/runs/{run_id}").json() == runs["items"][0]
    why = daemon.ask("GET", "/v1/tasks/it/why").json()
    assert why["sentences"]
    assert why["decisions"][0]["agents"][0]["limited"]


def test_what_needs_a_person_comes_first(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add("done", Completed())
    prepared.add("asks", NeedsInput(InputKind.QUESTION))
    prepared.add("broken", Failed(Reason.TIMEOUT))
    prepared.refuse_file("tasks/x.yaml", Problem(message="is no task"))
    status = daemon.ask("GET", "/v1/status").json()
    assert list(status)[:3] == ["needs_you", "problems", "inbox"]
    assert [task["name"] for task in status["needs_you"]] == ["asks"]
    assert status["problems"][0]["reason"] == "timeout"
    assert status["counts"]["FAILED"] == 1
    assert daemon.ask("GET", "/v1/inbox").json()["items"][0]["path"] == "tasks/x.yaml"


def test_a_hold_is_released(daemon: Daemon, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude")
    assert daemon.ask("GET", "/v1/agents").json()["items"][0]["limited"] is True
    assert daemon.ask("POST", "/v1/agents/claude/release").json()["limited"] is False


def test_health_is_open_and_tells_details_only_with_the_token(daemon: Daemon, prepared: PreparedService) -> None:
    anonymous = {"Authorization": None}
    assert daemon.ask("GET", "/livez", headers=anonymous).json() == {"alive": True}
    assert daemon.ask("GET", "/readyz", headers=anonymous).json() == {"ready": True, "checks": []}
    prepared.ready = False
    refused = daemon.ask("GET", "/readyz", headers=anonymous)
    assert (refused.status, refused.json()) == (503, {"ready": False, "checks": []})
    checks = daemon.ask("GET", "/readyz").json()["checks"]
    assert [check["remedy"] for check in checks if not check["ok"]] == ["Stop the other process."]
    assert daemon.ask("GET", "/livez").status == 200


def test_notifications_come_in_pages_of_one_list(daemon: Daemon, prepared: PreparedService) -> None:
    for _ in range(5):
        prepared.add_delivery("phone", DeliveryState.DEAD)
    first = daemon.ask("GET", "/v1/notifications?limit=3").json()
    rest = daemon.ask("GET", f"/v1/notifications?limit=3&cursor={first['next_cursor']}").json()
    assert [item["id"] for item in first["items"] + rest["items"]] == [5, 4, 3, 2, 1]
    assert rest["next_cursor"] is None
    for bad in ("cursor=3", f"cursor={first['next_cursor']}&state=dead"):
        refused = daemon.ask("GET", f"/v1/notifications?{bad}")
        assert (refused.status, refused.json()["code"]) == (400, "bad_cursor")
