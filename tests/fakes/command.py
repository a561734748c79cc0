"""The command line as a user starts it, in a home of its own: as a process, or within this one, which is quicker."""

import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

from claudomator_py.__main__ import main
from tests.patience import PATIENCE_S


@dataclass(frozen=True, slots=True)
class Command:
    """Starts ``claudomator`` in a folder, with nothing of this process's environment but PATH."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    words: Sequence[str] = (sys.executable, "-W", "error", "-m", "claudomator_py")
    """What stands for it."""

    def __call__(self, *arguments: str, stdin: str | bytes = b"", **environ: str) -> "subprocess.CompletedProcess[str]":
        """Run it to its end."""
        finished = subprocess.run(
            self.argv(arguments),
            cwd=self.home,
            env=self.variables(environ),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        out, err = finished.stdout.decode(errors="surrogateescape"), finished.stderr.decode(errors="surrogateescape")
        return subprocess.CompletedProcess(finished.args, finished.returncode, out, err)

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL, **environ: str) -> "subprocess.Popen[str]":
        """Start it, with pipes to read what it writes."""
        return subprocess.Popen(
            self.argv(arguments),
            cwd=self.home,
            env=self.variables(environ),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def argv(self, arguments: Sequence[str]) -> list[str]:
        return [*self.words, *arguments]

    def variables(self, more: Mapping[str, str]) -> dict[str, str]:
        """What it finds in its environment."""
        source = str(Path(__file__).parents[2])
        own = {"HOME": str(self.home), "PATH": os.environ["PATH"], "PYTHONPATH": source, "TZ": "UTC"}
        return {**own, "LC_ALL": "C.UTF-8", **self.environ, **more}


@dataclass(frozen=True, slots=True)
class QuickCommand(Command):
    """The same without a process: what it reads and writes, its environment and its folder are exchanged meanwhile."""

    def __call__(self, *arguments: str, stdin: str | bytes = b"", **environ: str) -> "subprocess.CompletedProcess[str]":
        given = io.TextIOWrapper(io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin), encoding="utf-8")
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        variables = self.variables(environ)
        code: object = 0
        # What the command itself sets is gone afterwards, too.
        with mock.patch.dict(os.environ, variables, clear=True), pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.home)
            for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
                patch.setattr(sys, name, stream)
            patch.setattr(sys, "argv", ["claudomator", *arguments])
            # From here, and not from argv, Click would take the name of the command: ``python -m pytest``.
            patch.setattr(sys.modules["__main__"], "__package__", None)
            try:
                main()
            except SystemExit as ended:
                code = ended.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(arguments, code, *(_written(stream) for stream in (out, err)))


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return bytes(stream.buffer.read()).decode(errors="surrogateescape")
