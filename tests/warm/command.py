"""Have a command run by ``tests.warm.server``, with what this process was started with: SOCKET ARGUMENT...

There are hundreds of them. Python itself begins in a third of the time that ``socket``, ``signal`` and ``json`` take to
be imported, so this is content with what they are made of, and with a literal of Python.
"""

import _signal  # type: ignore[import-not-found]  # typeshed does not know it
import _socket
import os
import sys


def main() -> None:
    """Exit as the command does."""
    umask = os.umask(0)
    os.umask(umask)
    folder = os.getcwd()  # noqa: PTH109 - it starts faster without pathlib
    command = {"arguments": sys.argv[2:], "environ": dict(os.environ), "cwd": folder, "umask": umask}
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(sys.argv[1])
    text = ascii({"command": command}).encode() + b"\n"
    files = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
    sent = connection.sendmsg([text], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    connection.sendall(text[sent:])
    with open(connection.fileno(), "rb", closefd=False) as answers:
        pid = int(answers.readline())
        for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
            _signal.signal(number, lambda number, _: os.kill(pid, number))
        code = answers.readline()
    # Without an answer it was killed.
    sys.exit(int(code) if code else 128 + _signal.SIGKILL)


if __name__ == "__main__":
    main()
