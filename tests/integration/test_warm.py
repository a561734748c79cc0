"""The processes that daemons, fork servers and shims of tests are forked from."""

import socket
from contextlib import closing
from pathlib import Path

from tests.warm.bare import Zygote


def test_a_zygote_outlives_whoever_asks_it(tmp_path: Path) -> None:
    """Tests end daemons at any moment, also while they ask for a fork server."""
    code = {"command": ["python", "-c", "pass"], "environ": {}, "cwd": "/", "umask": 0o22, "limits": []}
    with closing(Zygote()) as zygote, (tmp_path / "files").open("w+") as file:
        for _ in range(5):
            with zygote.asked({**code, "new_session": False}, [file.fileno()] * 3):
                pass
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
                silent.connect(zygote._address)
        files = [file.fileno()] * 3
        assert zygote.start(["python", "-c", "print('here')"], environ={}, files=files).wait() == 0
        assert (tmp_path / "files").read_text() == "here\n"
