"""The command ``claudomator`` without its start: forked from a process that has imported everything.

A program on the reader's PATH sends its arguments, variables, folder and the first three files through a socket, passes
signals on, and exits as the command did. Of itself it imports so little that it costs a fiftieth of a second.
"""

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

_PR_SET_PDEATHSIG = 1
_REPOSITORY = Path(__file__).parents[2]


@contextmanager
def warm_command() -> Iterator[list[str]]:
    """The command line that stands for ``claudomator``. With the block, all that it has started ends."""
    with tempfile.TemporaryDirectory(prefix="claudomator-docs-") as folder:
        path = Path(folder, "socket")
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.docs.warm", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_REPOSITORY,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield [sys.executable, "-I", "-S", str(Path(__file__).with_name("warm_client.py")), str(path)]
        finally:
            process.stdin.close()
            process.wait(PATIENCE_S)
            process.stdout.close()


def main() -> None:
    """Run commands until the standard input ends."""
    import claudomator_py.__main__  # noqa: F401 - with all that a command imports
    from tests.e2e.warm import warm_up

    warm_up()
    # Whoever asks learns the end of a command from the command itself.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in (found := select.select([listener, sys.stdin], [], [])[0]):
            if listener in found:
                _answer(listener)


def _answer(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        text, fds, *_ = socket.recv_fds(connection, 1 << 16, 3)
        while piece := connection.recv(1 << 16):
            text += piece
        if not os.fork():
            listener.close()
            code = 70
            try:
                code = _run(json.loads(text), fds, connection)
                connection.sendall(b"%d\n" % code)
            finally:
                os._exit(code)
    for fd in fds:
        os.close(fd)


def _run(request: dict[str, Any], fds: list[int], connection: socket.socket) -> int:
    """Run the command as if it had been started with that; its exit status."""
    from claudomator_py.__main__ import main as command

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
        os.close(fd)
    os.chdir(request["cwd"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    connection.sendall(b"%d\n" % os.getpid())
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115 - as long as the process lives
    sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115 - likewise
    sys.argv = [str(Path(sys.executable).with_name("claudomator")), *request["arguments"]]
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
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    main()
