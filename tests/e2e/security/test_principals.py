"""Who asks: tokens with roles, on a real daemon. Each test tries what must not work."""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import claudomator_py.api.app  # noqa: F401 - whose operations say what role they need
from claudomator_py.api.guard import roles
from claudomator_py.client import Client, NotAuthorised, ServiceProblem, TaskSpec
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.resources.access import TokenRequest
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site, open_site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter


@dataclass(frozen=True)
class Served:
    """A daemon with principals on it."""

    site: Site
    daemon: Daemon

    @property
    def url(self) -> str:
        assert self.site.endpoint is not None
        return self.site.endpoint

    @property
    def operator(self) -> Client:
        return self.daemon.client

    def token(self, name: str, role: str, **more: Any) -> str:
        return self.operator.create_token(TokenRequest.model_validate({"name": name, "role": role, **more})).token

    def client(self, name: str, role: str, **more: Any) -> Client:
        return Client(self.url, self.token(name, role, **more), timeout_s=PATIENCE_S)

    def ask(self, token: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})}
        return httpx.request(method, f"{self.url}{path}", headers=headers, timeout=PATIENCE_S, **more)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter) -> Iterator[Served]:
    with open_site(tmp_path_factory.mktemp("principals") / "site", warm=warm) as site:
        yield Served(site, site.start().ready())


def sleeping(name: str) -> TaskSpec:
    """A task that stays where it is until it is cancelled."""
    return TaskSpec.model_validate({"name": name, "instructions": "do: true", "not_before": "2099-01-01T00:00:00Z"})


def paths(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path.replace("{delivery}", "1"), operation["operationId"]


def test_every_operation_is_kept_from_who_lacks_its_role(served: Served) -> None:
    read, operate = served.token("looks", "read"), served.token("works", "operate")
    document = served.ask(read, "GET", "/openapi.json").json()
    kept_from_read, kept_from_operate = set(), set()
    for method, path, operation in paths(document):
        needed = roles.OPERATIONS[operation].role
        assert document["paths"][path.replace("/1/", "/{delivery}/")][method.lower()]["security"] == (
            [{}] if needed is None else [{"token": [needed]}]
        )
        if method == "GET":
            continue
        answer = served.ask(read, method, path)
        assert (answer.status_code == 403) == (needed != "read"), (operation, answer.text)
        if answer.status_code == 403:
            problem = answer.json()
            assert (problem["code"], "looks" in problem["detail"]) == ("not_permitted", True)
            assert f"--role {needed}" in problem["remedy"]
            kept_from_read.add(operation)
        if needed == "admin":
            assert served.ask(operate, method, path).status_code == 403
            kept_from_operate.add(operation)
    assert {"submitTask", "cancelTask", "drain", "createToken"} <= kept_from_read
    assert {"drain", "holdAgent", "makeBackup", "createToken", "revokeToken"} <= kept_from_operate
    assert served.ask(operate, "GET", "/v1/tokens").status_code == 403
    assert not served.operator.drain_state().drained


def test_a_page_offers_nothing_that_would_be_refused(served: Served) -> None:
    read, operate = served.token("sees-pages", "read"), served.token("uses-pages", "operate")
    task = served.operator.submit(sleeping("on-a-page"))
    for token, offered in ((read, False), (operate, True)):
        assert ("Cancel…" in served.ask(token, "GET", f"/tasks/{task.id}").text) == offered
        assert ('href="/select' in served.ask(token, "GET", "/").text) == offered
        assert served.ask(token, "GET", f"/tasks/{task.id}/cancel").status_code == (200 if offered else 403)
    own_page = {"Origin": served.url}
    for path in (f"/tasks/{task.id}/cancel", "/agents/sh/release", "/select/cancel"):
        answer = served.ask(read, "POST", path, headers=own_page, data={"version": "1"})
        assert (answer.status_code, answer.json()["code"]) == (403, "not_permitted")


def test_a_token_is_shown_once_and_kept_as_a_hash(served: Served) -> None:
    token = served.token("kept", "read")
    assert token.startswith("cmt_")
    listed = served.ask(token.replace("cmt_", "cmt_x"), "GET", "/v1/tasks")
    assert listed.status_code == 401
    assert token not in json.dumps([token.model_dump(mode="json") for token in served.operator.tokens()])
    for file in served.site.state.iterdir():
        if file.is_file():
            assert token.encode() not in file.read_bytes(), file.name
    assert token not in served.site.log_text()


def test_nobody_gives_out_more_than_they_have(served: Served) -> None:
    with served.client("boss-of-acme", "admin", organisation="acme", expires="1d") as boss:
        made = boss.create_token(TokenRequest(name="acme-reader", role="read"))
        assert (made.organisation, made.creator) == ("acme", "boss-of-acme")
        assert made.expires_at is not None
        for wanted in ({"organisation": "other"}, {"expires": "never"}, {"expires": "2d"}):
            with pytest.raises(ServiceProblem) as refused:
                boss.create_token(TokenRequest.model_validate({"name": "more", "role": "read", **wanted}))
            assert refused.value.code in ("not_permitted", "invalid")
        assert {token.organisation for token in boss.tokens()} == {"acme"}
        with pytest.raises(ServiceProblem, match="There is no token"):
            boss.revoke_token("looks")
        # What concerns the whole daemon is none of an organisation's business.
        for ask in (boss.drain, boss.backup, boss.metrics, boss.notifications, lambda: boss.hold("sh")):
            with pytest.raises(ServiceProblem) as refused:
                ask()
            assert refused.value.code == "not_permitted"
    for name in ("operator", "inbox"):
        assert served.ask(_operator_token(served), "POST", "/v1/tokens", json={"name": name, "role": "read"}).is_error
    with pytest.raises(ServiceProblem) as again:
        served.token("acme-reader", "read")
    assert again.value.code == "conflict"


def _operator_token(served: Served) -> str:
    return (served.site.state / "token").read_text().strip()


def test_a_revoked_token_ends_its_streams_and_its_browser(served: Served) -> None:
    token = served.token("goes", "read")
    code = served.ask(token, "POST", "/v1/login-codes").json()
    assert code["code"]
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    with httpx.stream("GET", f"{served.url}/v1/events", headers=headers, timeout=PATIENCE_S) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        served.operator.revoke_token("goes")
        assert not [line for line in lines if line.startswith("data:")]  # and it ends
    assert served.ask(token, "GET", "/v1/tasks").status_code == 401
    assert served.ask(token, "GET", "/readyz").json()["checks"] == []


def test_keys_of_one_are_not_anothers(served: Served) -> None:
    alice, bob = served.token("alice", "operate"), served.token("bob", "operate")
    body = {"name": "the-same", "instructions": "do: true"}
    key = {"Idempotency-Key": "one-key"}
    first = served.ask(alice, "POST", "/v1/tasks", json=body, headers=key).json()
    assert served.ask(alice, "POST", "/v1/tasks", json=body, headers=key).json()["id"] == first["id"]
    other = served.ask(bob, "POST", "/v1/tasks", json={**body, "name": "another"}, headers=key)
    assert (other.status_code, other.json()["creator"], first["creator"]) == (201, "bob", "alice")


def test_who_did_what_is_told(served: Served) -> None:
    with served.client("carol", "operate") as carol:
        task = carol.submit(sleeping("hers"))
        carol.cancel(task.id)
    (served.site.inbox / "dropped.yaml").write_text(
        "name: dropped\ninstructions: 'do: true'\nnot_before: 2099-01-01T00:00:00Z\n"
    )
    command = served.site.command("log", "--by", "carol", "-o", "json")
    events = [json.loads(line) for line in command.stdout.splitlines()]
    assert {event["by"] for event in events} == {"carol"}
    assert next(event["kind"] for event in events if event["task_id"] == task.id) == "accepted"
    assert events == sorted(events, key=lambda event: event["id"])
    assert "It was cancelled by carol." in served.operator.why(task.id).sentences
    wait_until(lambda: served.operator.tasks(TaskFilter(creator="inbox")).items, "the file to be accepted")
    assert [entry.name for entry in served.operator.all_tasks(TaskFilter(creator="inbox"))] == ["dropped"]


def test_the_command_line_gives_out_lists_and_revokes(served: Served) -> None:
    made = served.site.command("token", "create", "dave", "--role", "read", "--expires", "30d")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    with Client(served.url, token) as dave:
        assert dave.tasks().items is not None
        with pytest.raises(ServiceProblem, match="needs operate"):
            dave.submit(sleeping("none"))
        assert token not in served.site.command("token", "list", "-o", "json").stdout
        assert "dave" in served.site.command("token", "list").stdout
        assert "revoked" in served.site.command("token", "revoke", "dave").stdout
        with pytest.raises(NotAuthorised):
            dave.tasks()
    assert served.site.command("token", "create", "eve", "--role", "run").returncode == 2
    assert served.site.command("token", "create", "eve", "--role", "read", "--expires", "soon").returncode == 2


def test_what_others_have_does_not_exist(served: Served) -> None:
    ann, bob = (
        served.token(f"{name}-of-{two}", "operate", organisation=two)
        for name, two in (("ann", "acme"), ("bob", "bolt"))
    )
    task = served.ask(
        ann, "POST", "/v1/tasks", json={**_document("anns-plan"), "instructions": "do: echo xylophone"}
    ).json()
    served.ask(ann, "POST", "/v1/schedules", json={**_document("anns-nights"), "schedule": "0 3 * * *"})
    wait_until(lambda: served.operator.task(task["id"]).state == "COMPLETED", "the task of acme to be done")
    run = served.operator.runs(task["id"])[0].id
    # Every GET of the API, with what others have as its parameters: not a word of it.
    secret = ("anns-plan", "anns-nights", task["id"], run, "xylophone", "ann-of-acme")
    document = served.ask(bob, "GET", "/openapi.json").json()
    asked = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] in ("getReadiness", "getLiveness", "createLoginCode"):
                continue
            for ref in (task["id"], task["id"][:8], "anns-plan", "anns-nights", run):
                named = re.sub(r"\{\w+\}", ref, path)
                if named == path and (method != "get" or ref != task["id"]):
                    continue
                answer = served.ask(bob, method.upper(), named, json={"text": "x"} if "answer" in path else None)
                asked += 1
                assert answer.status_code in (200, 403, 404, 415, 422), (method, named, answer.text)
                text = answer.text.replace(ref, "").replace(named, "")
                assert not [entry for entry in secret if entry in text], (method, named, answer.text)
                if named != path:
                    assert answer.status_code != 200, (method, named, answer.text)
    assert asked > 50
    for query in (f"task={task['id']}", "task=anns-plan"):
        assert served.ask(bob, "GET", f"/v1/events?{query}").status_code == 404
    assert served.ask(bob, "GET", "/v1/tasks?creator=ann-of-acme").json()["items"] == []
    assert served.ask(bob, "GET", "/v1/status").json()["counts"] == {}
    etag = {"If-None-Match": f'"{task["version"]}"'}
    assert served.ask(bob, "GET", f"/v1/tasks/{task['id']}", headers=etag).status_code == 404
    page = served.ask(ann, "GET", "/v1/tasks").json()["items"]
    assert [entry["organisation"] for entry in page] == ["acme"]


def _document(name: str) -> dict[str, Any]:
    return {"name": name, "instructions": "do: true"}


def test_a_run_has_a_token_for_itself_alone(tmp_path: Path, warm: WarmStarter) -> None:
    with open_site(tmp_path / "site", warm=warm) as site:
        served = Served(site, site.start().ready())
        shown = site.root / "shown"
        text = f'echo "$CLAUDOMATOR_RUN_TOKEN" > {shown}.part; mv {shown}.part {shown}'
        doing = f"do: {text}; while [ ! -e {site.root}/go ]; do sleep 0.05; done"
        other = served.operator.submit(sleeping("other"))
        task = served.operator.submit(TaskSpec(name="asks", instructions=doing))
        wait_until(shown.exists, "the run to have its token")
        token = shown.read_text().strip()
        run = served.operator.runs(task.id)[0].id
        assert token.startswith(f"cmr_{run}_")
        assert served.ask(token, "GET", f"/v1/tasks/{task.id}").json()["name"] == "asks"
        assert served.ask(token, "GET", f"/v1/runs/{run}").json()["id"] == run
        assert served.ask(token, "GET", f"/v1/runs/{run}/log").status_code == 200
        assert served.ask(token, "GET", f"/v1/tasks/{other.id}").status_code == 404
        for method, path in (("POST", f"/v1/tasks/{task.id}/cancel"), ("GET", "/v1/tasks"), ("GET", "/v1/status")):
            assert served.ask(token, method, path).status_code == 403, path
        assert served.ask(token, "POST", "/v1/tasks", json=_document("more")).status_code == 403
        assert (
            served.ask(f"{token[:-1]}{'0' if token[-1] != '0' else '1'}", "GET", f"/v1/runs/{run}").status_code == 401
        )
        assert served.ask(token.replace(run, str(uuid.uuid4())), "GET", f"/v1/runs/{run}").status_code == 401
        # In no file, and shown nowhere.
        for file in (*site.state.rglob("*"), site.log_file):
            if file.is_file():
                assert token.encode() not in file.read_bytes(), file
        # It outlives the daemon, as the run does, and ends with the run.
        served.daemon.kill()
        served = Served(site, site.start().ready())
        assert served.ask(token, "GET", f"/v1/runs/{run}").status_code == 200
        (site.root / "go").touch()
        wait_until(lambda: served.operator.task(task.id).state == "COMPLETED", "the run to end")
        assert served.ask(token, "GET", f"/v1/runs/{run}").status_code == 401
