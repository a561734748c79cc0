"""Starts daemons, and runs the command, by fork from a process that has imported everything: ``tests.warm.server``."""

import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.patience import PATIENCE_S

_REPOSITORY = Path(__file__).parents[2]


class WarmStarter:
    """A connection to that process, which lives as long as there is one."""

    def __init__(self, path: Path, *, first: str | None = None) -> None:
        """path: of its socket. first: what each daemon calls before it serves, ``module:function``."""
        self._path = path
        self._first = first
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(path))
        self._answers = self._connection.makefile("rb")
        self._ask({"stay": True})

    @classmethod
    def shared(cls, folder: Path) -> Self:
        """One on the process of all who name this folder, started by the first of them: to warm up takes seconds."""
        record = folder / "warm"
        with (folder / "warm.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                return cls(Path(record.read_text()))
            except OSError:  # none was started yet, or the last that used it has gone
                path = Path(tempfile.mkdtemp(prefix="claudomator-warm-"), "socket")
                server = [sys.executable, "-m", "tests.warm.server", str(path)]
                # It comes back when a child of it listens.
                subprocess.run(server, stdin=subprocess.DEVNULL, cwd=_REPOSITORY, check=True, timeout=PATIENCE_S)
                record.write_text(str(path))
                return cls(path)

    def first(self, function: str) -> "WarmStarter":
        """Another, whose daemons call that before they serve: ``module:function``."""
        return WarmStarter(self._path, first=function)

    @property
    def command(self) -> list[str]:
        """The command line that stands for ``claudomator``."""
        return [sys.executable, "-I", "-S", str(Path(__file__).with_name("command.py")), str(self._path)]

    def start(
        self,
        arguments: Mapping[str, str],
        *,
        environ: Mapping[str, str],
        cwd: Path,
        log: Path,
        max_files: tuple[int, int] | None = None,
    ) -> int:
        """Start a daemon in a new process and return its pid. arguments: those of ``serve`` by name. max_files: how
        many files it may have open, softly and at all."""
        request = {"arguments": dict(arguments), "environ": dict(environ), "cwd": os.fspath(cwd), "log": os.fspath(log)}
        return self._ask({"start": {**request, "max_files": max_files, "first": self._first}})

    def reap(self, pid: int) -> int:
        """The exit status of a daemon that has ended, negative for a signal."""
        return self._ask({"reap": pid})

    def close(self) -> None:
        """Let go of it. With the last connection it ends, and all that it has started."""
        self._answers.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, request: dict[str, object]) -> int:
        self._connection.sendall(json.dumps(request).encode() + b"\n")
        line = self._answers.readline()
        assert line, "the process that daemons are forked from has ended: what it said stands above"
        answer: int = json.loads(line)
        return answer
