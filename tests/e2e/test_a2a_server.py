"""The daemon as a remote agent: asked by the SDK's client, and by another daemon of ours."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.helpers.proto_helpers import new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.proto_utils import validate_proto_required_fields

from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.tasks import AnswerRequest
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state
from tests.e2e.site import Site, open_site
from tests.patience import PATIENCE_S
from tests.warm.starter import WarmStarter

AGENTS = {"simulated": {"kind": "simulated", "auto_select": True, "max_concurrent": 4}}


@pytest.fixture
def served(tmp_path: Path, warm: WarmStarter) -> Iterator[tuple[Site, Daemon]]:
    with open_site(tmp_path / "served", warm=warm, agents=AGENTS) as site:
        yield site, site.start().ready()


def token_of(site: Site) -> str:
    return (site.state / "token").read_text().strip()


@asynccontextmanager
async def sdk_client(site: Site, **config: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token_of(site)}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
        card = await A2ACardResolver(http, str(site.endpoint)).get_agent_card()
        validate_proto_required_fields(card)
        assert "task" in {skill.id for skill in card.skills}
        yield ClientFactory(ClientConfig(httpx_client=http, **config)).create(card)


def saying(text: str, **fields: Any) -> SendMessageRequest:
    message = new_text_message(text, role=Role.ROLE_USER, **fields)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration())


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await test()

    asyncio.run(whole())


async def said(client: Client, request: SendMessageRequest) -> list[Any]:
    return [update async for update in client.send_message(request)]


@pytest.mark.parametrize("streaming", [True, False])
def test_the_sdks_client_gives_a_task_and_gets_its_result(served: tuple[Site, Daemon], streaming: bool) -> None:
    site, daemon = served

    async def test() -> None:
        async with sdk_client(site, streaming=streaming) as client:
            updates = await said(client, saying("simulate: delay=300ms text=painted"))
            task_id = updates[0].task.id
            task = await client.get_task(GetTaskRequest(id=task_id))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED
            assert task.artifacts[0].parts[0].text == "[simulated] painted"
            assert daemon.client.task(task_id).state == "COMPLETED"
            if streaming:
                assert updates[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
                assert updates[-2].artifact_update.artifact.parts[0].text == "[simulated] painted"
                assert len(updates) >= 3
            else:
                assert len(updates) == 1

    run(test)


def test_what_it_asks_is_answered_by_a_message_to_the_task(served: tuple[Site, Daemon]) -> None:
    site, _ = served

    async def test() -> None:
        async with sdk_client(site, streaming=False) as client:
            asks = "simulate: outcome=question text='Red or blue?'\nsimulate: text=painted"
            asked = (await said(client, saying(asks)))[0].task
            assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
            assert "Red or blue?" in asked.status.message.parts[0].text
            answer = saying("Blue.", task_id=asked.id, context_id=asked.context_id)
            done = (await said(client, answer))[0].task
            assert (done.id, done.status.state) == (asked.id, TaskState.TASK_STATE_COMPLETED)
            with pytest.raises(Exception, match="nothing waits to be answered"):
                await said(client, saying("And?", task_id=asked.id))

    run(test)


def test_a_task_is_cancelled(served: tuple[Site, Daemon]) -> None:
    site, daemon = served

    async def test() -> None:
        async with sdk_client(site, streaming=False, polling=True) as client:
            begun = (await said(client, saying("simulate: delay=10m")))[0].task
            assert begun.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
            await client.cancel_task(CancelTaskRequest(id=begun.id))
            await asyncio.to_thread(ended, daemon, begun.id)
            task = await client.get_task(GetTaskRequest(id=begun.id))
            assert task.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(Exception, match="already"):
                await client.cancel_task(CancelTaskRequest(id=begun.id))

    run(test)


def rpc(site: Site, method: str, params: object, token: str | None = None, **headers: str) -> httpx.Response:
    sent = {
        "Authorization": f"Bearer {token or token_of(site)}",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return rpc_of(site, {"jsonrpc": "2.0", "id": "x", "method": method, "params": params}, **sent)


def rpc_of(site: Site, body: object, **headers: str) -> httpx.Response:
    return sent(site, json.dumps(body).encode(), **headers)


def sent(site: Site, body: bytes, **headers: str) -> httpx.Response:
    given = {"Authorization": f"Bearer {token_of(site)}", "Content-Type": "application/json", **headers}
    with httpx.Client(trust_env=False, headers=given, timeout=PATIENCE_S) as client:
        return client.post(f"{site.endpoint}/a2a", content=body)


def message(text: str = "simulate: text=done", message_id: str = "m-1", **fields: object) -> dict[str, Any]:
    payload = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], **fields}
    return {"message": payload, "configuration": {"returnImmediately": True}}


def test_a_message_that_is_sent_again_begins_nothing(served: tuple[Site, Daemon]) -> None:
    site, daemon = served
    first = rpc(site, "SendMessage", message()).json()["result"]["task"]
    again = rpc(site, "SendMessage", message()).json()["result"]["task"]
    assert first["id"] == again["id"]
    assert len(list(daemon.client.all_tasks())) == 1
    other = rpc(site, "SendMessage", message("simulate: text=other")).json()["error"]
    assert other["code"] == -32602
    assert "`messageId` was sent before" in other["message"], "in the words of A2A"
    assert rpc(site, "ListTasks", None).json()["result"]["totalSize"] == 1, "parameters may be left out"
    in_state(daemon, first["id"], "COMPLETED")
    assert rpc(site, "SendMessage", message()).json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


REFUSED: list[tuple[str, object, int]] = [
    ("SendMessage", {}, -32602),
    ("SendMessage", [], -32602),
    ("SendMessage", {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}}, -32602),
    ("SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}}, -32602),
    ("SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"url": "http://x"}]}}, -32005),
    ("SendMessage", message("   "), -32602),
    ("SendMessage", message(message_id="m" * 300), -32602),
    ("SendMessage", message(taskId="no-such"), -32001),
    ("SendMessage", message(contextId="c" * 300), -32602),
    ("SendMessage", message(metadata={"executor": {"name": 3}, "skill_used": 4}), -32602),
    ("SendMessage", message(metadata={"skill_used": 4}), -32602),
    ("GetTask", {"id": "no-such"}, -32001),
    ("GetTask", {}, -32602),
    ("CancelTask", {"id": "no-such"}, -32001),
    ("SubscribeToTask", {"id": "no-such"}, -32001),
    ("ListTasks", {"pageSize": 0}, -32602),
    ("ListTasks", {"pageToken": "no-such"}, -32602),
    ("ListTasks", [], -32602),
    ("CreateTaskPushNotificationConfig", {}, -32003),
    ("GetExtendedAgentCard", {}, -32004),
    ("agent/getAuthenticatedExtendedCard", None, -32007),
    ("tasks/pushNotificationConfig/set", {}, -32003),
    ("NoMethod", {}, -32601),
]


def test_errors_are_those_of_a2a(served: tuple[Site, Daemon]) -> None:
    site, daemon = served
    for method, params, code in REFUSED:
        answer = rpc(site, method, params)
        assert (answer.status_code, answer.json()["id"]) == (200, "x")
        assert answer.json()["error"]["code"] == code, (method, params, answer.text)
    assert list(daemon.client.all_tasks()) == []


def nested(depth: int) -> object:
    return [] if depth == 0 else [nested(depth - 1)]


ODD: list[object] = [
    {},
    {"jsonrpc": "2.0", "id": True, "method": "GetTask", "params": {}},
    {"jsonrpc": "2.0", "id": {}, "method": "GetTask", "params": {}},
    {"jsonrpc": "2.0", "id": "\ud800", "method": "GetTask", "params": {"id": "x"}},
    {"jsonrpc": "1.0", "id": 1, "method": "GetTask", "params": {}},
    {"jsonrpc": "2.0", "id": 1, "method": "\ud800", "params": {}},
    *(
        {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        for params in (
            message(message_id="\ud800"),
            message(message_id="a\0b"),
            message(taskId="a\0b"),
            message(contextId="\ud800"),
            message("\ud800"),
            message(metadata={"x": nested(400)}),
            message(parts=[{"data": nested(400)}]),
            message(parts=3),
            message(metadata=3, taskId=4),
            {"message": 3, "configuration": 4, "metadata": 5},
        )
    ),
]


def test_no_request_is_a_fault_of_the_daemon(served: tuple[Site, Daemon]) -> None:
    site, daemon = served
    for body in ODD:
        answer = rpc_of(site, body)
        assert answer.status_code == 200, (body, answer.text)
        assert answer.json()["error"]["code"] in (-32600, -32601, -32602), (body, answer.text)
    assert list(daemon.client.all_tasks()) == []
    assert "Traceback" not in site.log_text()


def test_another_organisations_task_does_not_exist(served: tuple[Site, Daemon]) -> None:
    site, daemon = served
    begun = rpc(site, "SendMessage", message("simulate: delay=10m")).json()["result"]["task"]
    theirs = daemon.client.create_token(TokenRequest(name="acme", role="operate", organisation="acme")).token
    for method, params in (
        ("GetTask", {"id": begun["id"]}),
        ("CancelTask", {"id": begun["id"]}),
        ("SubscribeToTask", {"id": begun["id"]}),
        ("SendMessage", message(message_id="n", taskId=begun["id"])),
    ):
        assert rpc(site, method, params, theirs).json()["error"]["code"] == -32001
    assert rpc(site, "ListTasks", {"contextId": begun["id"]}, theirs).json()["result"]["tasks"] == []
    # The same messageId is another one's message.
    own = rpc(site, "SendMessage", message(), theirs).json()["result"]["task"]
    assert own["id"] != begun["id"]
    assert daemon.client.task(own["id"]).organisation == "acme"


def test_what_follows_in_its_context_continues_the_task(served: tuple[Site, Daemon]) -> None:
    site, daemon = served
    first = rpc(site, "SendMessage", message()).json()["result"]["task"]
    in_state(daemon, first["id"], "COMPLETED")
    second = rpc(site, "SendMessage", message("And now?", "m-2", contextId=first["contextId"])).json()["result"]["task"]
    task = in_state(daemon, second["id"], "COMPLETED")
    assert task.continues is not None
    assert task.continues.task_id == first["id"]
    record = rpc(site, "GetTask", {"id": second["id"]}).json()["result"]
    assert record["contextId"] == first["contextId"]


def test_a_client_may_call_its_context_as_it_likes(served: tuple[Site, Daemon]) -> None:
    site, daemon = served

    async def test() -> None:
        async with sdk_client(site, streaming=True) as client:
            first = await said(client, saying("simulate: text=one", context_id="chat-7"))
            second = await said(client, saying("And now?", context_id="chat-7"))
            assert {context.context_id for context in contexts(first + second)} == {"chat-7"}
            begun, follows = first[0].task.id, second[0].task.id
            task = daemon.client.task(follows)
            assert task.continues is not None
            assert (task.continues.task_id, task.thread) == (begun, begun)
            other = await said(client, saying("simulate: text=two", context_id="chat-8"))
            assert daemon.client.task(other[0].task.id).continues is None
            listed = await client.list_tasks(ListTasksRequest(context_id="chat-7"))
            assert {task.id for task in listed.tasks} == {begun, follows}
            with pytest.raises(Exception, match="contextId"):
                await said(client, saying("x", task_id=begun, context_id="chat-8"))

    run(test)


def contexts(updates: list[Any]) -> list[Any]:
    """What each update tells of."""
    return [getattr(update, update.WhichOneof("payload")) for update in updates]


def test_the_sdks_client_lists_tasks(served: tuple[Site, Daemon]) -> None:
    site, _ = served

    async def test() -> None:
        async with sdk_client(site, streaming=False) as client:
            made = [(await said(client, saying(f"simulate: text=n{number}")))[0].task.id for number in range(5)]
            seen: list[str] = []
            token = ""
            while token or not seen:
                part = await client.list_tasks(ListTasksRequest(page_size=2, page_token=token))
                assert (part.total_size, part.page_size) == (5, 2)
                assert not any(task.artifacts for task in part.tasks)
                seen += [task.id for task in part.tasks]
                token = part.next_page_token
            assert seen == made[::-1]
            done = ListTasksRequest(status=TaskState.TASK_STATE_COMPLETED, include_artifacts=True)
            tasks_response = await client.list_tasks(done)
            assert tasks_response.tasks[0].artifacts[0].parts[0].text == "[simulated] n4"
            none = await client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_WORKING))
            assert (list(none.tasks), none.total_size) == ([], 0)

    run(test)


def test_a_stream_is_joined_and_its_errors_are_told(served: tuple[Site, Daemon]) -> None:
    site, _ = served

    async def test() -> None:
        async with sdk_client(site, streaming=True) as client:
            begun = rpc(site, "SendMessage", message("simulate: delay=3s text=done")).json()["result"]["task"]
            updates = [entry async for entry in client.subscribe(SubscribeToTaskRequest(id=begun["id"]))]
            assert updates[0].task.id == begun["id"]
            assert updates[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
            with pytest.raises(Exception, match="will not change any more"):
                assert [entry async for entry in client.subscribe(SubscribeToTaskRequest(id=begun["id"]))]
            with pytest.raises(Exception, match="there is no such task"):
                await said(client, saying("x", task_id="no-such"))

    run(test)


@pytest.mark.parametrize("streaming", [True, False])
def test_a_client_of_0_3_hears_why_it_is_refused(served: tuple[Site, Daemon], streaming: bool) -> None:
    site, _ = served

    async def test() -> None:
        headers = {"Authorization": f"Bearer {token_of(site)}"}
        async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
            card = (await http.get(f"{site.endpoint}/.well-known/agent-card.json")).json()
            del card["supportedInterfaces"]
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(parse_agent_card(card))
            done = await said(client, saying("simulate: text=painted"))
            assert done[0].task.id
            with pytest.raises(Exception, match="there is no such task"):
                await said(client, saying("x", task_id="no-such"))

    run(test)


@pytest.mark.parametrize("method", ["message/stream", "tasks/resubscribe"])
def test_a_refused_stream_of_0_3_is_one_event(served: tuple[Site, Daemon], method: str) -> None:
    answer = rpc(served[0], method, {"id": "no-such", "message": message(taskId="no-such")["message"]})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.startswith("data: ")
    assert answer.text.endswith("\n\n")
    record = json.loads(answer.text.removeprefix("data: "))
    assert (record["id"], record["error"]["code"]) == ("x", -32001)


def test_a_version_that_is_not_spoken_is_told(served: tuple[Site, Daemon]) -> None:
    for version in ("2.0", "0.2", "0.30", "10", "one", "1.x"):
        assert rpc(served[0], "GetTask", {"id": "x"}, A2A_Version=version).json()["error"]["code"] == -32009
    for version in ("", "0.3", "0.3.0", "1", "1.0", "1.0.0", "1.1"):
        assert rpc(served[0], "GetTask", {"id": "x"}, A2A_Version=version).json()["error"]["code"] == -32001


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b'{"jsonrpc": NaN}', -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}]', -32600),
        (b'"GetTask"', -32600),
        (b"null", -32600),
    ],
)
def test_what_is_no_request_is_answered_by_json_rpc(served: tuple[Site, Daemon], body: bytes, code: int) -> None:
    answer = sent(served[0], body)
    assert (answer.status_code, answer.json()["id"]) == (200, None)
    assert answer.json()["error"]["code"] == code


def test_roles_are_those_of_the_api(served: tuple[Site, Daemon]) -> None:
    site, daemon = served
    begun = rpc(site, "SendMessage", message()).json()["result"]["task"]
    reader = daemon.client.create_token(TokenRequest(name="reader", role="read")).token
    assert rpc(site, "GetTask", {"id": begun["id"]}, reader).json()["result"]["id"] == begun["id"]
    for method, params in (("SendMessage", message(message_id="n")), ("CancelTask", {"id": begun["id"]})):
        assert rpc(site, method, params, reader).status_code == 403
    assert rpc(site, "GetTask", {"id": begun["id"]}, "wrong").status_code == 401
    with httpx.Client(trust_env=False) as nobody:
        assert nobody.get(f"{site.endpoint}/.well-known/agent-card.json").status_code == 200
        assert nobody.post(f"{site.endpoint}/a2a", json={}).status_code == 401


@pytest.mark.parametrize("protocol", ["auto", "1.0", "0.3"])
def test_one_daemon_is_the_remote_agent_of_another(
    served: tuple[Site, Daemon], tmp_path: Path, warm: WarmStarter, protocol: str
) -> None:
    there, far = served
    path = "" if protocol == "auto" else "/a2a"
    entry = {
        "kind": "a2a",
        "url": f"{there.endpoint}{path}",
        "protocol": protocol,
        "authentication": {"scheme": "bearer", "secret": "FAR_TOKEN"},
    }
    with open_site(tmp_path / "near", warm=warm, agents={"far": entry}) as site:
        near = site.start(FAR_TOKEN=token_of(there)).ready()
        asks = ("simulate: outcome=question text='Which?' tokens=30/4", "simulate: text=painted tokens=5/6")
        site.drop("fence.yaml", document(None, *asks, agent="far"))
        task = in_state(near, "fence", "NEEDS_INPUT")
        assert "Which?" in str(task.reason_text)
        near.client.answer("fence", AnswerRequest(text="This."))
        task = ended(near, "fence")
        assert (task.state, task.result_text) == ("COMPLETED", "[simulated] painted")
        (done,) = far.client.all_tasks()
        assert (done.state, done.runs) == ("COMPLETED", 2)
        assert task.tokens.input is not None
