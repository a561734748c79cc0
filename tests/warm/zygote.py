"""Forks the fork servers of daemons that were forked themselves: to begin with Python is most of what one costs.

It is as bare as they are, ``python -I -S`` without variables, and has imported what they would. On the listening socket
at its standard input, each connection is a message of JSON, ``{"command", "cwd", "limits"}``, with the three files that
the process begins with; it is answered with the pid. Of the command, ``python FLAGS -c CODE ARGUMENT...``, the code is
run.
"""

import ctypes
import json
import os
import resource
import signal
import socket
import sys
import traceback
from typing import Any

from claudomator_py.hosts.shim import forkserver  # what the code imports

__all__ = ["forkserver", "serve"]
_PR_SET_PDEATHSIG = 1
_LONGEST = 1 << 16
"""Bytes of a request."""
_FILES = 1_024
"""More than this process has open."""


def serve() -> None:
    """Until the process that has started this ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=0) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                text, fds, *_ = socket.recv_fds(connection, _LONGEST, 3)
                pid = os.fork()
                if not pid:
                    _become(json.loads(text), fds)
                for fd in fds:
                    os.close(fd)
                connection.send(b"%d" % pid)


def _become(request: dict[str, Any], fds: list[int]) -> None:
    """Run the code as an interpreter would that was started so, and end."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(request["cwd"])
        for number, limits in request["limits"]:
            resource.setrlimit(number, limits)
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        os.closerange(len(fds), _FILES)
        code = request["command"].index("-c") + 1
        sys.argv = ["-c", *request["command"][code + 1 :]]
        exec(request["command"][code], {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        os._exit(70)
    os._exit(0)
