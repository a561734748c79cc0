"""The whole API against its own OpenAPI document, with requests that nobody would think of, on a real daemon.

In short the requests are the same each time; ``make slow`` sends more of them, and others each time.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition

import claudomator_py.api.app  # noqa: F401 - whose operations say what role they need
from claudomator_py.api.guard.roles import OPERATIONS as ROLES
from claudomator_py.domain.channel import NewAttachment, NewChannel, NewMessage
from claudomator_py.domain.principal import Principal, Role
from claudomator_py.domain.task import TaskSpec
from claudomator_py.resources.access import TokenRequest
from tests.e2e.site import open_site
from tests.fakes.daemon import openapi_document
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

if TYPE_CHECKING:
    from schemathesis import Case

    from tests.e2e.fuzzed_api import FuzzedApi

EXAMPLES, MORE_EXAMPLES, WEAK_EXAMPLES = 2, 60, 2
AGENT = {"kind": "simulated", "auto_select": True, "max_concurrent": 2, "models": {"balanced": "opus"}}


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    """All of them: method, path, and what the document says."""
    paths = openapi_document()["paths"]
    return [(method, path, operation) for path, methods in paths.items() for method, operation in methods.items()]


def fuzzing(examples: int, *, same: bool, **more: Any) -> settings:
    """So many requests. same: the same each time; else others, and what fails is made smaller."""
    return settings(
        max_examples=examples,
        derandomize=same,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate] if same else [Phase.generate, Phase.shrink],
        **more,
    )


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter) -> "Iterator[FuzzedApi]":
    from tests.e2e.fuzzed_api import FuzzedApi

    root = tmp_path_factory.mktemp("fuzz") / "site"
    with open_site(root, warm=warm, agents={"one": AGENT, "two": AGENT}, workdir_roots=[str(root / "work")]) as site:
        daemon = site.start().ready()
        for outcome in ("success", "failed"):
            daemon.client.submit(TaskSpec(name=outcome, instructions=f"simulate: outcome={outcome}"))
        site.drain(daemon)
        assert site.endpoint is not None
        yield FuzzedApi.of(daemon, site.endpoint, (site.state / "token").read_text().strip())
        assert daemon.running, site.log_text()
        assert "Traceback" not in site.log_text()


def test_every_operation_is_asked_here() -> None:
    assert {operation["operationId"] for _, _, operation in operations()} == set(ROLES)


@pytest.mark.parametrize("operation_id", ROLES)
def test_every_operation_keeps_to_the_document(api: "FuzzedApi", operation_id: str) -> None:
    api.keeps_to_the_document(operation_id, fuzzing(EXAMPLES, same=True))


@pytest.mark.slow
@pytest.mark.parametrize("operation_id", ROLES)
def test_every_operation_keeps_to_the_document_at_length(api: "FuzzedApi", operation_id: str) -> None:
    api.keeps_to_the_document(operation_id, fuzzing(MORE_EXAMPLES, same=False))


def test_the_links_of_the_document_lead_on(api: "FuzzedApi") -> None:
    api.follow_links(fuzzing(5, same=True, stateful_step_count=8))


@pytest.mark.slow
def test_the_links_of_the_document_lead_on_at_length(api: "FuzzedApi") -> None:
    for _ in range(12):
        # What a daemon answers depends on all that it was asked before: a walk ends where hypothesis minds that.
        with suppress(FlakyStrategyDefinition):
            api.follow_links(fuzzing(5, same=False, stateful_step_count=20))


@pytest.mark.parametrize("authorization", [None, "Bearer wrong"])
def test_nothing_is_told_or_done_without_the_token(api: "FuzzedApi", authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    with httpx.Client(base_url=api.url, headers=headers, trust_env=False) as http:
        for method, path, operation in operations():
            needed = operation["security"] != [{}]
            answer = http.request(method, path.replace("{", "").replace("}", ""))
            assert (answer.status_code == 401) is needed, (method, path)
            assert needed or answer.status_code == 200


@dataclass(frozen=True)
class Weak:
    """Somebody who may not do everything. by: None: nobody that the daemon knows."""

    headers: dict[str, str]
    by: Principal | None

    def may(self, operation_id: str) -> bool:
        needed = ROLES[operation_id]
        return needed.role is None if self.by is None else needed.permits(self.by)


@pytest.fixture(scope="module")
def weak(api: "FuzzedApi") -> dict[str, Weak]:
    client = api.daemon.client
    reader = client.create_token(TokenRequest(name="reader", role="read")).token
    guest = client.create_token(TokenRequest(name="guest", role="operate", organisation="elsewhere")).token
    return {
        "nobody": Weak({}, None),
        "liar": Weak({"Authorization": f"Bearer {'x' * 43}", "Cookie": "claudomator_session=x"}, None),
        "reader": Weak({"Authorization": f"Bearer {reader}"}, Principal("reader", Role.READ)),
        "guest": Weak({"Authorization": f"Bearer {guest}"}, Principal("guest", Role.OPERATE, "elsewhere")),
    }


def test_nobody_does_more_than_their_role_with_any_request(api: "FuzzedApi", weak: dict[str, Weak]) -> None:
    """Requests that an admin would be answered: without the role nothing is done, and nothing fails either."""
    ours = {task.id for task in api.daemon.client.all_tasks()}
    for operation_id in ROLES:

        def send(case: "Case[Any]", operation_id: str = operation_id) -> None:
            for name, who in weak.items():
                answer = case.call(session=api.session, headers=who.headers, timeout=PATIENCE_S)
                messages = (operation_id, name, answer.status_code, answer.text)
                assert answer.status_code < 500, messages
                if not who.may(operation_id):
                    assert answer.status_code in ({401, 429} if who.by is None else {403}), messages
                elif who.by is not None and who.by.organisation is not None:
                    assert not [task_id for task_id in ours if task_id in answer.text], messages

        api.each_right_request(operation_id, fuzzing(WEAK_EXAMPLES, same=True), send)


HEADERS = [
    "Accept",
    "Accept-Encoding",
    "Connection",
    "Content-Encoding",
    "Content-Type",
    "Cookie",
    "Expect",
    "Forwarded",
    "HX-Request",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "If-Modified-Since",
    "Last-Event-ID",
    "Origin",
    "Range",
    "Referer",
    "Sec-Fetch-Dest",
    "Sec-Fetch-Mode",
    "Sec-Fetch-Site",
    "Traceparent",
    "Upgrade",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-HTTP-Method-Override",
    "X-Original-URL",
]
VALUES = st.one_of(
    st.sampled_from(["*", '"', '""', 'W/"1"', '"1", "2"', ",", "-1", "0" * 400, "9" * 400, "bytes=0-", "null", "{}"]),
    st.sampled_from(["text/event-stream", "application/json;charset=nonsense", "gzip", "h2c", "100-continue"]),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=200),
)
PLACES = [("GET", path) for path in ("/v1/status", "/v1/tasks", "/v1/events", "/metrics", "/", "/login", "/livez")]
PLACES += [("POST", "/v1/tasks"), ("POST", "/logout"), ("DELETE", "/v1/drain"), ("OPTIONS", "/v1/tasks")]


@fuzzing(80, same=True)
@given(
    place=st.sampled_from(PLACES),
    sent=st.dictionaries(st.sampled_from(HEADERS), VALUES, max_size=4),
    known=st.booleans(),
)
def test_no_header_makes_it_fail_or_opens_anything(
    api: "FuzzedApi", place: tuple[str, str], sent: dict[str, str], known: bool
) -> None:
    method, path = place
    headers = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
    headers += [(name.encode(), value.encode()) for name, value in api.headers.items() if known]
    body = b"{}" if method == "POST" else None
    with httpx.Client(base_url=api.url, trust_env=False, timeout=PATIENCE_S) as http:
        try:
            with http.stream(method, path, headers=headers, content=body) as answer:
                status = answer.status_code
        except httpx.RemoteProtocolError:
            return  # it hung up on what is no HTTP
    assert status < 500, (place, sent)
    assert known or status >= 300 or path in ("/login", "/livez"), (place, sent, status)


def test_the_document_itself_is_sound(api: "FuzzedApi") -> None:
    assert api.schema.raw_schema["openapi"].startswith("3.1.")
    api.schema.validate()


def _task_for(api: "FuzzedApi", path: str) -> str:
    """A task in the state in which the operation makes sense."""
    match path.rpartition("/")[2]:
        case "answer" | "approve" | "reject" as asked:
            does = "outcome=question" if asked == "answer" else "needs=Bash(make)"
            asks = api.daemon.client.submit(TaskSpec(name="asks", instructions=f"simulate: {does}"))
            wait_until(lambda: api.daemon.client.task(asks.id).state == "NEEDS_INPUT", "what it asks")
            return asks.id
        case _:
            waiting = TaskSpec(name="describe-login", instructions="x", depends_on=("what-never-comes",))
            return api.daemon.client.submit(waiting).id


def _unused(path: str, example: dict[str, Any]) -> dict[str, Any]:
    """The example with a name of its own where a name is never given twice: others have sent it as it is."""
    once = path.endswith(("/tokens", "/channels"))
    return {**example, "name": f"{example['name']}-{uuid4().hex[:8]}"} if once else example


def test_the_examples_of_the_document_are_taken(api: "FuzzedApi") -> None:
    agent = api.daemon.client.agents()[0].name
    attachment = NewAttachment(id="a1", name="log.txt")
    channel = api.daemon.client.create_channel(NewChannel(name=f"channel-{uuid4().hex[:8]}")).id
    message = api.daemon.client.post_message(channel, NewMessage(content="x", attachments=(attachment,))).id
    parts = {"channel": channel, "message": message, "attachment": "a1", "participant": "plumber", "name": agent}
    sent = 0
    with httpx.Client(base_url=api.url, headers=api.headers, trust_env=False) as http:
        for method, path, operation in operations():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            for name, example in content.get("examples", {}).items():
                if "{run_id}" in path:
                    continue  # it takes a run that lives, which is over in a moment here
                if path.endswith(("/merge", "/discard", "/pr")):
                    continue  # it takes a work tree, see tests/contract/test_service_branches.py
                ref = _task_for(api, path)
                specialist = example["value"].get("id", "release-manager")  # which one of the examples registers
                place = {"name": "local"} if path.startswith("/v1/hosts/") else {}
                filled = path.format(ref=ref, specialist_id=specialist, **parts | place)
                if path.endswith("/specialists"):
                    http.delete(f"{path}/{specialist}")  # others may have registered it by the same example
                answer = http.request(method, filled, json=_unused(path, example["value"]))
                assert answer.is_success, (name, answer.text)
                assert str(answer.status_code) in operation["responses"]
                sent += 1
    assert sent >= 6
    api.daemon.client.undrain()
    api.daemon.client.undrain_host("local")
