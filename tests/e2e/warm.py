"""Starts daemons by fork from a process that has imported everything: a start costs a few tenths of a second.

Reads one JSON request a line and answers each with one: ``{"start": ...}`` with ``{"pid"}``, and ``{"reap": pid}``, for
a daemon that has ended, with ``{"status"}``, negative for a signal. Ends with its input, and its daemons with it.
"""

import ctypes
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tests.e2e.harness import Site

from pydantic import BaseModel

from tests.patience import PATIENCE_S

_PR_SET_PDEATHSIG = 1
# What a daemon imports when it first needs it.
_IMPORTED_LATE = (
    *("anyio._backends._asyncio", "apscheduler.triggers.interval", "encodings.idna", "stringprep", "tomllib"),
    *("tzdata.zoneinfo", "uvicorn.lifespan.off"),
    *("claudomator_py.api.a2a.routes", "claudomator_py.api.page.application", "claudomator_py.sources.alarms"),
    *("claudomator_py.agents.command.kind", "claudomator_py.agents.simulated.kind"),
    *("claudomator_py.routing.danger", "claudomator_py.routing.harm"),
)


class WarmStarter:
    """The client's side of that process."""

    def __init__(self, module: str = "tests.e2e.warm") -> None:
        """module: one whose ``main`` ends in this one's."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )

    def start(self, arguments: Mapping[str, str], *, environ: Mapping[str, str], cwd: Path, log: Path) -> int:
        """Start a daemon in a new process and return its pid. arguments: those of ``serve`` by name."""
        request = {"arguments": dict(arguments), "environ": dict(environ), "cwd": str(cwd), "log": str(log)}
        return self._ask({"start": request})

    def reap(self, pid: int) -> int:
        """The exit status of a daemon that has ended."""
        return self._ask({"reap": pid})

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, request: dict[str, object]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process that daemons are forked from has ended: what it said stands above"
        answer: int = json.loads(line)
        return answer


def main() -> None:
    """Answer requests until the input ends."""
    warm_up()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "start" in request:
            answer = _fork(request["start"])
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["reap"], 0)[1])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def warm_up() -> None:
    """Do once what every daemon would do for itself."""
    from claudomator_py.imports import many

    with many():
        import claudomator_py.app.serving  # noqa: F401 - with all that a daemon imports
    from claudomator_py.api import app
    from claudomator_py.api.page import rendering
    from tests.compiled import compile_once
    from tests.fakes.daemon import openapi_document

    for name in _IMPORTED_LATE:
        importlib.import_module(name)
    document = openapi_document()  # with which every route is made
    setattr(app, "build", lambda *_: document)  # noqa: B010 - which a daemon calls when somebody asks for it
    for template in rendering._environment().list_templates():
        rendering._environment().get_template(template)
    compile_once()
    _live_once()
    for model in _models(BaseModel):
        model.model_rebuild()  # which a daemon leaves to the first use of each
    gc.collect()
    gc.freeze()  # else each daemon's first collection writes to every page that it shares with this process


def _models(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in kind.__subclasses__():
        if not getattr(model, "__pydantic_generic_metadata__", {}).get("parameters"):
            yield model
        yield from _models(model)


def _live_once() -> None:
    """A daemon's life in this process: all that it imports, makes or compiles when it first needs it is there then."""
    from claudomator_py.app.serving import serve
    from tests.e2e.harness import open_site

    with tempfile.TemporaryDirectory() as folder, open_site(Path(folder, "site")) as site:
        user = threading.Thread(target=_use, args=[site])
        log, kept = os.open(site.log_file, os.O_WRONLY | os.O_CREAT), [(fd, os.dup(fd)) for fd in (1, 2)]
        environ, its_own = dict(os.environ), site.environ()
        try:
            os.environ.clear()
            os.environ.update(its_own)
            for fd, _ in kept:
                os.dup2(log, fd)
            user.start()
            code = serve(site.config_file, None, None)
        finally:
            os.environ.update(environ)
            for fd, copy in kept:
                os.dup2(copy, fd)
        user.join()
        assert code == 0, site.log_text()
        assert threading.enumerate() == [threading.main_thread()], "whoever forks has one, or locks stay held for ever"


def _use(site: "Site") -> None:
    """What most tests ask of a daemon; then it is asked to end."""
    from claudomator_py.domain.task import TaskSpec
    from tests.e2e.harness import Daemon, wait_until

    try:
        daemon = Daemon(site, os.getpid(), lambda _: 0).ready()
        client = daemon.client
        task = client.submit(TaskSpec(name="one", instructions="do: true"))
        site.drop("two.yaml", "instructions: do it\n")
        wait_until(lambda: len(list(client.all_tasks())) == 2, "both tasks to be there")
        site.drain(daemon)
        client.why(task.id)
        client.runs(task.id)
        client.agents()
        client.close()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def _fork(request: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        code = _serve(request)
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)


def _serve(request: dict[str, Any]) -> int:
    from claudomator_py.app.serving import serve

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    for fd, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(fd, target)
    os.closerange(3, 64)
    arguments: dict[str, str] = request["arguments"]
    config, state_dir = arguments.get("config"), arguments.get("state_dir")
    return serve(
        Path(config) if config is not None else None,
        Path(state_dir) if state_dir is not None else None,
        arguments.get("listen"),
    )


if __name__ == "__main__":
    main()
