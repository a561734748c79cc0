"""What was found of agents' programs, kept for the next start: one that is as it was need not be asked for its version.

A command on Node takes seconds to answer, in which the queue would stand still after every restart.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from claudomator_py.domain.agent import AgentHealth, AgentSpec


class _Program(BaseModel):
    """stamp: by which a change of its file shows."""

    model_config = ConfigDict(frozen=True)

    kind: str
    command: tuple[str, ...]
    stamp: tuple[int, int, int]
    health: AgentHealth


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True)

    path: str
    programs: dict[str, _Program]


class KnownHealth:
    """What is kept in that file. path: the PATH in which programs are found."""

    def __init__(self, file: Path, path: str) -> None:
        self._file = file
        self._path = path

    def recall(self, agents: Sequence[AgentSpec]) -> dict[str, AgentHealth]:
        """Of these agents, by name, those that could run and whose programs are as they were."""
        try:
            kept = _Kept.model_validate_json(self._file.read_bytes())
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

    def keep(self, agents: Sequence[AgentSpec], found: Mapping[str, AgentHealth]) -> None:
        """Keep it for the next start. Raises OSError."""
        programs = {}
        for agent in agents:
            health = found.get(agent.name)
            stamp = None if health is None or health.problem is not None else _stamp(health)
            if health is not None and stamp is not None:
                programs[agent.name] = _Program(kind=agent.kind, command=agent.command, stamp=stamp, health=health)
        partial = self._file.with_name(f".{self._file.name}.{secrets.token_hex(8)}")
        # Private as all in the state folder, whatever the umask is.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(_Kept(path=self._path, programs=programs).model_dump_json(indent=1))
        partial.replace(self._file)


def _stamp(health: AgentHealth) -> tuple[int, int, int] | None:
    if health.program is None:
        return None
    try:
        found = Path(health.program).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
