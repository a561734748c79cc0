"""Looks for an agent's program and asks it for its version, with a bare environment."""

import re
import shutil
import subprocess
import tempfile

from claudomator_py.agents.plaintext import readable, shortened
from claudomator_py.domain.agent import AgentHealth

PATIENCE_S = 30
"""A CLI on Node takes a second or two to answer; on a machine under load, several times that."""
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


def find_program(command: tuple[str, ...], path: str) -> str | None:
    """Where the command's program is on this PATH."""
    return shutil.which(command[0], path=path) if command else None


def probe(command: tuple[str, ...], path: str, remedy: str) -> AgentHealth:
    """Whether the program is there and runs. remedy: what to do when it is not."""
    program = find_program(command, path)
    if program is None:
        return AgentHealth(installed=False, problem=f"{command[0]} is not on PATH; {remedy}")
    with tempfile.TemporaryDirectory(prefix="claudomator-probe-") as home:
        try:
            answer = subprocess.run(
                [program, *command[1:], "--version"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE_S,
                env={"PATH": path, "HOME": home, "TMPDIR": home, "TERM": "dumb"},
                cwd=home,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return AgentHealth(
                installed=True, program=program, problem=f"{program} --version did not work: {error}; {remedy}"
            )
    said = readable((answer.stdout or answer.stderr).decode(errors="replace"))
    if answer.returncode != 0:
        how = f"{program} --version exited with {answer.returncode}: {shortened(said, 300)}; {remedy}"
        return AgentHealth(installed=True, program=program, problem=how)
    found = _VERSION.search(said)
    return AgentHealth(installed=True, program=program, version=found[0] if found else shortened(said, 100) or None)
