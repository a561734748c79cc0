"""A daemon that starts again does not wait for what agents' programs say of themselves, if it has heard that before."""

from pathlib import Path

from tests.e2e.daemon import Daemon
from tests.e2e.site import Site
from tests.patience import wait_until

PROGRAM = """#!/bin/sh
until [ -e {go} ]; do sleep 0.05; done
echo {version}
"""


def version(daemon: Daemon) -> str | None:
    (agent,) = daemon.client.agents()
    assert agent.problem is None
    return agent.version


def test_a_slow_program_holds_up_the_first_start_only(site: Site, tmp_path: Path) -> None:
    program, go = tmp_path / "codex", tmp_path / "go"

    def install(number: str) -> None:
        program.write_text(PROGRAM.format(go=go, version=number))
        program.chmod(0o755)

    install("1.0")
    go.touch()
    site.configure(agents={"codex": {"kind": "codex", "command": [str(program)]}})
    daemon = site.start().ready()
    assert version(daemon) == "1.0"
    wait_until((site.state / "agents.json").exists, "what was found to be kept")
    daemon.kill()

    go.unlink()
    daemon = site.start().ready()
    assert version(daemon) == "1.0", "known from before"
    daemon.kill()

    install("2.0")
    go.touch()
    assert version(site.start().ready()) == "2.0"
