"""A process that has imported everything, and forks daemons and commands, which so cost a tenth of a cold start.

All workers of a test run share one, by a Unix socket. A request is a line of JSON, and so is its answer: ``{"stay"}``,
for whose connection the process lives on; ``{"start": ...}``, a daemon, with its pid; ``{"reap": pid}``, for a daemon
that has ended, with its exit status, negative for a signal. ``{'command': ...}``, a literal of Python, comes with the
first three files of whoever asks, from ``tests.warm.command``; the command itself answers, with its pid and then its
exit status. What was started ends with this process.

What a daemon so started does not do itself: import, make the OpenAPI document, encode the cards that come with it, move
its heaps to huge pages, and start Python for its fork server.
``tests/e2e/test_installed_command.py``, ``test_fresh_install.py`` and ``test_upgrade.py`` start theirs as users do.
"""

import ast
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.e2e.site import Site

from pydantic import BaseModel

from claudomator_py.dispatch.card_vectors import Roster, SpecialistDirectory
from claudomator_py.hosts.local import launcher
from tests.patience import PATIENCE_S
from tests.warm.bare import Forked, Zygote

_PR_SET_PDEATHSIG = 1
# What a daemon imports when it first needs it.
_IMPORTED_LATE = (
    *("anyio._backends._asyncio", "apscheduler.triggers.interval", "encodings.idna", "stringprep", "tomllib"),
    *("tzdata.zoneinfo", "uvicorn.lifespan.off"),
    *("claudomator_py.api.guard.websocket", "claudomator_py.protocols.a2a", "claudomator_py.sources.alarms"),
    "claudomator_py.telemetry.otlp",
    *("claudomator_py.agents.command.kind", "claudomator_py.agents.simulated.kind"),
    "claudomator_py.risk.orders",
)
_FIRST_FREE = 3
_LITERAL = b"{'"
"""How the request for a command begins."""
_PIECE_BYTES = 1 << 16
_FILES = 1_024
"""More than this process has open."""


def main() -> None:
    """Warm up, have a child listen, and come back; the child answers until nobody is left who stays."""
    path = Path(sys.argv[1])
    warm_up()
    for number in (signal.SIGTERM, signal.SIGHUP):  # which a daemon that has ended ignores, as this process was one
        signal.signal(number, signal.SIG_DFL)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        if os.fork():
            os._exit(0)
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Tests look for a fork server by its command line, which is that of what it is forked from.
        zygote = Zygote("claudomator_py.hosts.shim.forkserver")
        stand_in = SimpleNamespace(Popen=partial(_fork_server, zygote), TimeoutExpired=subprocess.TimeoutExpired)
        setattr(launcher, "subprocess", stand_in)  # noqa: B010 - what the module has imported
        try:
            Server(listener).serve()
        finally:
            zygote.close()
            shutil.rmtree(path.parent, ignore_errors=True)


class Server:
    """Answers, one after another: each answer is a fork, or shorter."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._asking: dict[socket.socket, bytes] = {}  # what each has said of a request so far
        self._staying: set[socket.socket] = set()
        self._commands: dict[int, int] = {}  # pid by the descriptor that tells of its end

    def serve(self) -> None:
        """Until the last who stays has gone, or nobody has come."""
        came = False
        while self._staying or not came:
            watched: list[Any] = [self._listener, *self._asking, *self._commands]
            results = select.select(watched, [], [], None if came else PATIENCE_S)[0]
            if not results:
                return
            for entry in results:
                if entry is self._listener:
                    self._asking[self._listener.accept()[0]] = b""
                elif isinstance(entry, int):
                    os.waitpid(self._commands.pop(entry), 0)
                    os.close(entry)
                else:
                    self._hear(entry)
            came = came or bool(self._staying)

    def _hear(self, connection: socket.socket) -> None:
        if connection.recv(len(_LITERAL), socket.MSG_PEEK) == _LITERAL:
            pid = _forked(lambda: _run(connection))
            self._commands[os.pidfd_open(pid)] = pid
            self._forget(connection)
            return
        piece = connection.recv(_PIECE_BYTES)
        text = self._asking[connection] = self._asking[connection] + piece
        if not piece:
            self._staying.discard(connection)
            self._forget(connection)
        elif text.endswith(b"\n"):
            self._asking[connection] = b""
            connection.sendall(b"%d\n" % self._answer(connection, json.loads(text)))

    def _answer(self, connection: socket.socket, asked: dict[str, Any]) -> int:
        if "start" in asked:
            return _forked(lambda: _serve(asked["start"]))
        if "reap" in asked:
            return os.waitstatus_to_exitcode(os.waitpid(asked["reap"], 0)[1])
        self._staying.add(connection)
        return 0

    def _forget(self, connection: socket.socket) -> None:
        del self._asking[connection]
        connection.close()


def warm_up() -> None:
    """Do once what every daemon would do for itself."""
    from claudomator_py.imports import bulk_import

    with bulk_import():
        import claudomator_py.app.web_server  # noqa: F401 - with it, all that a daemon imports
        from claudomator_py.app import serving
    from claudomator_py.api import app, page
    from claudomator_py.api.page import rendering
    from docs.reference.api import openapi
    from tests.compiled import compile_once

    for name in _IMPORTED_LATE:
        importlib.import_module(name)
    _load_commands()
    document = openapi()  # with which every route is made
    setattr(app, "build", lambda *_: document)  # noqa: B010 - which a daemon calls when somebody asks for it
    assert page.routes()
    for template in rendering._environment().list_templates():
        rendering._environment().get_template(template)
    compile_once()
    _encode_once()
    # It would copy the memory that it shares with this process.
    setattr(serving, "use_huge_pages", lambda: 0)  # noqa: B010 - what the module has imported
    _live_once()
    for model in _models(BaseModel):
        model.model_rebuild()  # which a daemon leaves to the first use of each
    gc.collect()
    gc.freeze()  # else each daemon's first collection writes to every page that it shares with this process


def _encode_once() -> None:
    """Keep the cards of the first daemon, with their vectors, for those that have the same and read them alike."""
    read, first = SpecialistDirectory._read, dict[object, tuple[Roster, Any]]()

    def read_once(directory: SpecialistDirectory, digest: str) -> Roster:
        key = (digest, directory.encoder.id, directory._calibration)
        if first and key not in first:
            return read(directory, digest)
        if not first:
            first[key] = read(directory, digest), directory._known
        roster, directory._known = first[key]
        return roster

    setattr(SpecialistDirectory, "_read", read_once)  # noqa: B010 - it is private


def _load_commands() -> None:
    """Import what commands import: two thirds of what one costs that is forked from here."""
    import typer

    from claudomator_py.__main__ import application

    group: Any = typer.main.get_command(application())
    for command in group.commands.values():
        assert command.name


def _models(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in kind.__subclasses__():
        if not getattr(model, "__pydantic_generic_metadata__", {}).get("parameters"):
            yield model
        yield from _models(model)


def _live_once() -> None:
    """A daemon's life in this process: all that it imports, makes or compiles when it first needs it is there then."""
    from claudomator_py.app.serving import serve
    from claudomator_py.cli import ExitCode
    from tests.e2e.site import open_site
    from tests.fakes.command import QuickCommand

    rule = {"name": "watched", "when": 'task.risk == "high"', "approve": {"within": "1h"}}
    with tempfile.TemporaryDirectory() as folder, open_site(Path(folder, "site"), policy=[rule]) as site:
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
        # What a command reads and makes before it asks: there is no daemon any more.
        assert QuickCommand(site.root)("show", "one").returncode == ExitCode.NOT_RUNNING
        assert threading.enumerate() == [threading.main_thread()], "whoever forks has one, or locks stay held for ever"


def _use(site: "Site") -> None:
    """What most tests ask of a daemon; then it is asked to end."""
    from claudomator_py.domain.task import TaskSpec
    from claudomator_py.resources.tasks import ApproveRequest
    from tests.e2e.daemon import Daemon
    from tests.patience import wait_until

    try:
        daemon = Daemon(site.state, site.log_file, os.getpid(), lambda _: 0).ready()
        client = daemon.client
        task = client.submit(TaskSpec(name="one", instructions="do: true"))
        asks = client.submit(TaskSpec(name="asks", instructions="Run `git push --force origin main`, `npm publish`."))
        site.drop("two.yaml", "instructions: do it\n")
        wait_until(lambda: len(list(client.all_tasks())) == 3, "all tasks to be there")
        wait_until(lambda: client.task(asks.id).state == "NEEDS_INPUT", "the rule to ask")
        client.approve(asks.id, ApproveRequest())
        site.drain(daemon)
        client.why(task.id)
        client.runs(task.id)
        client.agents()
        client.close()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def _fork_server(
    zygote: Zygote, command: list[str], *, env: Mapping[str, str], stdin: int, start_new_session: bool
) -> Forked:
    return zygote.start(command, environ=env, files=(stdin, 1, 2), new_session=start_new_session)


def _forked(work: Callable[[], int]) -> int:
    """The pid of a process that does the work, exits with what it returns, and does not outlive this one."""
    if pid := os.fork():
        return pid
    code = 70
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = work()
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)


def _serve(request: dict[str, Any]) -> int:
    """Be a daemon."""
    from claudomator_py.app.serving import serve

    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _take(request, [os.open(os.devnull, os.O_RDWR), log, log])
    if request["max_files"] is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, tuple(request["max_files"]))
    if request["first"] is not None:
        module, _, function = request["first"].partition(":")
        getattr(importlib.import_module(module), function)()
    arguments: dict[str, str] = request["arguments"]
    config, state_dir = arguments.get("config"), arguments.get("state_dir")
    return serve(
        Path(config) if config is not None else None,
        Path(state_dir) if state_dir is not None else None,
        arguments.get("listen"),
    )


def _run(connection: socket.socket) -> int:
    """Be the command, as if it had been started with what comes there.

    Its files are only received here: a test that ends whatever has its files open would end the process of all tests.
    """
    from claudomator_py.__main__ import main as command

    text, fds = b"", list[int]()
    while not text.endswith(b"\n"):
        piece, more, *_ = socket.recv_fds(connection, _PIECE_BYTES, 3)
        if not piece:  # It was ended before it had asked.
            return 1
        text += piece
        fds += more
    request = ast.literal_eval(text.decode())["command"]
    dup = os.dup(connection.fileno())
    _take(request, fds, dup)
    os.umask(request["umask"])
    time.tzset()
    os.write(_FIRST_FREE, b"%d\n" % os.getpid())
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115 - as long as the process lives
    sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115 - likewise
    sys.argv = [str(Path(sys.executable).with_name("claudomator")), *request["arguments"]]
    if request["arguments"][:1] != ["serve"]:
        warnings.simplefilter("error")
    code: object = 0
    try:
        command()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            pass
    status = code if isinstance(code, int) else int(code is not None)
    os.write(_FIRST_FREE, b"%d\n" % status)
    return status


def _take(request: dict[str, Any], files: list[int], *further: int) -> None:
    """Go to its folder, with its variables, those three files and a further one, and nothing else of this process."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    for target, fd in enumerate([*files, *further]):
        os.dup2(fd, target)
    os.closerange(len(files) + len(further), _FILES)


if __name__ == "__main__":
    main()
