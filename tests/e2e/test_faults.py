"""What an operator can rely on when the machine misbehaves: locks, disks, signals, reused pids, lost folders."""

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from claudomator_py.client import ServiceProblem
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.shape import ProblemDetails
from claudomator_py.hosts.shim import procfs
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import (
    ENDED,
    agent_file,
    document,
    ended,
    in_state,
    kill_run,
    shim_file,
    started,
    stranger,
    why,
)
from tests.e2e.site import Site, open_site
from tests.fakes.steps import from_document
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

NAP = "do: until [ -e ../../../../go ]; do sleep 0.05; done"
"""Works until the site's folder has a file ``go``: a scratch folder is four levels below it."""
FOREVER = "do: while :; do sleep 0.1; done"


def checks(daemon: Daemon) -> dict[str, str]:
    """What readiness complains of, by name: detail and remedy."""
    return {check.name: f"{check.detail}; {check.remedy}" for check in daemon.client.readiness().checks if not check.ok}


def test_a_second_daemon_on_the_same_state_names_the_first(site: Site) -> None:
    first = site.start().ready()

    second = site.start()

    assert second.wait() == 1
    assert f"another daemon (pid {first.pid}) uses {site.state}; stop it first" in site.log_text()
    wait_until(lambda: first.client.readiness().ready, "the first to be ready")


@pytest.mark.parametrize("forged", ["another boot", "reused pid", "same process"])
def test_a_foreign_process_in_the_shims_place_is_never_signalled(site: Site, forged: str) -> None:
    daemon = site.start().ready()
    site.drop("long.yaml", document(None, FOREVER))
    run_id = started(site)[0]
    in_state(daemon, "long", "RUNNING")
    daemon.kill()
    kill_run(site, run_id)

    with stranger() as process:
        result = procfs.read(process.pid)
        assert result is not None
        lies: dict[str, dict[str, object]] = {
            "another boot": {"boot_id": "00000000-0000-0000-0000-000000000000", "start_time": result.start},
            "reused pid": {"start_time": result.start - 1},
            "same process": {"start_time": result.start},
        }
        for file in (shim_file(site, run_id), agent_file(site, run_id)):
            if file.name == "shim.json" or forged != "same process":
                file.write_text(json.dumps({**json.loads(file.read_text()), "pid": process.pid, **lies[forged]}))
        daemon = site.start().ready()
        task = ended(daemon, "long")

        assert (task.state, task.reason) == ("FAILED", "lost")
        assert process.poll() is None
    assert daemon.client.runs("long")[0].exit_code is None
    assert daemon.stop() == 0
    site.no_processes()


def test_a_locked_database_is_said_and_outlived(site: Site) -> None:
    daemon = site.start().ready()
    with closing(sqlite3.connect(site.state / "claudomator.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ServiceProblem) as refused:
            daemon.client.submit(from_document({"name": "refused", "instructions": "do: true"}))
        site.drop("dropped.yaml", document(None, "do: true"))
        complaint = wait_until(lambda: checks(daemon).get("store"), "readiness to complain")
        other.execute("ROLLBACK")

    problem = refused.value.details
    assert problem.status == 503
    assert "locked by another process" in problem.detail
    assert "fuser" in problem.remedy
    assert "locked by another process" in complaint
    assert ended(daemon, "dropped", 30).state == "COMPLETED"
    wait_until(lambda: daemon.client.readiness().ready, "readiness")
    assert [task.name for task in daemon.client.all_tasks()] == ["dropped"]


@pytest.fixture
def small_disk(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    """A site whose state folder is a disk of its own, of a few megabytes."""
    with open_site(tmp_path / "site", warm=warm, new=True) as site:
        site.state.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", site.state], capture_output=True, text=True, check=False
        )
        if mounted.returncode != 0:
            pytest.skip(f"a small disk needs the right to mount one: {mounted.stderr.strip()}")
        try:
            yield site
            site.close()
        finally:
            subprocess.run(["umount", "-l", site.state], check=True)


def whole(daemon: Daemon, count: int) -> dict[str, StateName] | None:
    """The states of the tasks by name, once there are so many and all have ended."""
    states = {task.name: task.state for task in daemon.client.all_tasks()}
    return states if len(states) == count and set(states.values()) <= set(ENDED) else None


def fill(folder: Path) -> Path:
    """Take all the room that there is."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        block = b"\0" * 4096
        try:
            while True:
                file.write(block)
        except OSError:
            return filler


def submit_until_refused(daemon: Daemon) -> tuple[list[str], ProblemDetails]:
    """Some tasks may still fit into what the journal has reserved; their names, and the refusal of the next."""
    accepted: list[str] = []
    while True:
        name = f"api-{len(accepted)}"
        try:
            daemon.client.submit(from_document({"name": name, "instructions": "x" * 100_000, "priority": "low"}))
        except ServiceProblem as refused:
            return accepted, refused.details
        accepted.append(name)


@pytest.mark.needs_root
def test_a_full_disk_loses_no_task(small_disk: Site) -> None:
    site = small_disk
    daemon = site.start().ready()
    site.drop("before.yaml", document(None, "do: true"))
    ended(daemon, "before")
    # Its end may find no room to be written in: it is tried again then, after a minute by default.
    site.drop("running.yaml", document(None, NAP, retry={"backoff": "100ms"}))
    in_state(daemon, "running", "RUNNING")

    filler = fill(site.state)
    (site.root / "go").touch()
    names = [f"during-{number}" for number in range(20)]
    for name in names:
        site.drop(f"{name}.yaml", document(None, "do: true"))
    complaint = wait_until(lambda: checks(daemon).get("disk"), "readiness to complain")
    assert "nothing is started below 1MiB; make room there" in complaint
    accepted, refusal = submit_until_refused(daemon)
    names += accepted
    assert refusal.status == 503
    assert "Make room" in refusal.remedy
    assert all(task.name in ("before", "running") or task.state == "QUEUED" for task in daemon.client.all_tasks())

    filler.unlink()
    names += ["before", "running"]
    tasks = wait_until(lambda: whole(daemon, len(names)), "all tasks to be taken and done")
    assert tasks == dict.fromkeys(names, "COMPLETED")
    wait_until(lambda: daemon.client.readiness().ready, "readiness")
    # What went on failing is said once, and was not tried as fast as it failed.
    assert site.log_text().count("writing to the database fails") <= 3
    assert site.log_text().count("tick_not_completed") <= 3


@pytest.mark.needs_root
def test_a_read_only_state_folder_is_said_at_the_start(small_disk: Site) -> None:
    site = small_disk
    daemon = site.start().ready()
    assert daemon.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", site.state], check=True)

    answer = site.command("serve")
    assert answer.returncode == 1
    assert "ead-only" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_run_survives_the_daemon_and_is_adopted_by_the_next(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("nap.yaml", document(None, NAP))
    site.drop("later.yaml", document(None, "do: true", depends_on=["nap"]))
    run_id = started(site)[0]
    in_state(daemon, "nap", "RUNNING")

    assert daemon.stop() == 0
    assert site.endpoint is None
    assert "runs continue without the daemon" in site.log_text()
    (site.root / "go").touch()
    wait_until(lambda: (site.state / "runs" / run_id / "exit.json").exists(), "the run's end without a daemon")

    daemon = site.start().ready()
    assert ended(daemon, "later").state == "COMPLETED"
    assert [run.id for run in daemon.client.runs("nap")] == [run_id]
    assert [entry.what for entry in site.ledger.entries()] == ["start", "end", "start", "end"]


def test_a_second_signal_ends_the_daemon_at_once(site: Site) -> None:
    daemon = site.start().ready()
    # A request in hand, whose rest never comes, keeps the first signal from being the end for some seconds.
    address = daemon.client.base_url.removeprefix("http://")
    token = (site.state / "token").read_text().strip()
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as request:
        head = f"POST /v1/tasks HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n"
        length = "Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
        request.sendall((head + length).encode())
        assert b"100 Continue" in request.recv(1_000)

        os.kill(daemon.pid, signal.SIGTERM)
        wait_until(lambda: "stopping" in site.log_text(), "the first signal to be heard")
        os.kill(daemon.pid, signal.SIGTERM)

        assert daemon.wait() == 1
    assert site.endpoint is None, "who stopped it is not told that it was killed"
    again = site.start().ready()
    wait_until(lambda: again.client.readiness().ready, "the next to be ready")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("between_s", [0.0, 0.01, 0.03, 0.06, 0.1])
def test_two_signals_one_after_the_other_look_like_no_kill(site: Site, number: int, between_s: float) -> None:
    daemon = site.start().ready()
    os.kill(daemon.pid, number)
    time.sleep(between_s)  # whatever it is doing then: stopping, closing its database, leaving the interpreter
    with contextlib.suppress(ProcessLookupError):
        os.kill(daemon.pid, number)
    assert daemon.wait() in (0, 1)
    assert site.endpoint is None
    assert "Traceback" not in site.log_text()


def remove(folder: Path) -> None:
    """Whatever is still written into it meanwhile."""

    def gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    wait_until(gone, f"{folder} to be gone")


def test_a_removed_state_folder_ends_the_daemon_with_a_word(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("nap.yaml", document(None, FOREVER))
    started(site)
    in_state(daemon, "nap", "RUNNING")
    assert len(site.processes()) > 1

    remove(site.state)

    assert daemon.wait() == 1
    site.no_processes()
    assert f"the state folder {site.state} was removed or exchanged while it was in use; put it back" in site.log_text()
    assert "Traceback" not in site.log_text()


@pytest.mark.parametrize("check", [None, "sleep 600"])
def test_a_run_whose_directory_is_removed_is_lost_and_leaves_nothing(site: Site, check: str | None) -> None:
    daemon = site.start().ready()
    if check is None:
        site.drop("victim.yaml", document(None, FOREVER))
    else:
        site.drop("victim.yaml", document(None, "do: true", check=[check], retry={"max_attempts": 1}))
    site.drop("other.yaml", document(None, NAP))
    started(site, 2)
    wait_until(lambda: daemon.client.task("victim").phase == ("running" if check is None else "checking"), "its phase")
    (run,) = daemon.client.runs("victim")

    remove(site.state / "runs" / run.id)

    task = ended(daemon, "victim")
    assert (task.state, task.reason) == ("FAILED", "lost" if check is None else "check_failed")
    assert "its run directory was removed" in (task.reason_text or "")
    assert daemon.client.task("other").state == "RUNNING"
    (site.root / "go").touch()
    assert ended(daemon, "other").state == "COMPLETED"
    assert daemon.stop() == 0
    site.no_processes()


def test_output_that_is_removed_while_a_run_writes_is_not_lost(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("talks.yaml", document(None, "simulate: delay=4s text=done outcome=success", agent="simulated"))
    in_state(daemon, "talks", "RUNNING")
    (run,) = daemon.client.runs("talks")
    output = site.state / "runs" / run.id / "stdout.jsonl"
    wait_until(lambda: output.exists() and output.stat().st_size, "the first line")

    output.unlink()

    task = ended(daemon, "talks")
    assert (task.state, task.result_text) == ("COMPLETED", "[simulated] done")
    assert "done" in "".join(daemon.client.log_text(run.id))


def test_a_taken_port_is_said_with_a_way_out(site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        site.configure(http={"listen": address})

        assert site.start().wait() == 1
    assert f"cannot listen on {address} (Address already in use); choose another http.listen" in site.log_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "inbox:\n  paths: [tasks]\nconcurency: {total: 2}\n",
            ":3: concurency: is not a known key; did you mean `concurrency`?",
        ),
        ("agents:\n  lint:\n    kind: command\n", ":2: agents.lint.command: is missing; write [program, argument]"),
        ("http:\n  listen: 8484\n", ":2: http.listen: `8484` is not an address; write host:port"),
        ("inbox: [tasks\n", ":2:1: is not YAML: while parsing a flow sequence"),
    ],
)
def test_a_faulty_configuration_is_refused_with_its_line(new_site: Site, text: str, message: str) -> None:
    new_site.config_file.write_text(text)

    assert new_site.start().wait() == 1
    log = new_site.log_text()
    assert f"{new_site.config_file}{message}" in log
    assert "Traceback" not in log
    assert not new_site.state.exists()


@pytest.fixture
def immovable(site: Site) -> Iterator[Path]:
    """A folder in what a crash left of a run directory, which cannot be removed: something is mounted there."""
    folder = site.state / "runs" / ".left-over.trash" / "work"
    folder.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"that needs the right to mount: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.needs_root
def test_what_fails_for_one_task_or_directory_keeps_nothing_else_and_is_shown(site: Site, immovable: Path) -> None:
    repository = site.root / "repository"
    repository.mkdir()
    daemon = site.start().ready()
    wait_until(lambda: f"{immovable}: Device or resource busy" in site.log_text(), "the folder to be told of")
    # As long as nothing may start, its folder can become a loop of links between acceptance and start.
    daemon.client.drain()
    task = {"name": "bad", "instructions": "do: true", "working_dir": str(repository), "isolation": "worktree"}
    daemon.client.submit(from_document(task))
    repository.rmdir()
    repository.symlink_to(repository)
    daemon.client.undrain()
    site.drop("good.yaml", document(None, "do: true"))

    assert ended(daemon, "good").state == "COMPLETED"
    bad = ended(daemon, "bad")
    assert (bad.state, bad.reason) == ("FAILED", "setup_failed")
    assert str(repository) in why(daemon, "bad")
    assert daemon.client.readiness().ready, "everything else is done"
    assert daemon.stop() == 0
