"""A crowd of strangers at the hub of a real daemon: the operator's day goes on beside it, and nothing of it stays."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from claudomator_py.protocols.hub.mailbox import MAX_PROGRESS_BYTES
from claudomator_py.resources.access import TokenRequest
from tests.e2e.crowd import Orders
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended
from tests.e2e.site import Site, open_site
from tests.patience import PATIENCE_S, wait_until
from tests.warm.starter import WarmStarter

IDLE, NOISY, FLOODS = 100, 10, 2
DAYS, TASKS = 2, 8


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    with open_site(tmp_path / "site", warm=warm, concurrency={"total": 8}, routing={"shipped": False}) as site:
        yield site


@contextmanager
def crowd(site: Site, tokens: list[str]) -> Iterator[dict[str, int]]:
    """What it has done, once it has left."""
    orders = Orders(str(site.endpoint).replace("http://", "ws://") + "/v1/hub", tokens, IDLE, NOISY, FLOODS)
    done: dict[str, int] = {}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.crowd"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(orders.as_line())
        process.stdin.flush()
        assert process.stdout.readline() == b"here\n"
        yield done
        done.update(json.loads(process.communicate(timeout=PATIENCE_S)[0]))
    finally:
        process.kill()
        process.communicate()


def connections(daemon: Daemon) -> int:
    """How many TCP sockets the daemon has."""
    folder = Path(f"/proc/{daemon.pid}/fd")
    of_tcp = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]}
    links = (str(each.readlink()) for each in folder.iterdir() if each.is_symlink())
    return sum(link.removeprefix("socket:[").rstrip("]") in of_tcp for link in links)


def test_a_crowd_keeps_nobody_from_work_and_nothing_of_it_stays(site: Site) -> None:
    daemon = site.start().ready()
    tokens = [
        daemon.client.create_token(
            TokenRequest.model_validate({"name": f"{entry}-{number}", "role": "operate", "organisation": entry})
        ).token
        for entry in ("acme", "globex")
        for number in range(2)
    ]
    before = connections(daemon)
    for day in range(DAYS):
        with crowd(site, tokens) as done:
            assert connections(daemon) >= before + IDLE + NOISY
            names = [f"task-{day}-{number}" for number in range(TASKS)]
            for name in names:
                site.drop(f"{name}.yaml", document(None, "do: true"))
            assert {ended(daemon, name).state for name in names} == {"COMPLETED"}
            assert daemon.client.status().counts["RUNNING"] >= FLOODS
        assert (done["connected"], done.get("errors", 0)) == (IDLE + NOISY, 0)
        wait_until(lambda: connections(daemon) <= before, "the connections to be closed")
        for task in daemon.client.all_tasks():
            if task.name.startswith("noisy-") and task.state == "RUNNING":
                daemon.client.cancel(task.id)
                assert ended(daemon, task.id).state == "CANCELLED"
    sizes = [path.stat().st_size for path in (site.state / "runs").glob("*/mailbox")]
    assert len(sizes) == DAYS * FLOODS
    assert 0 < max(sizes) < MAX_PROGRESS_BYTES + (1 << 20)
