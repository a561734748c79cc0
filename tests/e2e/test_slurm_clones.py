"""Repositories that the nodes of a cluster do not see: a job clones one over git's own protocol, and what it has done
there comes home, whatever happens to the address meanwhile."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from claudomator_py.domain.task import TaskSpec
from tests.e2e.daemon import Daemon
from tests.e2e.on_cluster import on_cluster, reaching, start, starts
from tests.e2e.repositories import COMMIT, git, repository, spec
from tests.e2e.scenarios_support import document, ended, last_run, why
from tests.e2e.site import Site
from tests.patience import wait_until
from tests.slurm import ask, free_ports

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("slurm_cluster")]


class Server:
    """git's own, for the repositories in a folder."""

    def __init__(self, folder: Path) -> None:
        self.pid_file = folder / "git-daemon.pid"
        (port,) = free_ports(1)
        self.address = f"git://127.0.0.1:{port}"
        options = ["--export-all", "--enable=receive-pack", "--reuseaddr", "--detach", f"--pid-file={self.pid_file}"]
        place = [f"--base-path={folder}", "--listen=127.0.0.1", f"--port={port}"]
        subprocess.run(["git", "daemon", *options, *place], env={"PATH": os.environ["PATH"]}, check=True)
        wait_until(self.pid_file.exists)

    def stop(self) -> None:
        with suppress(OSError, ValueError):
            os.kill(int(self.pid_file.read_text()), signal.SIGTERM)


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    """Serves ``site.root/shop``, which is not on the nodes' file systems as far as the daemon knows."""
    repository(site.root / "shop")
    present = Server(site.root)
    yield present
    present.stop()


class Backend(BaseHTTPRequestHandler):
    """git's own way of serving by HTTP, for the repositories in a folder."""

    folder: Path

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        variables = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_USER": "ada",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
        }
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = subprocess.run(["git", "http-backend"], input=body, env=variables, stdout=subprocess.PIPE, check=True)
        head, _, content = answer.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in {**fields, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(params=["git", "http"])
def forge(request: pytest.FixtureRequest, site: Site) -> Iterator[str]:
    """The address of ``forge/src``, in which ``shop`` has what the repository here has had a while ago."""
    repository(site.root / "shop")
    there = site.root / "forge" / "src" / "shop"
    git(site.root, "clone", "-q", "--bare", str(site.root / "shop"), str(there))
    git(there, "config", "http.receivepack", "true")
    if request.param == "git":
        present = Server(there.parent.parent)
        yield f"{present.address}/src"
        present.stop()
        return
    handler = type("Handler", (Backend,), {"folder": there.parent.parent})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/src"
        server.shutdown()


def begin(site: Site, address: str, *places: str, simulated: Sequence[str] = ("local",)) -> Daemon:
    scratch = site.root / "node"
    scratch.mkdir(exist_ok=True)
    host = {"clone": {str(site.root): address}, "scratch": str(scratch)}
    on_cluster(site, *places, host=host, simulated=simulated)
    return start(site)


def shop_task(site: Site, name: str, does: str, **more: object) -> TaskSpec:
    return spec(site.root / "shop", name, does, agent={"type": "sh"}, **more)


def left_on_node(site: Site) -> list[str]:
    return [path.name for folder in (site.root / "node").iterdir() for path in folder.iterdir()]


def test_what_is_done_in_a_clone_comes_home_and_is_gone_on_with(site: Site, server: Server) -> None:
    shop, daemon = site.root / "shop", begin(site, server.address)
    does = f"pwd > {site.work}/where; echo more >> readme; {COMMIT} -a; echo loose > loose; mkdir in; echo a > in/b"
    daemon.client.submit(shop_task(site, "first", does, check=["test -f loose", "grep -q more readme"]))
    first = ended(daemon, "first")
    assert first.state == "COMPLETED", first.reason_text
    assert (site.work / "where").read_text().startswith(f"{site.root}/node/claudomator-{os.geteuid()}/shop-first-")
    assert left_on_node(site) == []
    assert git(shop, "for-each-ref", "refs/claudomator") == ""
    assert git(shop, "log", "--format=%s", f"main..{first.branch}").splitlines()[1:] == ["work"]
    assert last_run(daemon, "first").host == "cluster"
    shown = site.command("diff", "first", **reaching()).stdout
    assert all(words in shown for words in ("+more", "loose", "in/b"))
    follows = shop_task(site, "second", "cat loose in/b > both; git rm -q loose", continues="first")
    daemon.client.submit(follows.model_copy(update={"working_dir": None, "isolation": type(follows.isolation).NONE}))
    second = ended(daemon, "second")
    assert (second.state, second.branch) == ("COMPLETED", first.branch), second.reason_text
    assert site.command("merge", "second", **reaching()).returncode == 0
    assert (shop / "both").read_text() == "loose\na\n"
    assert not (shop / "loose").exists()
    assert git(shop, "status", "--porcelain") == ""
    assert set(starts(site).values()) == {1}


def test_a_forge_that_has_only_what_was_pushed_there_is_an_address_too(site: Site, forge: str) -> None:
    shop, daemon = site.root / "shop", begin(site, forge)
    there = site.root / "forge" / "src" / "shop"
    before = git(there, "for-each-ref")
    (shop / "later").write_text("only here\n")
    git(shop, "add", "later")
    git(shop, "commit", "-q", "-m", "later")
    does = f"cat later > seen; {COMMIT} --allow-empty; echo loose > loose"
    daemon.client.submit(shop_task(site, "first", does, check=["test -f loose", "test -f seen"]))
    first = ended(daemon, "first")
    assert first.state == "COMPLETED", first.reason_text
    assert last_run(daemon, "first").host == "cluster"
    assert git(shop, "show", f"{first.branch}:seen") == "only here"
    assert git(shop, "show", f"{first.branch}:loose") == "loose"
    daemon.client.submit(shop_task(site, "nothing", "true", check=["test -f later"]))
    assert ended(daemon, "nothing").state == "COMPLETED"
    assert site.command("merge", "first", **reaching()).returncode == 0
    assert (shop / "loose").read_text() == "loose\n"
    # What runs have had there for their way is gone.
    assert git(there, "for-each-ref") == before
    assert left_on_node(site) == []
    assert set(starts(site).values()) == {1}


def test_a_run_that_never_begins_or_is_lost_leaves_nothing_at_the_forge(site: Site, forge: str) -> None:
    shop, daemon = site.root / "shop", begin(site, forge)
    there = site.root / "forge" / "src" / "shop"
    before = git(there, "for-each-ref")
    (shop / "later").write_text("only here\n")
    git(shop, "add", "later")
    git(shop, "commit", "-q", "-m", "later")
    daemon.client.submit(shop_task(site, "lost", "kill -9 $PPID; sleep 60", retry={"max_attempts": 1}))
    assert ended(daemon, "lost").reason == "lost"
    wait_until(lambda: git(there, "for-each-ref") == before, "the end of its reference")
    ask("scontrol", "update", "PartitionName=agents", "State=DOWN")
    try:
        daemon.client.submit(shop_task(site, "never", "true"))
        wait_until(lambda: "refs/claudomator/runs/" in git(there, "for-each-ref"), "its reference")
        wait_until(lambda: "cl-" in ask("squeue", "--noheader", "--format=%j"), "its job")
        daemon.client.cancel("never")
        assert ended(daemon, "never").state == "CANCELLED"
        wait_until(lambda: git(there, "for-each-ref") == before, "the end of its reference")
    finally:
        ask("scontrol", "update", "PartitionName=agents", "State=UP")
    assert starts(site).total() == 1


def test_a_forge_that_takes_nothing_is_named(site: Site, forge: str) -> None:
    hook = site.root / "forge" / "src" / "shop" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho nobody pushes here >&2\nexit 1\n")
    hook.chmod(0o755)
    daemon = begin(site, forge)
    daemon.client.submit(shop_task(site, "refused", "true", retry={"max_attempts": 1}))
    refused = ended(daemon, "refused")
    assert (refused.state, refused.reason) == ("FAILED", "clone_failed")
    assert all(words in str(refused.reason_text) for words in (forge, "could not be pushed", "nobody pushes here"))
    assert starts(site).total() == 0


def test_a_push_that_is_refused_loses_nothing_and_says_so(site: Site, server: Server) -> None:
    shop, daemon = site.root / "shop", begin(site, server.address)
    hook = shop / ".git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho nobody pushes here >&2\nexit 1\n")
    hook.chmod(0o755)
    daemon.client.submit(shop_task(site, "refused", "echo kept > kept"))
    refused = ended(daemon, "refused")
    assert (refused.state, refused.reason) == ("FAILED", "push_failed")
    run = last_run(daemon, "refused")
    bundle = site.root / "shared" / run.id / "work.bundle"
    assert run.outcome is not None
    assert "nobody pushes here" in str(run.outcome.detail)
    assert str(bundle) in str(run.outcome.detail)
    git(shop, "fetch", "-q", str(bundle), "refs/heads/work")
    assert git(shop, "show", "FETCH_HEAD:kept") == git(shop, "show", f"{refused.branch}:kept") == "kept"
    assert left_on_node(site) == []


@pytest.mark.slow
def test_an_address_that_goes_away_during_a_run_loses_nothing(site: Site, server: Server) -> None:
    daemon = begin(site, server.address)
    does, once = f"kill $(cat {server.pid_file}); sleep 0.5; echo kept > kept; exit 7", {"max_attempts": 1}
    daemon.client.submit(shop_task(site, "gone", does, retry=once))
    gone = ended(daemon, "gone")
    # What the agent itself ended with comes first.
    assert (gone.state, gone.reason) == ("FAILED", "agent_error")
    assert git(site.root / "shop", "show", f"{gone.branch}:kept") == "kept"
    daemon.client.submit(shop_task(site, "never", "true", retry=once))
    never = ended(daemon, "never")
    assert (never.state, never.reason) == ("FAILED", "clone_failed")
    assert server.address in str(never.reason_text)
    assert starts(site).total() == 1


@pytest.mark.slow
@pytest.mark.needs_root
def test_a_full_node_loses_nothing_that_was_committed(site: Site, server: Server) -> None:
    node = site.root / "node"
    node.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(node)], check=True)
    try:
        daemon = begin(site, server.address)
        does = f"echo kept > kept; git add kept; {COMMIT}; dd if=/dev/zero of=large bs=1M count=64 || exit 1"
        daemon.client.submit(shop_task(site, "full", does, retry={"max_attempts": 1}))
        full = ended(daemon, "full")
        assert (full.state, full.reason) == ("FAILED", "disk_full"), full.reason_text
        assert git(site.root / "shop", "show", f"{full.branch}:kept") == "kept"
        assert left_on_node(site) == []
    finally:
        subprocess.run(["umount", "-l", str(node)], check=False)


@pytest.mark.slow
def test_a_conversation_goes_on_where_it_is_or_begins_afresh_and_says_so(site: Site, server: Server) -> None:
    daemon = begin(site, server.address, "local", "cluster", simulated=["local", "cluster"])
    kind = {"agent": {"type": "simulated"}}
    dig = spec(site.root / "shop", "dig", "nothing", **kind, host="cluster")
    daemon.client.submit(dig.model_copy(update={"instructions": "Dig.\nsimulate: text=dug"}))
    assert ended(daemon, "dig").state == "COMPLETED", why(daemon, "dig")
    again = {"agent": "simulated", "continues": "dig"}
    site.drop("fill.yaml", document(None, "Fill it.", "simulate: text=filled", **again))
    assert ended(daemon, "fill").state == "COMPLETED", why(daemon, "fill")
    # This agent keeps its conversations in the folder, which was another clone: so it says that it knows none.
    first, (asked, second) = last_run(daemon, "dig"), daemon.client.runs("fill")
    assert (asked.resumes, asked.host) == (first.id, "cluster")
    assert (second.resumes, second.host) == (None, "cluster")
    site.command("drain", "--host", "cluster", "--reason", "a new disk", **reaching())
    site.drop("sow.yaml", document(None, "Sow.", "simulate: text=sown", agent="simulated", continues="fill"))
    assert ended(daemon, "sow").state == "COMPLETED", why(daemon, "sow")
    (third,) = daemon.client.runs("sow")
    assert (third.resumes, third.host) == (None, "local")
    assert "cluster, which has it, takes no runs of the task at present" in why(daemon, "sow")
    assert "filled" in (site.state / "runs" / third.id / "prompt.md").read_text()
