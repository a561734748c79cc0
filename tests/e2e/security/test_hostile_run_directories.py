"""Agents that put something else in the place of the files of their run: the daemon goes on, for everybody else.

An agent is a process of the daemon's user, so it can end its own supervisor and write what it likes beside it. It may
lose its own run by that, and nothing more: each of these stopped the daemon, at its next start, too.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.run import Stream
from tests.e2e.scenarios_support import document, ended, in_state, started
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

KILL_SHIM = "kill -9 $PPID"
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
DEEP = "head -c 50000 /dev/zero | tr '\\0' '['"
FORGED = '{"exit_code": 0, "ended_by": "magic", "started_ms": 1e300, "ended_ms": "x", "error": 1, "step": []}'
LARGE = '{"exit_code": 0, "ended_by": null, "started_ms": 1, "ended_ms": 9223372036854775808, "error": null, "step": 0}'


def at_exit(does: str) -> str:
    """Ends the supervisor, and does that in the place of its last word."""
    return f"{KILL_SHIM}; cd $CLAUDOMATOR_TEST_RUNS/$CLAUDOMATOR_RUN; {does}; exit 0"


HOSTILE = {
    "exit-pipe": at_exit("mkfifo exit.json"),
    "exit-deep": at_exit(f"{DEEP} > exit.json"),
    "exit-forged": at_exit(f"echo '{FORGED}' > exit.json"),
    "exit-large": at_exit(f"echo '{LARGE}' > exit.json"),
    "exit-huge": at_exit("truncate -s 1T exit.json"),
    "exit-link": at_exit("ln -s /dev/zero exit.json"),
    "agent-pipe": at_exit("rm agent.json; mkfifo agent.json"),
    "agent-deep": at_exit(f"{DEEP} > agent.json"),
    "shim-pipe": at_exit("rm shim.json; mkfifo shim.json"),
    "shim-huge": at_exit("truncate -s 1T shim.json"),
}
QUIET = {
    "output-pipe": "rm stdout.jsonl stderr.log; mkfifo stdout.jsonl stderr.log",
    "output-link": "rm stdout.jsonl stderr.log; ln -s /dev/zero stdout.jsonl; ln -s $CLAUDOMATOR_TEST_TOKEN stderr.log",
    "marks": "mkfifo cancel-not revoked; rm shim.json; mkfifo shim.json",
}


@pytest.fixture
def place(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    with open_site(tmp_path / "site", warm=warm, concurrency={"total": 4}) as site:
        yield site


def task(site: Site, name: str, does: str) -> str:
    runs, token = site.state / "runs", site.state / "token"
    does = does.replace("$CLAUDOMATOR_TEST_RUNS", str(runs)).replace("$CLAUDOMATOR_TEST_TOKEN", str(token))
    return document(name, f"do: {does}", retry={"max_attempts": 1})


def test_what_was_put_in_the_place_of_a_record_stops_nobody_else(place: Site) -> None:
    daemon = place.start().ready()
    for name, does in HOSTILE.items():
        place.drop(f"{name}.yaml", task(place, name, does))
    place.drop("innocent.yaml", document("innocent"))
    assert ended(daemon, "innocent").state == "COMPLETED"
    states = {name: ended(daemon, name).state for name in HOSTILE}
    assert set(states.values()) <= {"FAILED", "COMPLETED"}, states
    assert "Traceback" not in place.log_text()
    daemon.kill()
    daemon = place.start().ready()
    place.drop("later.yaml", document("later"))
    assert ended(daemon, "later").state == "COMPLETED"


def test_a_living_run_without_its_files_can_be_looked_at_and_cancelled(place: Site) -> None:
    daemon = place.start().ready()
    token = (place.state / "token").read_text().strip()
    for name, does in QUIET.items():
        here = f"cd $CLAUDOMATOR_TEST_RUNS/$CLAUDOMATOR_RUN; {does}; echo done > {place.root}/{name}; sleep 600"
        place.drop(f"{name}.yaml", task(place, name, here))
        wait_until((place.root / name).exists, "the run to have done it")
    started(place, len(QUIET))
    for name in QUIET:
        in_state(daemon, name, "RUNNING")
        (run,) = daemon.client.runs(name)
        shown = "".join(str(daemon.client.log(run.id, stream)) for stream in STREAMS)
        assert token not in shown, "the log is that of another file"
    for name in QUIET:
        daemon.client.cancel(name)
    for name in QUIET:
        assert ended(daemon, name).state == "CANCELLED"
    place.drop("later.yaml", document("later"))
    assert ended(daemon, "later").state == "COMPLETED"
    assert "Traceback" not in place.log_text()
