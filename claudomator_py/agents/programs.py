"""The agents' programs: which are installed, in which version, and the cached results of earlier checks.

Results are cached for the next start: a Node-based CLI takes seconds to print its version, and the queue would stand
still for that time after every restart.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from claudomator_py.agents.plaintext import readable, shortened
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.private_files import replacing
from claudomator_py.schema.agent_settings import FOUND_KINDS, default_agent
from claudomator_py.values import regex

MCP_NAME: Final = "claudomator"
"""Name of the MCP server; CLIs derive the names of its tools from it."""
MCP_SECONDS: Final = 600
"""How long a CLI should wait for a tool, if configurable; longer than a restart of the daemon takes."""

_INSTALLATION: Final = str(Path(__file__).parents[2])
# Isolated: no site packages, and nothing imported because of an environment variable.
_ISOLATED: Final = ("-I", "-S", "-X", "utf8", "-c")
_START: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from claudomator_py.agents.entry import start; "
    "sys.exit(start(sys.argv.pop(1)))"
)


def own_program(name: str) -> tuple[str, ...]:
    """Return the command that runs this program of ``agents.entry``; append its arguments."""
    return (sys.executable, *_ISOLATED, _START, _INSTALLATION, name)


def mcp_command(state: Path) -> tuple[str, ...]:
    """Return the command of the MCP server for runs of the daemon with that state folder. It holds no secret: the
    run's token is in its environment, see ``domain.run.MCP_VARIABLES``."""
    return (*own_program("mcp"), str(state))


PATIENCE_S = 30
"""Seconds to wait for a program. A Node-based CLI takes a second or two to answer; under load, several times that."""
_VERSION = regex(r"\d+(?:\.\d+)+(?:[\w.+-]*\w)?")


def find_program(command: tuple[str, ...], path: str) -> str | None:
    """Return the path of the command's program on this PATH."""
    return shutil.which(command[0], path=path) if command else None


def found(agent: AgentSpec, path: str, how: str = "install it") -> AgentHealth:
    """Return whether the agent's program is on this PATH. It is not run, as an unknown program may take ``--version``
    for anything. how: advice for when it is not there."""
    program = find_program(agent.command, path)
    if program is not None:
        return AgentHealth(installed=True, program=program)
    setting = f"agents.{agent.name}.command"
    named = agent.command[0] if agent.command else setting
    return AgentHealth(installed=False, problem=f"{named} is not on PATH; {how}, or correct {setting}")


def probe(command: tuple[str, ...], path: str, remedy: str) -> AgentHealth:
    """Return whether the program is installed and runs. remedy: advice for when it is not."""
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
        except subprocess.TimeoutExpired:
            how = f"{program} --version did not answer within {PATIENCE_S} s; it is asked again every few minutes"
            return AgentHealth(installed=True, program=program, problem=how)
        except OSError as error:
            return AgentHealth(
                installed=True, program=program, problem=f"{program} could not be started: {error.strerror}; {remedy}"
            )
    printed = readable((answer.stdout or answer.stderr).decode(errors="replace"))
    if answer.returncode != 0:
        how = f"{program} --version exited with {answer.returncode}: {shortened(printed, 300)}; {remedy}"
        return AgentHealth(installed=True, program=program, problem=how)
    match = _VERSION.search(printed)
    return AgentHealth(installed=True, program=program, version=match[0] if match else shortened(printed, 100) or None)


def detected_agents(path: str) -> list[AgentSpec]:
    """Return the agent programs found on that PATH, and the simulated agent, which runs only tasks that name it."""
    usual = [default_agent(kind) for kind in FOUND_KINDS]
    agents = [agent for agent in usual if shutil.which(agent.command[0], path=path) is not None]
    return [*agents, default_agent("simulated")]


class _Program(BaseModel, frozen=True):
    """stamp: reveals a change of the program's file."""

    kind: str
    command: tuple[str, ...]
    stamp: tuple[int, int, int]
    health: AgentHealth


class _CachedProgram(BaseModel, frozen=True):
    path: str
    programs: dict[str, _Program]


class KnownHealth:
    """The health cached in that file. path: the PATH on which programs are searched."""

    def __init__(self, file: Path, path: str) -> None:
        self._file = file
        self._path = path

    def recall(self, agents: Sequence[AgentSpec]) -> dict[str, AgentHealth]:
        """Return the cached health, by name, of those agents that could run and whose programs are unchanged."""
        try:
            kept = _CachedProgram.model_validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return {}
        if kept.path != self._path:
            return {}
        known = {}
        for agent in agents:
            program = kept.programs.get(agent.name)
            if program is None or (program.kind, program.command) != (agent.kind, agent.command):
                continue
            if program.stamp == _stamp(program.health):
                known[agent.name] = program.health
        return known

    def keep(self, agents: Sequence[AgentSpec], health_by_name: Mapping[str, AgentHealth]) -> None:
        """Keep the health for the next start. Raises OSError."""
        programs = {}
        for agent in agents:
            health = health_by_name.get(agent.name)
            stamp = None if health is None or health.problem is not None else _stamp(health)
            if health is not None and stamp is not None:
                programs[agent.name] = _Program(kind=agent.kind, command=agent.command, stamp=stamp, health=health)
        with replacing(self._file) as file:
            file.write(_CachedProgram(path=self._path, programs=programs).model_dump_json(indent=1).encode())


def _stamp(health: AgentHealth) -> tuple[int, int, int] | None:
    if health.program is None:
        return None
    try:
        stat = Path(health.program).stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
