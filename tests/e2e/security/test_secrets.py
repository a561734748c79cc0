"""Secrets that agents print in every field they can are neither stored, shown nor sent, raw or encoded.

One daemon, every kind of secret it can know, and agents that know them all. Beside each secret stands a canary, which
is none: it has to be found wherever a secret could be, so that a look at the wrong place proves nothing.
"""

import base64
import html
import json
import re
import signal
import sqlite3
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest

from claudomator_py.domain.card import Card
from claudomator_py.domain.channel import NewChannel, NewMessage
from claudomator_py.domain.notice import DeliveryState
from claudomator_py.domain.views import HoldRequest, RejectRequest
from tests.e2e.harness import COMMAND, REPOSITORY, Daemon, Site, open_site, wait_until
from tests.e2e.scenarios_support import document, ended, in_state
from tests.e2e.warm import WarmStarter
from tests.patience import PATIENCE_S

CANARY = "canary-of-the-kitchen"
HOOK_PATH = "services/T0/B0/hook-path-8Jd2kQx"
OF_DAEMON = {
    "UNRELATED_API_KEY": "daemons-own-4Tn8vRb2",
    "HANDED_ON": "passed-on-7Hq2mXw9",
    "CLASSIFY_WITH": "classifiers-key-6Gy3",
    "SIGN_WITH": "signing-secret-9Lc5",
    "BUILD_DATABASE": "postgresql://me:database-pw-3Vf7@127.0.0.1/none",
}
OF_AGENT = "agents-token-5Zp1sWq8"
OF_TASK = 'task<pass>"word&-2Kx6'
OF_SCHEDULE = "schedules-key-1Bm9tYd4"
IN_REMOTE = "git-password-0Nr4"
"""In the URL of a remote: nobody has said that it is one."""

# Knows all secrets, and says them as the last word of its task tells it.
AGENT = r"""
import base64, json, os, sys
from pathlib import Path
from urllib.parse import quote

known = Path(sys.argv[1])
secrets = json.loads(known.read_text()) if known.exists() else []
forms = [*secrets, *(base64.b64encode(f"user:{one}".encode()).decode() for one in secrets), *map(quote, secrets)]
run_token = os.environ.get("CLAUDOMATOR_RUN_TOKEN", "")
forms += [run_token, base64.b64encode(f"user:{run_token}".encode()).decode(), "cmt_" + "Zk3Jx0vQ9y" * 4]
spill = f"CANARY {' '.join(forms)} https://me:git-password-0Nr4@host/repo.git"
if "--version" in sys.argv:
    print(spill, file=sys.stderr)
    sys.exit(1) if "--ill" in sys.argv else print("2.1.0 (Claude Code)")
    sys.exit()


def say(**event):
    print(json.dumps({"session_id": "0f1c1b9e-0000-4000-8000-000000000000", **event}), flush=True)


def result(**fields):
    say(**{"type": "result", "is_error": False, "subtype": "success", "result": spill, **fields})


how = sys.stdin.read().split("HOW: ")[-1].split()[0]
print(spill, file=sys.stderr)
say(type="system", subtype="init", model=spill[:60], tools=[spill])
call = {"type": "tool_use", "id": "1", "name": f"mcp__{spill[:80]}", "input": {"command": spill}}
say(type="assistant", message={"model": "m", "content": [{"type": "text", "text": spill}, call]})
output = {"type": "tool_result", "tool_use_id": "1", "content": spill}
say(type="user", message={"content": [output]})
if how == "asks":
    result(result=f"CLAUDOMATOR QUESTION: {spill}?")
elif how == "long":
    result(result="CLAUDOMATOR QUESTION: " + "x" * 3960 + f" {secrets[0]} and {spill}")
elif how == "denied":
    result(permission_denials=[{"tool_name": f"mcp__{one}", "tool_use_id": one, "tool_input": {"command": spill}}
                               for one in ("CANARY", *secrets)])
elif how == "fails":
    message = {"model": "<synthetic>", "content": [{"type": "text", "text": spill}]}
    say(type="assistant", message=message, error="unknown")
    result(is_error=True, result=spill, terminal_reason="api_error")
    sys.exit(1)
elif how == "limited":
    say(type="rate_limit_event", rate_limit_info={"status": "rejected", "resetsAt": 9999999999,
                                                  "rateLimitType": secrets[0]})
    result(is_error=True, result=f"You have hit your limit {spill}", terminal_reason="api_error")
    sys.exit(1)
else:
    result()
""".replace("CANARY", CANARY).replace("git-password-0Nr4", IN_REMOTE)


class _HookServer(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.told: list[str] = []
        self.answer = "no"


class _Hook(BaseHTTPRequestHandler):
    server: _HookServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.told.append(body)
        # What it answers is told as the reason of the failure.
        self.send_response(400, self.server.answer)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def hook() -> Iterator[_HookServer]:
    server = _HookServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Spilt:
    """The site after everything was said. secrets: by what they are; told: what the webhook was sent."""

    site: Site
    daemon: Daemon
    secrets: dict[str, str]
    told: list[str]

    def leaks(self, text: str, *, known_here: tuple[str, ...] = ()) -> list[str]:
        """The secrets in the text, with the form in which they are there. known_here: those that belong there."""
        readings = {text, html.unescape(text), text.replace('\\"', '"')}
        run_tokens = [f"run {found}" for found in _RUN_TOKEN.findall(text)]
        return run_tokens + [
            f"{name} {form}"
            for name, secret in self.secrets.items()
            if name not in known_here
            for form, written in _forms(secret).items()
            if any(written in reading for reading in readings)
        ]


# The signature of a run's token is all of it that is secret; in Base64 the prefix and the first of the run's id.
_RUN_TOKEN = re.compile("cm[rt]_[0-9A-Za-z-]{20,}|" + base64.b64encode(b"user:cmr_").decode()[:-1])


def _forms(secret: str) -> dict[str, str]:
    whole = base64.b64encode(f"user:{secret}".encode()).decode()
    return {"raw": secret, "in Base64": whole[8:-4], "in a URL": quote(secret), "cut": secret[: len(secret) - 4]}


@pytest.fixture(scope="module")
def spilt(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter) -> Iterator[Spilt]:
    """A daemon whose agents have said all they know, in every way they can."""
    root = tmp_path_factory.mktemp("spilt") / "site"
    with hook() as server, open_site(root, warm=warm) as site:
        url = f"http://127.0.0.1:{server.server_port}/{HOOK_PATH}"
        _configure(site)
        daemon = site.start(**OF_DAEMON, HOOK=url).ready()
        secrets = {
            "token": (site.state / "token").read_text().strip(),
            "daemon": OF_DAEMON["UNRELATED_API_KEY"],
            "passed on": OF_DAEMON["HANDED_ON"],
            "classifier": OF_DAEMON["CLASSIFY_WITH"],
            "signature": OF_DAEMON["SIGN_WITH"],
            "database": "database-pw-3Vf7",
            "webhook": HOOK_PATH,
            "agent": OF_AGENT,
            "task": OF_TASK,
            "remote": IN_REMOTE,
        }
        known = [one for name, one in secrets.items() if name not in ("remote", "task")]
        (root / "everywhere.json").write_text(json.dumps(known))
        # A task's own variables are known where that task is concerned, and only its runs can say them.
        (root / "known.json").write_text(json.dumps([*known, OF_TASK]))
        _drop(site, root)
        _settle(site, daemon)
        yield Spilt(site, daemon, {**secrets, "schedule": OF_SCHEDULE}, server.told)


def _configure(site: Site) -> None:
    (site.root / "agent.py").write_text(AGENT)
    (site.root / "tell.py").write_text(
        "import sys\nwith open(sys.argv[1], 'a') as told: told.write(sys.stdin.read() + '\\n')\n"
        "sys.exit(open(sys.argv[2]).read())\n"
    )
    program = [sys.executable, str(site.root / "agent.py"), str(site.root / "known.json")]
    claude = {"kind": "claude", "command": program, "pass_env": ["HANDED_ON"], "env": {"MY_TOKEN": OF_AGENT}}
    spill = f"{CANARY} $(cat {site.root / 'known.json'})"
    site.configure(
        agents={
            "claude": {**claude, "max_concurrent": 4},
            "limited": {**claude, "account": "other", "auto_select": False},
            "plain": {"kind": "command", "command": ["sh", "-c", f'echo "{spill}"; echo "{spill}" >&2; exit 1']},
            "ill": {**claude, "command": [*program, "--ill"], "auto_select": False},
        },
        classifier={
            "kind": "openai",
            "model": "m",
            "base_url": "http://127.0.0.1:9/v1",
            "api_key_env": "CLASSIFY_WITH",
        },
        notify={
            "hook": {"url_env": "HOOK", "secret_env": "SIGN_WITH", "events": _EVENTS},
            "program": {
                "kind": "command",
                "command": [
                    *(sys.executable, str(site.root / "tell.py")),
                    *(str(site.root / "told"), str(site.root / "everywhere.json")),
                ],
                "events": _EVENTS,
            },
        },
    )


_EVENTS = ["needs_input", "failed", "completed", "cancelled", "agent_held", "limited"]


def _drop(site: Site, root: Path) -> None:
    (root / "check-fails.sh").write_text(f'echo "{CANARY}"; cat {root / "known.json"} >&2; exit 3')
    own: dict[str, object] = {"env": {"MY_PASSWORD": OF_TASK}, "retry": {"max_attempts": 1}}
    for name in ("tells", "asks", "long", "denied", "fails"):
        # The path is the file's identity, so it is stored as it is, and shown without.
        stem = f"{name}-{OF_DAEMON['UNRELATED_API_KEY']}" if name == "tells" else name
        site.drop(f"{stem}.yaml", document(name, f"HOW: {name}", agent="claude", **own))
    site.drop("limited.yaml", document("limited", "HOW: limited", agent="limited", on_limit="fail", **own))
    check = f"sh {root / 'check-fails.sh'}"
    site.drop("checked.yaml", document("checked", "HOW: tells", agent="claude", check=[check], **own))
    site.drop("plain.yaml", document("plain", agent="plain", **own))
    times = {"schedule": "0 3 1 1 *", "env": {"NIGHT_KEY": OF_SCHEDULE}}
    site.drop("yearly.yaml", document("yearly", "HOW: tells", agent="claude", **times))


def _settle(site: Site, daemon: Daemon) -> None:
    known = json.loads((site.root / "everywhere.json").read_text())
    for name in ("tells", "fails", "limited", "checked", "plain"):
        ended(daemon, name)
    for name in ("asks", "long", "denied"):
        in_state(daemon, name, "NEEDS_INPUT")
    daemon.client.reject("long", RejectRequest(reason=f"{CANARY} no, not {known[0]}"))
    daemon.client.hold("plain", HoldRequest(reason=f"{CANARY} {known[1]}"))
    told = f"{CANARY} {known[1]}"
    leaky = {"id": "leaky", "description": told, "skills": [{"id": "leaks", "name": "Leaks", "examples": [told]}]}
    daemon.client.register_specialist(Card.model_validate(leaky))
    daemon.client.drain(reason=f"{CANARY} {known[2]}")
    for place, secret in enumerate(known):
        site.drop(f"refused{place}.yaml", json.dumps({"instructions": "x", "timeout": f"{CANARY} {secret}"}))
    wait_until(lambda: len(daemon.client.status().inbox) == len(known), "the refused files")
    # A notice that was delivered a hundred times is no better proof than one that was tried once.
    wait_until(lambda: daemon.client.notifications(DeliveryState.PENDING).items[:1] or None, "a delivery that failed")
    wait_until(lambda: _tried(daemon), "every notice to be tried")


def _tried(daemon: Daemon) -> bool:
    found = daemon.client.notifications(limit=200).items
    return len(found) >= 2 * len(("tells", "asks", "denied", "fails")) and all(one.attempts for one in found)


def api_answers(spilt: Spilt) -> dict[str, str]:
    """Every GET of the API's document, of every task, run and schedule, by its path."""
    client, site = spilt.daemon.client, spilt.site
    runs = [run.id for task in client.all_tasks() for run in client.runs(task.id)]
    channel = client.create_channel(NewChannel(name="kitchen")).id
    values = {
        "channel": [channel],
        "message": [str(client.post_message(channel, NewMessage(content="hello")).id)],
        "decision_id": [one.id for one in client.decisions(limit=200).items],
        "ref": [task.id for task in client.all_tasks()],
        "run_id": runs,
        "name": ["yearly"],
        "specialist_id": ["leaky"],
    }
    assert site.endpoint is not None
    headers = {"Authorization": f"Bearer {spilt.secrets['token']}"}
    found: dict[str, str] = {}
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
                    found[asked + query] = answer.text
        newest = max(one["id"] for one in json.loads(found["/v1/events?limit=500"])["items"])
        with http.stream("GET", "/v1/events?after=0", headers={"Accept": "text/event-stream"}) as stream:
            found["stream"] = ""
            for line in stream.iter_lines():
                found["stream"] += f"{line}\n"
                if line == f"id: {newest}":
                    break
        found["refusal"] = http.post("/v1/tasks/tells/approve", json={}).text
    return found


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
    """Every page that a link leads to, from the overview on."""
    assert spilt.site.endpoint is not None
    found: dict[str, str] = {}
    waiting = ["/"]
    headers = {"Authorization": f"Bearer {spilt.secrets['token']}", "Accept": "text/html"}
    with httpx.Client(base_url=spilt.site.endpoint, headers=headers, timeout=PATIENCE_S) as http:
        while waiting:
            path = waiting.pop()
            answer = http.get(path)
            found[path] = answer.text
            links = {html.unescape(link).partition("#")[0] for link in re.findall(r'href="(/[^"]*)"', answer.text)}
            waiting += [link for link in links - found.keys() - set(waiting) if _is_page(link)]
    return found


def _is_page(link: str) -> bool:
    return not urlsplit(link).path.startswith(("/static/", "/v1/", "/logout"))


def database_rows(spilt: Spilt) -> dict[str, str]:
    """Every row of a backup, by table and column."""
    path = spilt.daemon.client.backup().path
    found: dict[str, str] = {}
    with closing(sqlite3.connect(path)) as backup:
        tables = [name for (name,) in backup.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            rows = backup.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in rows.description]
            for row in rows:
                for name, value in zip(names, row, strict=True):
                    found[f"{table}.{name}"] = found.get(f"{table}.{name}", "") + f"{value}\n"
    return found


def bundled(spilt: Spilt) -> str:
    """All that a bundle for a bug report holds, with the texts of people and agents."""
    site = spilt.site
    path = site.root / "report.tar.gz"
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(site.root / "home"), "PYTHONPATH": str(REPOSITORY)}
    arguments = ("doctor", "--config", str(site.config_file), "--bundle", str(path), "--include-tasks")
    subprocess.run([*COMMAND, *arguments], env=variables, capture_output=True, timeout=PATIENCE_S, check=False)
    with tarfile.open(path) as archive:
        files = [archive.extractfile(member) for member in archive.getmembers()]
        return "\n".join(file.read().decode() for file in files if file is not None)


def shown_by_commands(spilt: Spilt) -> str:
    """What the command line says of everything."""
    site = spilt.site
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(site.root / "home"), "PYTHONPATH": str(REPOSITORY)}
    said = ""
    for words in (
        ["status"],
        ["why", "fails"],
        ["show", "denied"],
        ["schedules", "-o", "json"],
        ["show", "tells", "-o", "json"],
    ):
        command = [*COMMAND, *words, "--config", str(site.config_file)]
        said += subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        ).stdout
    return said


def test_no_answer_of_the_api_has_a_secret(spilt: Spilt) -> None:
    found = api_answers(spilt)
    assert {path: leaks for path, text in found.items() if (leaks := spilt.leaks(text))} == {}
    told = [path for path, text in found.items() if CANARY in text]
    for part in ("/why", "/runs", "/log?view=text", "/log?view=structured", "/v1/status", "/v1/events", "/v1/inbox"):
        assert any(part in path for path in told), part
    assert {"/v1/agents", "/v1/drain", "/v1/notifications?limit=200", "stream"} <= set(told)


def test_no_page_has_a_secret(spilt: Spilt) -> None:
    found = pages(spilt)
    assert {path: leaks for path, text in found.items() if (leaks := spilt.leaks(text))} == {}
    assert sum(CANARY in text for text in found.values()) > len(("tells", "asks", "denied", "fails", "checked"))


def test_no_notice_has_a_secret(spilt: Spilt) -> None:
    for notices in ("\n".join(spilt.told), (spilt.site.root / "told").read_text()):
        assert spilt.leaks(notices) == []
        for kind in ("needs_input", "failed", "completed", "limited"):
            assert any(CANARY in line for line in notices.splitlines() if f'"kind":"{kind}"' in line.replace(" ", ""))


def test_the_database_has_only_what_a_run_needs_as_it_was_given(spilt: Spilt) -> None:
    found = {place: leaks for place, text in database_rows(spilt).items() if (leaks := spilt.leaks(text))}
    paths = {"task.file_path", "inbox_document.path", "inbox_file.path"}
    assert all(leak.startswith("daemon ") for path in paths for leak in found.pop(path))
    assert found.keys() == {"task_revision.spec", "schedule.spec", "specialist.card"}
    assert all(leak.startswith("task ") for leak in found["task_revision.spec"])
    assert all(leak.startswith("schedule ") for leak in found["schedule.spec"])
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
        for written in _forms(secret).values():
            assert spilt.leaks(f"planted {html.escape(written)} there")


def test_a_reload_adds_what_is_known_and_forgets_nothing(site: Site) -> None:
    first, second = "first-agents-token-3Hf", "second-agents-token-8Wq"
    command = ["sh", str(site.root / "agent.sh"), str(site.ledger_file)]
    agent = {"kind": "command", "command": command}
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
    (check,) = (one for one in daemon.client.readiness().checks if one.name == "configuration")
    assert "[redacted]" in check.detail
    assert second not in check.detail + site.log_text()
