"""Run directories outlive the version that made them: each version reads what another one wrote, from the first on.

The texts are those of version 0.1, and are not to follow what is written today.
"""

import json
import os
from pathlib import Path

import pytest

from claudomator_py.domain.run import RunFate
from claudomator_py.hosts.local.directory import RunDirectory
from claudomator_py.hosts.local.fate import decide_fate, shim_identity
from claudomator_py.hosts.shim import procfs
from tests.integration.hosts.rig import PATH, Rig, ended, stdout
from tests.patience import wait_until

SPEC = """{
  "run_id": "%s",
  "commands": [["sh", "-c", "cat; echo $GREETING"]],
  "cwd": "%s",
  "roots": [],
  "env_names": ["GREETING", "PATH"],
  "limits": {"timeout_ms": 20000, "stall_ms": null, "grace_ms": 300, "output_bytes": 1048576}
}"""
EXIT = """{"exit_code": 3, "ended_by": "timeout", "ended_ms": 1795324477500, "error": null,
"started_ms": 1795324477179, "step": 0, "stragglers": 2}"""


def later(text: str) -> str:
    """The same, as a later version might write it."""
    data = json.loads(text)
    if "limits" in data:
        data["limits"] = {**data["limits"], "energy_joules": 9}
    return json.dumps({**data, "colour": "blue", "nested": {"more": [1]}})


@pytest.fixture
def first(rig: Rig, tmp_path: Path) -> Path:
    """A directory as version 0.1 left it before the start: with these files and no others."""
    # Its own, since a test that ends what is left of it may run beside another.
    run_id = f"5bd1e995-0001-5000-8000-{os.getpid():012}"
    rig.run_ids.append(run_id)
    path = rig.root / run_id
    path.mkdir(mode=0o700)
    (path / "spec.json").write_text(SPEC % (run_id, tmp_path))
    (path / "prompt.md").write_text("the prompt\n")
    for name in ("stdout.jsonl", "stderr.log", "lock"):
        (path / name).touch(mode=0o600)
    return path


@pytest.mark.parametrize("written_later", [False, True])
def test_a_run_that_another_version_prepared_is_run(rig: Rig, first: Path, written_later: bool) -> None:
    spec = first / "spec.json"
    if written_later:
        spec.write_text(later(spec.read_text()))

    rig.shim(first, {"PATH": PATH, "GREETING": "hello"}).wait()

    assert ended(first).exit.exit_code == 0
    assert stdout(first) == "the prompt\nhello\n"


@pytest.mark.parametrize("written_later", [False, True])
def test_an_end_that_another_version_recorded_is_read(first: Path, written_later: bool) -> None:
    (first / "started").touch()
    (first / "exit.json").write_text(later(EXIT) if written_later else EXIT)

    status = decide_fate(first)

    assert status.fate is RunFate.ENDED
    assert status.exit is not None
    assert (status.exit.exit_code, status.exit.ended_by, status.exit.step) == (3, "timeout", 0)
    assert (status.exit.started_ms, status.exit.ended_ms) == (1795324477179, 1795324477500)


@pytest.mark.parametrize("written_later", [False, True])
def test_a_shim_of_another_version_is_known_and_asked_to_end(rig: Rig, first: Path, written_later: bool) -> None:
    spec = first / "spec.json"
    spec.write_text(spec.read_text().replace("cat; echo $GREETING", "exec sleep 600"))
    shim = rig.shim(first)
    wait_until((first / "started").exists)
    message = json.loads((first / "shim.json").read_text())
    text = json.dumps({"boot_id": procfs.boot_id(), "pid": message["pid"], "start_time": message["start_time"]})
    (first / "shim.json").write_text(later(text) if written_later else text)

    identity = shim_identity(first)
    RunDirectory(first).request_cancel()
    shim.wait()

    assert identity is not None
    assert identity.pid == message["pid"]
    assert ended(first).exit.ended_by == "cancel"


def test_a_directory_that_another_version_gave_up_stays_given_up(rig: Rig, first: Path) -> None:
    (first / "revoked").touch()

    rig.shim(first).wait()

    assert decide_fate(first).fate is RunFate.REVOKED
    assert stdout(first) == ""
