"""The first minutes on a machine without any agent: nothing is pretended, everything says so, and doctor is content."""

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from claudomator_py.schema.agent_settings import FOUND_KINDS
from tests.e2e.scenarios_support import document, ended, waits_for
from tests.e2e.site import COMMAND, REPOSITORY, Site
from tests.patience import PATIENCE_S, wait_until

CONFIG = """\
inbox: {paths: [tasks]}
state_dir: state
http: {listen: "127.0.0.1:0"}
limits: {min_free: 1MiB}
"""
CLAUDE = "#!/bin/sh\necho 1.0\n"


@contextmanager
def umask(mask: int) -> Iterator[None]:
    former = os.umask(mask)
    try:
        yield
    finally:
        os.umask(former)


def programs(folder: Path) -> Path:
    """A PATH with what every machine has, and no agent."""
    folder.mkdir()
    for name in ("git", "sh", "timeout"):
        result = shutil.which(name)
        assert result is not None
        (folder / name).symlink_to(result)
    return folder


def command(site: Site, path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environ = {"HOME": str(site.root / "home"), "PATH": str(path), "LANG": "C.UTF-8", "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        [*COMMAND, *arguments], cwd=site.root, env=environ, capture_output=True, text=True, timeout=PATIENCE_S
    )


def open_to_others(folder: Path) -> list[str]:
    places = [folder, *(path for path in folder.iterdir() if path.is_file())]
    return [path.name for path in places if stat.S_IMODE(path.stat().st_mode) & 0o077]


def test_without_an_agent_a_task_waits_and_everything_says_so(cold_site: Site, tmp_path: Path) -> None:
    site, path = cold_site, programs(tmp_path / "bin")
    site.config_file.unlink()
    assert command(site, path, "init").returncode == 0
    fresh = command(site, path, "doctor")
    assert fresh.returncode == 0, fresh.stdout
    site.config_file.write_text(CONFIG)
    with umask(0):
        daemon = site.start(PATH=str(path))
    daemon.ready()

    text = f"no agent found on PATH: none of {', '.join(FOUND_KINDS)} is in {path}"
    site.drop("unhinted.yaml", "instructions: Tidy up the changelog.\n")
    assert waits_for(daemon, "unhinted", "agent").agent is None
    status = daemon.client.status()
    trouble = [(check.name, check.detail, check.blocking) for check in status.trouble]
    assert trouble == [("agents", text, False)]
    assert daemon.client.readiness().ready
    assert text in site.log_text()
    partition = command(site, path, "status").stdout.partition("QUEUED")[0]
    assert "agents: no agent found on PATH; install one" in partition
    assert "`claudomator doctor` shows the PATH" in " ".join(partition.split())
    assert str(path) not in partition
    assert max(map(len, partition.splitlines())) <= 80

    site.drop("named.yaml", document(None, "Tidy up.", agent={"type": "simulated"}))
    assert ended(daemon, "named").state == "COMPLETED"

    wait_until((site.state / "agents.json").exists, "what was found to be kept")
    assert open_to_others(site.state) == []
    after = command(site, path, "doctor")
    assert after.returncode == 0, after.stdout
    assert text in after.stdout

    # One that is installed later is found without a restart.
    assert daemon.client.cancel("unhinted").state == "CANCELLED"
    (path / "claude").write_text(CLAUDE)
    (path / "claude").chmod(0o755)
    daemon.send(signal.SIGHUP)
    wait_until(lambda: not daemon.client.status().trouble, "the agent to be found")
    assert [agent.name for agent in daemon.client.agents()] == ["claude", "simulated"]
    daemon.stop()
    assert command(site, path, "doctor").returncode == 0
