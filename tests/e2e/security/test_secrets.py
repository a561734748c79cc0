"""Secrets that agents print in every field they can are neither stored, shown nor sent, raw or encoded."""

import html
import json
import re
import signal
import sqlite3
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from urllib.parse import urlsplit

import httpx
import pytest

from claudomator_py.domain.channel import NewChannel, NewMessage
from claudomator_py.domain.requests import HoldRequest
from tests.e2e.security.leaky import CANARY, Spilt, forms_of, leaky_site
from tests.e2e.site import Site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter


@pytest.fixture(scope="module")
def spilt(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter) -> Iterator[Spilt]:
    """One site for all of these."""
    with leaky_site(tmp_path_factory.mktemp("spilt") / "site", warm) as spilt:
        yield spilt


def api_answers(spilt: Spilt) -> dict[str, str]:
    """Every GET of the API's document, of every task, run and schedule, by its path."""
    client, site = spilt.daemon.client, spilt.site
    runs = [run.id for task in client.all_tasks() for run in client.runs(task.id)]
    channel = client.create_channel(NewChannel(name="kitchen")).id
    values = {
        "channel": [channel],
        "message": [str(client.post_message(channel, NewMessage(content="hello")).id)],
        "decision_id": [item.id for item in client.decisions(limit=200).items],
        "ref": [task.id for task in client.all_tasks()],
        "run_id": runs,
        "name": ["yearly"],
        "specialist_id": ["leaky"],
    }
    assert site.endpoint is not None
    headers = {"Authorization": f"Bearer {spilt.secrets['token']}"}
    result: dict[str, str] = {}
    with httpx.Client(base_url=site.endpoint, headers=headers, timeout=PATIENCE_S) as http:
        paths = [path for path, methods in http.get("/openapi.json").json()["paths"].items() if "get" in methods]
        for path in paths:
            parameters = re.findall(r"{(\w+)}", path)
            for given in product(*(values[parameter] for parameter in parameters)):
                asked = path
                for parameter, value in zip(parameters, given, strict=True):
                    asked = asked.replace(f"{{{parameter}}}", value)
                for query in _LOGS if path.endswith("/log") else _PAGES.get(path, ("",)):
                    answer = http.get(asked + query)
                    assert answer.status_code in (200, 503), (asked + query, answer.text)  # 503: it is drained
                    result[asked + query] = answer.text
        newest = max(item["id"] for item in json.loads(result["/v1/events?limit=500"])["items"])
        with http.stream("GET", "/v1/events?after=0", headers={"Accept": "text/event-stream"}) as stream:
            result["stream"] = ""
            for line in stream.iter_lines():
                result["stream"] += f"{line}\n"
                if line == f"id: {newest}":
                    break
        result["refusal"] = http.post("/v1/tasks/tells/approve", json={}).text
    return result


# The bytes of a log are what the agent wrote, and asked for as such.
_LOGS = tuple(
    f"?view={view}&stream={stream}&check={check}"
    for view in ("text", "structured")
    for stream in ("stdout", "stderr")
    for check in ("false", "true")
)
_PAGES = {"/v1/events": ("?limit=500",), "/v1/notifications": ("?limit=200",), "/v1/tasks": ("?limit=200",)}
_PAGES["/v1/specialists/search"] = ("?query=leaky",)


def pages(spilt: Spilt) -> dict[str, str]:
    """Every page that a link leads to, from the overview on; one of those about specialists that nobody here wrote, and
    a few of those that differ in a time alone: each look at a page makes links to other times."""
    assert spilt.site.endpoint is not None
    result: dict[str, str] = {}
    # They know nothing of this site, and what a page says of one it says of each.
    shipped = [entry.id for entry in spilt.daemon.client.all_specialists() if entry.id not in ("leaky", "generalist")]
    assert "test-engineer" in shipped
    waiting, at_times = ["/"], Counter[str]()
    headers = {"Authorization": f"Bearer {spilt.secrets['token']}", "Accept": "text/html"}
    with httpx.Client(base_url=spilt.site.endpoint, headers=headers, timeout=PATIENCE_S) as http:
        while waiting:
            path = waiting.pop()
            answer = http.get(path)
            result[path] = answer.text
            links = {html.unescape(link).partition("#")[0] for link in re.findall(r'href="(/[^"]*)"', answer.text)}
            links = {link for link in links if _is_page(link) and not any(name in link for name in shipped)}
            for link in links - result.keys() - set(waiting):
                at_times[_INSTANT.sub("*", link)] += 1
                if at_times[_INSTANT.sub("*", link)] <= MAX_TIMES:
                    waiting.append(link)
    return result


MAX_TIMES = 3
"""Pages that differ in a time alone."""
_INSTANT = re.compile(r"=(?:\d{10}|\d{4}-\d\d-\d\dT[^&]*)")


def _is_page(link: str) -> bool:
    return not urlsplit(link).path.startswith(("/static/", "/v1/", "/logout"))


def database_rows(spilt: Spilt) -> dict[str, str]:
    """Every row of a backup, by table and column."""
    path = spilt.daemon.client.backup().path
    result: dict[str, str] = {}
    with closing(sqlite3.connect(path)) as backup:
        tables = [name for (name,) in backup.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            rows = backup.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in rows.description]
            for row in rows:
                for name, value in zip(names, row, strict=True):
                    result[f"{table}.{name}"] = result.get(f"{table}.{name}", "") + f"{value}\n"
    return result


def bundled(spilt: Spilt) -> str:
    """All that a bundle for a bug report holds, with the texts of people and agents."""
    site = spilt.site
    path = site.root / "report.tar.gz"
    path.unlink(missing_ok=True)
    done = site.command("doctor", "--bundle", str(path), "--include-tasks")
    assert "written; review it" in done.stderr, done.stderr
    with tarfile.open(path) as archive:
        files = [archive.extractfile(member) for member in archive.getmembers()]
        return "\n".join(file.read().decode() for file in files if file is not None)


def shown_by_commands(spilt: Spilt) -> str:
    """What the command line says of everything."""
    site = spilt.site
    text = ""
    for words in (
        ["status"],
        ["why", "fails"],
        ["show", "denied"],
        ["schedule", "list", "-o", "json"],
        ["show", "tells", "-o", "json"],
    ):
        done = site.command(*words)
        assert done.returncode == 0, (words, done.stderr)
        text += done.stdout
    return text


def test_no_answer_of_the_api_has_a_secret(spilt: Spilt) -> None:
    results = api_answers(spilt)
    assert {path: leaks for path, text in results.items() if (leaks := spilt.leaks(text))} == {}
    messages = [path for path, text in results.items() if CANARY in text]
    for part in ("/why", "/runs", "/log?view=text", "/log?view=structured", "/v1/status", "/v1/events", "/v1/inbox"):
        assert any(part in path for path in messages), part
    assert {"/v1/agents", "/v1/drain", "/v1/notifications?limit=200", "stream"} <= set(messages)


def test_no_page_has_a_secret(spilt: Spilt) -> None:
    results = pages(spilt)
    assert {"/specialists/leaky", "/specialists/leaky/edit", "/specialists/generalist"} <= results.keys()
    assert {path: leaks for path, text in results.items() if (leaks := spilt.leaks(text))} == {}
    assert sum(CANARY in text for text in results.values()) > len(("tells", "asks", "denied", "fails", "checked"))


def test_no_notice_has_a_secret(spilt: Spilt) -> None:
    for notices in ("\n".join(spilt.told), (spilt.site.root / "told").read_text()):
        assert spilt.leaks(notices) == []
        for kind in ("needs_input", "failed", "completed", "limited"):
            assert any(CANARY in line for line in notices.splitlines() if f'"kind":"{kind}"' in line.replace(" ", ""))


def test_the_database_has_only_what_a_run_needs_as_it_was_given(spilt: Spilt) -> None:
    results = {place: leaks for place, text in database_rows(spilt).items() if (leaks := spilt.leaks(text))}
    paths = {"task.file_path", "inbox_document.path", "inbox_file.path"}
    assert all(leak.startswith("daemon ") for path in paths for leak in results.pop(path))
    assert results.keys() == {"task_revision.spec", "schedule.spec", "specialist.card"}
    assert all(leak.startswith("task ") for leak in results["task_revision.spec"])
    assert all(leak.startswith("schedule ") for leak in results["schedule.spec"])
    for place in ("run.outcome", "run.check_result", "event.data", "task.asks", "outbox.notice", "hold.source"):
        assert CANARY in database_rows(spilt)[place], place


def test_of_a_run_only_the_output_of_the_agent_and_its_check_has_secrets(spilt: Spilt) -> None:
    runs = spilt.site.state / "runs"
    files = [path for path in runs.rglob("*") if path.is_file()]
    leaking = {path.name for path in files if spilt.leaks(path.read_text(errors="replace"))}
    assert leaking == {"stdout.jsonl", "stderr.log"}
    others = [path for path in spilt.site.state.rglob("*") if path.is_file() and not path.is_relative_to(runs)]
    own = ("token", "claudomator.db", "claudomator.db-wal")
    assert [
        path.name
        for path in others
        if path.name not in own and "backup" not in str(path) and spilt.leaks(path.read_text(errors="replace"))
    ] == []


def test_neither_the_log_nor_error_files_nor_a_bundle_nor_commands_have_a_secret(spilt: Spilt) -> None:
    errors = "\n".join(path.read_text() for path in spilt.site.inbox.glob("*.error.txt"))
    for text in (spilt.site.log_text(), errors, bundled(spilt), shown_by_commands(spilt)):
        assert spilt.leaks(text) == []
    for text in (errors, bundled(spilt), shown_by_commands(spilt)):
        assert CANARY in text
    assert "[redacted]" in spilt.site.log_text()


def test_a_secret_that_is_planted_is_found(spilt: Spilt) -> None:
    for secret in spilt.secrets.values():
        for written in forms_of(secret).values():
            assert spilt.leaks(f"planted {html.escape(written)} there")


def test_a_reload_adds_what_is_known_and_forgets_nothing(site: Site) -> None:
    first, second = "first-agents-token-3Hf", "second-agents-token-8Wq"
    agent = {"kind": "command", "command": site.ledger.agent}
    site.configure(agents={"sh": {**agent, "env": {"MY_TOKEN": first}}})
    daemon = site.start().ready()

    def stored() -> str:
        daemon.client.hold("sh", HoldRequest(reason=f"{first} or {second}"))
        with closing(sqlite3.connect(f"file:{site.state / 'claudomator.db'}?mode=ro", uri=True)) as database:
            query = "SELECT data FROM event WHERE kind = 'hold' ORDER BY id DESC LIMIT 1"
            (data,) = database.execute(query).fetchone()
        return str(json.loads(data)["source"])

    assert stored() == f"[redacted] or {second}"
    site.configure(agents={"sh": {**agent, "env": {"MY_TOKEN": second}}})
    daemon.send(signal.SIGHUP)
    wait_until(lambda: "configuration_reloaded" in site.log_text(), "the reload")
    assert stored() == "[redacted] or [redacted]"
    site.configure(limits={"grace": second})
    daemon.send(signal.SIGHUP)
    wait_until(lambda: "configuration_refused" in site.log_text(), "the refusal")
    (check,) = (check for check in daemon.client.readiness().checks if check.name == "configuration")
    assert "[redacted]" in check.detail
    assert second not in check.detail + site.log_text()
