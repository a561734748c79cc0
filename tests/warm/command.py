"""Have a command run by ``tests.warm.server``, with what this process was started with: SOCKET ARGUMENT..."""

import json
import os
import signal
import socket
import sys


def main() -> None:
    """Exit as the command does."""
    umask = os.umask(0)
    os.umask(umask)
    folder = os.getcwd()  # noqa: PTH109 - it starts faster without pathlib
    command = {"arguments": sys.argv[2:], "environ": dict(os.environ), "cwd": folder, "umask": umask}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        text = json.dumps({"command": command}).encode() + b"\n"
        sent = socket.send_fds(connection, [text], [0, 1, 2])
        connection.sendall(text[sent:])
        with connection.makefile() as answers:
            pid = int(answers.readline())
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, lambda number, _: os.kill(pid, number))
            code = answers.readline()
    # Without an answer it was killed.
    sys.exit(int(code) if code else 128 + signal.SIGKILL)


if __name__ == "__main__":
    main()
