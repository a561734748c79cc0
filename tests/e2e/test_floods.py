"""Agents that print without end, as fast as they can: whatever they print, nobody else waits for them."""

import sys
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, ended, in_state, last_run, why
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

FLOODS = {
    "plain": ("command", "exec yes"),
    "words": ("codex", "exec yes this is no event"),
    "deep": ("codex", "exec yes '" + '{"type":"x","item":' + '{"a":' * 600 + "1" + "}" * 601 + "'"),
}
"""Kind and program of agents that flood."""


def flooding(folder: Path, name: str) -> dict[str, object]:
    kind, program = FLOODS[name]
    script = folder / name
    script.write_text(f'#!/bin/sh\ncase "$1" in --version) echo 1.0; exit;; esac\n{program}\n')
    script.chmod(0o755)
    return {"kind": kind, "command": [str(script)]}


@pytest.fixture
def place(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    agents = {name: flooding(tmp_path, name) for name in FLOODS}
    agents["python"] = {"kind": "command", "command": [sys.executable, "-I", "-c", "print('done')"]}
    limits = {"grace": "300ms", "min_free": "1MiB", "output_cap": "16MiB"}
    with open_site(tmp_path / "site", warm=warm, agents=agents, limits=limits) as site:
        yield site


def do_innocent_task(site: Site, daemon: Daemon, name: str, besides: Collection[str]) -> None:
    """A task that does nothing comes and ends while those agents still print."""
    site.drop(f"{name}.yaml", document(None, "x", agent="python"))
    task = ended(daemon, name)
    assert (task.state, task.result_text) == ("COMPLETED", "done")
    assert {flood: daemon.client.task(flood).state for flood in besides} == dict.fromkeys(besides, "RUNNING")


def is_far_ahead(site: Site, daemon: Daemon, name: str) -> bool:
    output = site.state / "runs" / last_run(daemon, name).id / "stdout.jsonl"
    return output.exists() and output.stat().st_size > 32 << 20


@pytest.mark.slow
def test_floods_keep_nobody_waiting_and_end_when_they_are_told_to(place: Site) -> None:
    daemon = place.start().ready()
    for name in FLOODS:
        place.drop(f"{name}.yaml", document(None, "x", agent=name, timeout="3m"))
    for name in FLOODS:
        in_state(daemon, name, "RUNNING")
        wait_until(partial(is_far_ahead, place, daemon, name), f"{name} to be far ahead")

    do_innocent_task(place, daemon, "innocent", FLOODS)
    wait_until(lambda: "prints faster than Claudomator reads" in why(daemon, "deep"), "it to be said")
    daemon.client.cancel("words")
    assert ended(daemon, "words").state == "CANCELLED"
    daemon.kill()
    daemon = place.start().ready()
    do_innocent_task(place, daemon, "later", ("plain", "deep"))
    for name in ("plain", "deep"):
        daemon.client.cancel(name)
        assert ended(daemon, name).state == "CANCELLED"
    assert daemon.stop() == 0
    place.no_processes()
