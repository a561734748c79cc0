"""Writing a task on the page: checked as a file would be, and sent as one."""

import re

import pytest

from claudomator_py.domain.lifecycle import Completed, Running
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, hidden, text_of

HOSTILE = "</textarea><script>alert(1)</script>"


def test_a_task_is_written_and_sent(operator: Visitor, prepared: PreparedService) -> None:
    assert 'action="/new"' in operator.get("/new").body.decode()
    fields = {
        "instructions": "Fix the login page.\r\nRun the tests.",
        "working_dir": "/srv",
        "isolation": "worktree",
        "tier": "powerful",
        "tags": "shop, login",
        "priority": "high",
        "mode": "acceptEdits",
        "more": "retry: {max_attempts: 2}\r\nagent: {type: claude, model: opus}\r\n"
        "permissions: {allowed_tools: [Bash]}",
    }
    sent = operator.post("/new", fields)
    assert sent.status == 303, text_of(sent)
    (task,) = map(prepared.task, prepared.task_ids())
    assert (sent.status, sent.headers["location"]) == (303, f"/tasks/{task.id}")
    assert task.name == "fix-the-login-page.-run-the"
    content = operator.daemon.ask("GET", f"/v1/tasks/{task.id}").json()["spec"]
    assert content["instructions"] == "Fix the login page.\nRun the tests."
    assert (content["tags"], content["priority"], content["isolation"]) == (["shop", "login"], "high", "worktree")
    assert content["retry"]["max_attempts"] == 2
    assert (content["agent"]["tier"], content["agent"]["model"]) == ("powerful", "opus")
    assert (content["permissions"]["mode"], content["permissions"]["allowed_tools"]) == ("acceptEdits", ["Bash"])
    again = operator.get(f"/new?again={task.id}").body.decode()
    assert '<option value="acceptEdits" selected>' in again
    assert re.search(r"permissions:\s+allowed_tools:\s+- Bash", again)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"instructions": "x", "more": "chekc: [make]"}, "chekc: is not a known key; did you mean check?"),
        ({"instructions": "x", "more": "check: make && make test"}, "needs a shell"),
        ({"instructions": "x", "more": "- a\n- b"}, "is not a single mapping"),
        ({"instructions": "x", "more": "a: [b"}, "1: "),
        ({"instructions": "x", "name": "no name"}, "name"),
        ({"instructions": "x", "more": "schedule: '0 3 * * *'"}, "schedule"),
        ({"name": "it"}, "instructions"),
        ({"instructions": "x", "working_dir": "relative"}, "working_dir"),
    ],
)
def test_what_is_wrong_is_said_while_one_types_and_when_it_is_sent(
    operator: Visitor, prepared: PreparedService, fields: dict[str, str], text: str
) -> None:
    checked = operator.post("/new/check", fields)
    assert (checked.status, text in text_of(checked)) == (200, True)
    refused = operator.post("/new", fields)
    assert refused.status == 422
    assert text in text_of(refused)
    assert prepared.task_ids() == []


def test_what_is_right_is_said_too(operator: Visitor) -> None:
    assert text_of(operator.post("/new/check", {"instructions": "Tidy up."})) == "ok (tidy-up)"
    assert text_of(operator.post("/new/check", {})) == ""


def test_what_was_typed_is_kept_and_never_run(operator: Visitor) -> None:
    refused = operator.post("/new", {"instructions": HOSTILE, "more": HOSTILE, "name": f'"{HOSTILE}'})
    assert refused.status == 422
    assert "<script>alert" not in refused.body.decode()
    assert refused.body.decode().count("&lt;/textarea&gt;") >= 3


def test_again_follow_up_and_edit_begin_with_what_there_is(operator: Visitor, prepared: PreparedService) -> None:
    spec = {"retry": {"max_attempts": 5}, "agent": {"type": "claude", "model": "opus"}, "tags": ["shop"]}
    task = prepared.add("it", Completed(), **spec)
    links = re.findall(r'href="([^"]+)">(Edit|Again|Follow up)…', operator.get(f"/tasks/{task}").body.decode())
    assert [words for _, words in links] == ["Edit", "Again", "Follow up"]
    edited, again, after = (operator.get(url).body.decode() for url, _ in links)
    for page in (edited, again):
        assert "max_attempts: 5" in page
        assert "model: opus" in page
        assert 'name="tags" value="shop"' in page
    assert 'name="continues" value="it"' in after
    version = hidden(operator.get(f"/tasks/{task}/edit"), "version")
    fields = {"name": "it", "instructions": "Do it otherwise.", "version": version}
    assert operator.post(f"/tasks/{task}/edit", fields).headers["location"] == f"/tasks/{task}"
    result = prepared.task(task)
    assert (result.state, result.generation, result.revision) == ("QUEUED", 2, 2)
    stale = operator.post(f"/tasks/{task}/edit", fields)
    assert (stale.status, "Changed in the meantime" in text_of(stale)) == (412, True)


def test_an_edit_of_one_that_runs_follows_its_run_and_keeps_its_name(
    operator: Visitor, prepared: PreparedService
) -> None:
    task = prepared.add("it", Running())
    prepared.add_run(task)
    page = operator.get(f"/tasks/{task}/edit")
    assert "then the task runs with the new content" in text_of(page)
    fields = {"instructions": "Do it otherwise.", "version": hidden(page, "version")}
    assert operator.post(f"/tasks/{task}/edit", {**fields, "name": "other"}).status == 422
    assert operator.post(f"/tasks/{task}/edit", {**fields, "name": "it"}).status == 303
    assert (prepared.task(task).state, prepared.task(task).revision) == ("RUNNING", 1)
