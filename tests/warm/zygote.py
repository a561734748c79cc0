"""Forks Pythons: shims, clients of remote agents, simulated agents, fork servers, and whatever tests kill. To begin is
most of what a Python costs. ``tests.warm.bare`` asks for them.

It is as bare as they are, ``python -I -S -X utf8`` most of them, without variables, and has imported what they would.
On the listening socket at its standard input, each connection is a message of JSON and its answer. ``{"command",
"environ", "cwd", "umask", "limits", "new_session"}`` comes with the three files that the process begins with, and is
answered with the pid; ``{"wait": pid}`` with the exit status, negative for a signal, once there is one; ``{"signal":
number, "pid"}`` with nothing, once it is sent.
"""

import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

_MAX_MESSAGE_BYTES = 1 << 17
"""Bytes of a request."""
_PR_SET_PDEATHSIG = 1
_FILES = 1_024
"""More than this process has open."""


def serve(*imported: str) -> None:
    """Until its starter ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for name in imported:
        importlib.import_module(name)
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as listener:
        request, fds = _Parent(listener).serve()
    _become(request, fds)


class _Parent:
    """Has children, and knows how those have ended that are no more."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._living: dict[int, int] = {}  # pid by the descriptor that tells of its end
        self._ended: dict[int, int] = {}  # exit status by pid
        self._waiting: dict[int, socket.socket] = {}  # who waits for that pid

    def serve(self) -> tuple[dict[str, Any], list[int]]:
        """In each process that is forked, what was asked for with it."""
        while True:
            watched: list[Any] = [self._listener, *self._living]
            for entry in select.select(watched, [], [])[0]:
                if isinstance(entry, int):
                    self._bury(self._living.pop(entry))
                    os.close(entry)
                elif begun := self._hear(entry.accept()[0]):
                    return begun

    def _hear(self, connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
        # What comes with it is only received in the child: a test that ends whatever has its files open would end this.
        message = b""
        with suppress(ConnectionResetError):
            message = connection.recv(_MAX_MESSAGE_BYTES, socket.MSG_PEEK)
        if not message:  # a test has ended who was about to ask
            connection.close()
            return None
        request = json.loads(message)
        if "command" not in request:
            connection.recv(_MAX_MESSAGE_BYTES)
        if "wait" in request:
            self._waiting[request["wait"]] = connection
            self._tell(request["wait"])
            return None
        with connection:
            if "signal" in request:
                if request["pid"] in self._living.values():
                    os.kill(request["pid"], request["signal"])
            elif pid := os.fork():
                self._ended.pop(pid, None)
                self._living[os.pidfd_open(pid)] = pid
                with suppress(BrokenPipeError, ConnectionResetError):
                    connection.send(b"%d" % pid)
            else:
                for waiting in self._waiting.values():
                    waiting.close()
                return request, socket.recv_fds(connection, _MAX_MESSAGE_BYTES, 3)[1]
        return None

    def _bury(self, pid: int) -> None:
        self._ended[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._tell(pid)

    def _tell(self, pid: int) -> None:
        """Whoever waits for that one, if it has ended."""
        if pid in self._ended and pid in self._waiting:
            with self._waiting.pop(pid) as connection, suppress(BrokenPipeError, ConnectionResetError):
                connection.send(b"%d" % self._ended[pid])


def _become(request: dict[str, Any], fds: list[int]) -> None:
    """Be as a Python is that was started so, run what it is to run, and end."""
    status: object = 0
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 0)
        if request["new_session"]:
            os.setsid()
        os.chdir(request["cwd"])
        os.umask(request["umask"])
        os.environ.update(request["environ"])
        for number, limits in request["limits"]:
            resource.setrlimit(number, limits)
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        os.closerange(len(fds), _FILES)
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        exec(_code(request["command"]), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    # What the interpreter would free one by one until it ends is most of what a process costs that was forked.
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


def _code(command: list[str]) -> Any:
    """What that command line has Python run, whose arguments it takes."""
    if "-c" in command:
        code = command.index("-c") + 1
        sys.argv = ["-c", *command[code + 1 :]]
        return command[code]
    program = next(word for word in command[1:] if not word.startswith("-"))
    sys.argv = command[command.index(program) :]
    return compile(Path(program).read_bytes(), program, "exec")
