"""What a start costs, told by what is imported and not by a clock, which a busy machine would make a liar of."""

import json
import os
import subprocess
import sys
from pathlib import Path

# What is there when the command has ended, and how much of it the collector leaves alone.
_RUN = """
import atexit, gc, json, sys

report = sys.argv.pop(1)


@atexit.register
def _write():
    with open(report, "w") as file:
        json.dump([gc.get_freeze_count(), sorted(sys.modules)], file)


from claudomator_py.__main__ import main

main()
"""


def after(tmp_path: Path, *arguments: str) -> tuple[int, set[str]]:
    report = tmp_path / "report.json"
    environ = {"PATH": os.defpath, "HOME": str(tmp_path), "CLAUDOMATOR_STATE_DIR": str(tmp_path / "state")}
    subprocess.run(
        [sys.executable, "-c", _RUN, str(report), *arguments],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=False,
    )
    frozen, modules = json.loads(report.read_text())
    return frozen, set(modules)


def test_what_a_command_leaves_is_not_searched_for_garbage_at_its_end(tmp_path: Path) -> None:
    frozen, _ = after(tmp_path, "--version")
    assert frozen > 10_000
