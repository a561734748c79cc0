"""A site whose agents know every kind of secret that its daemon can know, and say them in every field they can.

Beside each secret stands a canary, which is none: it has to be found wherever a secret could be, so that a look at the
wrong place proves nothing.
"""

import base64
import html
import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from claudomator_py.domain.card import Card
from claudomator_py.domain.notice import DeliveryState
from claudomator_py.domain.requests import HoldRequest
from claudomator_py.resources.tasks import RejectRequest
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

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
        run_tokens = [f"run {result}" for result in _RUN_TOKEN.findall(text)]
        return run_tokens + [
            f"{name} {form}"
            for name, secret in self.secrets.items()
            if name not in known_here
            for form, written in forms_of(secret).items()
            if any(written in reading for reading in readings)
        ]


# The signature of a run's token is all of it that is secret; in Base64 the prefix and the first of the run's id.
_RUN_TOKEN = re.compile("cm[rt]_[0-9A-Za-z-]{20,}|" + base64.b64encode(b"user:cmr_").decode()[:-1])


def forms_of(secret: str) -> dict[str, str]:
    """How a secret could be written, by the name of the form."""
    whole = base64.b64encode(f"user:{secret}".encode()).decode()
    return {"raw": secret, "in Base64": whole[8:-4], "in a URL": quote(secret), "cut": secret[: len(secret) - 4]}


@contextmanager
def leaky_site(root: Path, warm: WarmStarter) -> Iterator[Spilt]:
    """A daemon whose agents have said all they know, in every way they can."""
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
        known = [entry for name, entry in secrets.items() if name not in ("remote", "task")]
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
    text = f"{CANARY} {known[1]}"
    leaky = {"id": "leaky", "description": text, "skills": [{"id": "leaks", "name": "Leaks", "examples": [text]}]}
    daemon.client.register_specialist(Card.model_validate(leaky))
    daemon.client.drain(reason=f"{CANARY} {known[2]}")
    for place, secret in enumerate(known):
        site.drop(f"refused{place}.yaml", json.dumps({"instructions": "x", "timeout": f"{CANARY} {secret}"}))
    wait_until(lambda: len(daemon.client.status().inbox) == len(known), "the refused files")
    # A notice that was delivered a hundred times is no better proof than one that was tried once.
    wait_until(lambda: daemon.client.notifications(DeliveryState.PENDING).items[:1] or None, "a delivery that failed")
    wait_until(lambda: _tried(daemon), "every notice to be tried")


def _tried(daemon: Daemon) -> bool:
    deliveries = daemon.client.notifications(limit=200).items
    return len(deliveries) >= 2 * len(("tells", "asks", "denied", "fails")) and all(
        delivery.attempts for delivery in deliveries
    )
