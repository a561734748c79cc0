"""What guests try with tokens that are good: each a request of their own, to a real daemon that other sides use, too.

Every row is refused, or changes and tells nothing of anybody else's; what each proves is its first word.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.e2e.security.test_principals import Served
from tests.e2e.site import open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

SECRET = "xylophone-42"
LOOK = "Review the diff of the login module"
REFUSED, ABSENT, WRONG = (403,), (404,), (400, 409, 415, 422)
TAKEN = (201,)
"""As it would be of what does not exist: it waits, or is given no work."""
SKILL = {"id": "s", "name": "Review diffs", "examples": [LOOK]}
GREEDY = {
    "permissions": {"mode": "acceptEdits", "allowed_tools": ["Bash"]},
    "system_prompt": "INJECTED",
    "skills": [SKILL],
}
CARDS = {"acme-public": ("acme", "public"), "acme-shared": ("acme", "shared"), "globex-private": ("globex", "private")}


class Try(NamedTuple):
    """A request. {task}, {run}, {message}: the operator's; {mine}: a task of acme's."""

    what: str
    who: str
    method: str
    path: str
    status: tuple[int, ...]
    body: Any = None
    form: bool = False


def written(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"content": text, **more}


def task(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "instructions": "do: true", **more}


TRIES = [
    # Admission is an administrator's of the daemon, by whatever name it is asked for.
    Try("admit-own", "acme", "PUT", "/v1/specialists/acme-public/admission", REFUSED),
    Try("admit-as-admin-of-its-side", "acme-admin", "PUT", "/v1/specialists/acme-public/admission", REFUSED),
    Try("admit-of-others", "globex", "PUT", "/v1/specialists/acme-public/admission", REFUSED),
    Try("admit-private-of-others", "acme-admin", "PUT", "/v1/specialists/globex-private/admission", ABSENT),
    Try("admit-as-reader", "reader", "PUT", "/v1/specialists/acme-public/admission", REFUSED),
    Try("admit-by-other-method", "acme", "POST", "/v1/specialists/acme-public/admission", (405,)),
    Try("admit-by-a-longer-path", "acme", "PUT", "/v1/specialists/acme-public/admission/", ABSENT),
    Try("admit-by-a-path-with-dots", "acme", "PUT", "/v1/specialists/x/../acme-public/admission", (403, 404)),
    Try("admit-by-coded-slash", "acme", "PUT", "/v1/specialists/acme-public%2Fadmission", (403, 404, 422)),
    Try("admit-by-page", "acme-admin", "POST", "/specialists/acme-public/admit", REFUSED, form=True),
    Try("admit-in-the-card", "acme", "PUT", "/v1/specialists/acme-public", WRONG, {"admitted_by": "operator"}),
    Try("dismiss-of-the-operator", "acme-admin", "DELETE", "/v1/specialists/operators/admission", REFUSED),
    # Cards.
    Try("take-over-a-card", "globex", "PUT", "/v1/specialists/acme-public", (403, 409, 422), {"description": "x"}),
    Try(
        "take-over-a-shipped-id", "acme", "POST", "/v1/specialists", (403, 409), {"id": "operators", "description": "x"}
    ),
    Try("remove-of-others", "globex", "DELETE", "/v1/specialists/acme-public", REFUSED),
    Try("remove-hidden", "acme", "DELETE", "/v1/specialists/globex-private", ABSENT),
    Try("grant-of-others", "globex", "POST", "/v1/specialists/acme-shared/grants", (403, 404), {"grantee": "globex"}),
    Try("see-hidden", "acme", "GET", "/v1/specialists/globex-private", ABSENT),
    Try(
        "local-address",
        "acme",
        "POST",
        "/v1/specialists",
        TAKEN,
        {"id": "l", "description": "x", "url": "http://127.0.0.1:9/"},
    ),
    # Work.
    Try("ask-a-hidden-card", "acme", "POST", "/v1/tasks", WRONG, task("a1", specialist="globex-private")),
    Try("ask-a-shared-card", "globex", "POST", "/v1/tasks", WRONG, task("a2", specialist="acme-shared")),
    Try("ask-a-public-card", "globex", "POST", "/v1/tasks", WRONG, task("a3", specialist="acme-public")),
    Try(
        "ask-its-agent",
        "globex",
        "POST",
        "/v1/tasks",
        WRONG,
        task("a4", agent={"type": "hub:acme-public", "strict": True}),
    ),
    Try("continue-of-others", "acme", "POST", "/v1/tasks", TAKEN, task("a5", continues="{task}")),
    Try("depend-on-others", "acme", "POST", "/v1/tasks", TAKEN, task("a6", depends_on=["{task}"])),
    Try("work-in-the-state", "acme", "POST", "/v1/tasks", WRONG, task("a7", working_dir="{state}")),
    Try("hand-on-of-others", "acme", "POST", "/v1/runs/{run}/handoff", (403, 404), {"to": "acme-public", "done": "d"}),
    Try("subtask-of-others", "acme", "POST", "/v1/runs/{run}/subtasks", (403, 404), task("a8")),
    Try("progress-of-others", "acme", "POST", "/v1/runs/{run}/progress", (403, 404), {"text": "x"}),
    Try("question-of-others", "acme", "POST", "/v1/runs/{run}/questions", (403, 404), {"question": "x"}),
    Try("restart-of-others", "acme", "POST", "/v1/tasks/{task}/restart", ABSENT, {"force": True}),
    Try("cancel-as-reader", "reader", "POST", "/v1/tasks/{mine}/cancel", REFUSED),
    Try("route-tells-no-hidden-card", "acme", "POST", "/v1/route", (200,), {"instructions": "Tune the globex engine"}),
    # Logs, decisions, events.
    Try("log-of-others", "acme", "GET", "/v1/runs/{run}/log", ABSENT),
    Try("log-as-file-of-others", "acme", "GET", "/v1/runs/{run}/log?view=text&stream=stdout", (404, 422)),
    Try("why-of-others", "acme", "GET", "/v1/tasks/{task}/why", ABSENT),
    Try("decisions-of-others", "acme", "GET", "/v1/decisions?limit=200", (200,)),
    Try("events-of-others", "acme", "GET", "/v1/events?limit=200", (200,)),
    Try("search-of-others", "acme", "GET", f"/v1/tasks?q={SECRET}", (200, 422)),
    Try("backup", "acme-admin", "POST", "/v1/backups", REFUSED),
    Try("drain", "acme-admin", "POST", "/v1/drain", REFUSED),
    Try(
        "tokens-beyond-its-side",
        "acme-admin",
        "POST",
        "/v1/tokens",
        (403, 422),
        {"name": "n", "role": "read", "organisation": "globex"},
    ),
    Try("metrics", "acme-admin", "GET", "/metrics", (200, 403)),
    # Channels.
    Try("read-a-channel", "acme", "GET", "/v1/channels/club/messages", ABSENT),
    Try("write-in-a-channel", "acme", "POST", "/v1/channels/club/messages", ABSENT, written()),
    Try(
        "webhook-of-its-own",
        "acme-admin",
        "PUT",
        "/v1/channels/den/settings",
        (403, 422),
        {"settings": {"webhook": {"kind": "plain", "secret_env": "HOME"}}},
    ),
    Try(
        "answer-another-channels-message",
        "acme",
        "POST",
        "/v1/channels/den/messages",
        WRONG,
        written(reply_to="{message}"),
    ),
    Try("answer-a-message-below-none", "acme", "POST", "/v1/channels/den/messages", WRONG, written(reply_to=-1)),
    Try("answer-a-message-too-large", "acme", "POST", "/v1/channels/den/messages", WRONG, written(reply_to=2**63)),
    Try("answer-in-words", "acme", "POST", "/v1/channels/den/messages", WRONG, written(reply_to="1")),
    Try(
        "join-a-hidden-card",
        "acme",
        "POST",
        "/v1/channels/den/participants",
        (404, 422),
        {"specialist": "globex-private"},
    ),
    Try("mention-a-public-card", "globex", "POST", "/v1/channels/yard/messages", (201,), written("@acme-public do it")),
    Try("mark-of-others", "acme", "PUT", "/v1/channels/club/messages/{message}/verdict", ABSENT, {"verdict": "right"}),
    Try("page-of-a-channel", "acme", "GET", "/channels/club", ABSENT),
    # Forms of pages.
    Try("form-answer", "acme", "POST", "/tasks/{task}/answer", ABSENT, {"text": "yes", "version": "1"}, form=True),
    Try("form-cancel", "acme", "POST", "/tasks/{task}/cancel", ABSENT, {"version": "1"}, form=True),
    Try("form-merge", "acme", "POST", "/tasks/{task}/merge", ABSENT, {"version": "1"}, form=True),
    Try("form-discard", "acme", "POST", "/tasks/{task}/discard", ABSENT, {"version": "1"}, form=True),
    Try("preview-merge", "acme", "GET", "/tasks/{task}/merge", ABSENT),
    Try("form-discard-as-reader", "reader", "POST", "/tasks/{mine}/discard", REFUSED, {"version": "1"}, form=True),
    Try("preview-merge-as-reader", "reader", "GET", "/tasks/{mine}/merge", REFUSED),
    Try("form-select", "acme", "POST", "/select/cancel", (200, 303, 400, 404, 422), {"task": "{task}"}, form=True),
    Try("form-approve-as-reader", "reader", "POST", "/tasks/{mine}/approve", REFUSED, {"version": "1"}, form=True),
    Try("form-release", "acme", "POST", "/agents/sh/release", REFUSED, {}, form=True),
    Try("form-sessions", "acme", "POST", "/sessions/1/end", (303, 404), {}, form=True),
]


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter
) -> Iterator[tuple[Served, dict[str, str], dict[str, str]]]:
    """The daemon, the token of each, and the names of what the operator and acme have."""
    with open_site(tmp_path_factory.mktemp("guests") / "site", warm=warm, routing={"shipped": False}) as site:
        served = Served(site, site.start().ready())
        sides = {"acme": "operate", "acme-admin": "admin", "globex": "operate", "reader": "read"}
        tokens = {
            name: served.token(name, role, organisation="globex" if name == "globex" else "acme")
            for name, role in sides.items()
        }
        tokens["operator"] = operator = (site.state / "token").read_text().strip()

        def made(who: str, path: str, **body: Any) -> dict[str, Any]:
            answer = served.ask(tokens[who], "POST", path, json=body)
            assert answer.status_code in (200, 201), answer.text
            results: dict[str, Any] = answer.json()
            return results

        made(
            "operator",
            "/v1/specialists",
            id="operators",
            description="Keeps the books",
            skills=[{**SKILL, "examples": []}],
        )
        for card, (who, visibility) in CARDS.items():
            made(
                who,
                "/v1/specialists",
                id=card,
                description=f"Reviews diffs {visibility}",
                visibility=visibility,
                **GREEDY,
            )
        own = made(
            "operator",
            "/v1/tasks",
            name="plan",
            instructions=f"do: echo {SECRET}",
            agent={"type": "sh", "strict": True},
        )
        mine = made("acme", "/v1/tasks", **task("mine", not_before="2099-01-01T00:00:00Z"))
        for who, channel in (("operator", "club"), ("acme", "den"), ("globex", "yard")):
            made(who, "/v1/channels", name=channel)
        message = made("operator", "/v1/channels/club/messages", content=SECRET)
        wait_until(lambda: served.operator.task(own["id"]).state == "COMPLETED", "the operator's task to end")
        run = served.ask(operator, "GET", f"/v1/tasks/{own['id']}/runs").json()["items"][0]["id"]
        names = {"task": own["id"], "run": run, "mine": mine["id"], "message": message["id"], "state": str(site.state)}
        names["standing"] = standing(served, operator)
        yield served, tokens, names


def filled(value: Any, names: dict[str, Any]) -> Any:
    """The value with what the names stand for."""
    if isinstance(value, dict):
        return {key: filled(entry, names) for key, entry in value.items()}
    if isinstance(value, list):
        return [filled(entry, names) for entry in value]
    if not isinstance(value, str):
        return value
    alone = value.strip("{}")
    return names[alone] if value == f"{{{alone}}}" and alone in names else value


def standing(served: Served, operator: str) -> str:
    """What belongs to no organisation, as it is: what the clock changes is left out."""
    kept = (
        "id",
        "name",
        "state",
        "version",
        "content",
        "admitted_by",
        "grants",
        "settings",
        "participants",
        "available",
    )
    paths = ("/v1/tasks", "/v1/specialists", "/v1/channels", "/v1/channels/club/messages", "/v1/agents", "/v1/tokens")
    results = [item for path in paths for item in served.ask(operator, "GET", path).json()["items"]]
    return json.dumps([{key: entry.get(key) for key in kept} for entry in results if entry.get("organisation") is None])


@pytest.mark.parametrize("entry", TRIES, ids=lambda entry: entry.what)
def test_a_guest_gets_and_changes_nothing_of_others(
    shared: tuple[Served, dict[str, str], dict[str, str]], entry: Try
) -> None:
    served, tokens, names = shared
    path = entry.path.format(**names) if "{" in entry.path else entry.path
    body = filled(entry.body, names)
    more: dict[str, Any] = (
        {} if entry.body is None and not entry.form else {"data" if entry.form else "json": body or {}}
    )
    if entry.form:
        more["headers"] = {"Origin": served.url}
    answer = served.ask(tokens[entry.who], entry.method, path, **more)
    assert answer.status_code in entry.status, (answer.status_code, answer.text[:600])
    asked = f"{path} {json.dumps(body)}"
    hidden = (SECRET, "INJECTED", names["run"], "/state/", *(["globex-private"] if entry.who != "globex" else []))
    assert not [word for word in hidden if word in answer.text and word not in asked], answer.text[:600]
    assert standing(served, tokens["operator"]) == names["standing"]


@pytest.mark.parametrize("way", ["http", "inbox", "mention"])
def test_work_of_others_goes_to_no_guests_card(shared: tuple[Served, dict[str, str], dict[str, str]], way: str) -> None:
    served, tokens, _ = shared
    if way == "http":
        body = {"name": f"by-{way}", "instructions": LOOK}
        result = served.ask(tokens["operator"], "POST", "/v1/tasks", json=body).json()["id"]
    elif way == "inbox":
        served.site.drop(f"by-{way}.yaml", json.dumps({"instructions": LOOK}))
        result = f"by-{way}"
    else:
        body = {"content": f"@acme-public {LOOK}"}
        message = served.ask(tokens["operator"], "POST", "/v1/channels/club/messages", json=body).json()
        assert [answer["task_id"] for answer in message["answers"]] == []
        return
    wait_until(
        lambda: result in {ref for entry in served.operator.all_tasks() for ref in (entry.id, entry.name)},
        "it to be taken",
    )
    wait_until(
        lambda: served.operator.task(result).specialist or served.operator.task(result).reason_text, "it to be routed"
    )
    assert served.operator.task(result).specialist not in CARDS
    for run in served.operator.runs(result):
        assert "INJECTED" not in (served.site.state / "runs" / run.id / "prompt.md").read_text()
