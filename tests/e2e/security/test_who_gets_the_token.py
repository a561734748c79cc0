"""The command line sends the token to this user's own daemon, and to nobody who listens where one was."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest

from claudomator_py.client import DaemonNotRunning, connect
from tests.e2e.scenarios_support import document
from tests.e2e.security.second_user import NOBODY
from tests.e2e.site import Site, open_site
from tests.fakes.command import QuickCommand
from tests.patience import PATIENCE_S
from tests.warm.starter import WarmStarter

NOT_RUNNING, NOT_AUTHORISED = 3, 4

# Becomes the user, after its imports: the interpreter's own folder may be closed to him. Then it listens on the port,
# tells that it does, and prints what it is sent by each who connects.
EAVESDROPPER = """
import encodings.idna, os, socket, sys
port, user = map(int, sys.argv[1:])
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen()
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    connection.settimeout(120)
    print(connection.recv(65536), flush=True)
    connection.close()
"""


@contextmanager
def eavesdropping(url: str) -> Iterator[IO[str]]:
    """Another user who listens at that URL; what he is sent, a line for each connection."""
    command = [sys.executable, "-I", "-S", "-c", EAVESDROPPER, str(urlsplit(url).port), str(NOBODY)]
    with subprocess.Popen(command, env={}, cwd="/", stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "listening\n"
            yield process.stdout
        finally:
            process.kill()


def nothing_was_sent(heard: IO[str], url: str) -> bool:
    """Whether all that he heard until now is silence; what ends it is a connection of our own."""
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=PATIENCE_S) as connection:
        connection.sendall(b"the end")
    messages = []
    while (line := heard.readline()) != "b'the end'\n":
        assert line, "he has ended"
        messages.append(line)
    return all(line == "b''\n" for line in messages)


@pytest.mark.needs_root
def test_who_takes_the_port_of_a_killed_daemon_is_sent_nothing(site: Site) -> None:
    daemon = site.start().ready()
    url = str(site.endpoint)
    token = (site.state / "token").read_text().strip()
    command = QuickCommand(site.root)
    daemon.kill()
    assert site.endpoint == url
    (site.root / "task.yaml").write_text(document("secret-plan", "Do nothing."))
    with eavesdropping(url) as heard:
        for without_socket in (False, True):
            if without_socket:  # as one of an earlier version leaves it
                (site.state / "api.sock").unlink(missing_ok=True)
            for words in (["status"], ["submit", "task.yaml"], ["logs", "any", "-f"], ["open"], ["doctor"]):
                for environ in ({}, {"CLAUDOMATOR_TOKEN": "of-another-daemon" * 3}):
                    done = command(*words, **environ)
                    assert done.returncode != 0, done
                    assert token not in done.stdout + done.stderr
        done = command("status", CLAUDOMATOR_URL=url)
        assert done.returncode == NOT_AUTHORISED
        assert f"uid {NOBODY}" in done.stderr
        assert nothing_was_sent(heard, url)


@pytest.mark.needs_root
def test_a_watch_that_outlives_its_daemon_sends_nothing_to_who_follows(site: Site) -> None:
    """It connects again by itself, so nobody looks at whom it reaches."""
    daemon = site.start().ready()
    url = str(site.endpoint)
    with connect(site.config_file) as client:
        events = client.events(after=0, patience_s=2)
        site.drop("it.yaml", document("it"))
        next(event for event in events if event.kind == "accepted")
        daemon.kill()
        with eavesdropping(url) as heard:
            with pytest.raises(DaemonNotRunning):
                list(events)
            assert nothing_was_sent(heard, url)


@pytest.fixture
def deep_site(warm: WarmStarter) -> Iterator[Site]:
    """An installation whose state folder has a path that no address of a socket has room for."""
    with tempfile.TemporaryDirectory(prefix="claudomator-") as folder:
        root = Path(folder, "d" * 100, "e" * 100)
        root.mkdir(parents=True)
        with open_site(root / "site", warm=warm) as site:
            yield site


def test_every_command_works_over_the_socket_alone(deep_site: Site) -> None:
    site = deep_site
    daemon = site.start().ready()
    url = str(site.endpoint)
    stat_result = (site.state / "api.sock").lstat()
    assert (stat_result.st_mode & 0o777, stat_result.st_uid) == (0o600, os.geteuid())
    with socket.socket() as nobody:  # bound, and not listening: TCP leads nowhere
        nobody.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        (site.state / "endpoint").write_text(f"{nowhere}\n")
        command = QuickCommand(site.root)
        (site.root / "task.yaml").write_text(document(None, "do: echo hello"))
        assert command("submit", "task.yaml", "--wait").returncode == 0
        assert command("logs", "task").stdout == "hello\n"
        assert command("logs", "task", "-f").stdout == "hello\n"
        for words in (["status"], ["why", "task"], ["show", "task"], ["agents"], ["drain"], ["undrain"], ["doctor"]):
            done = command(*words, "-o", "json")
            assert done.returncode in (0, 1), done
            assert "No daemon" not in done.stdout + done.stderr
        assert "/login?code=" in command("open", "--no-browser").stdout
    (site.state / "endpoint").write_text(f"{url}\n")
    assert daemon.stop() == 0
    assert not (site.state / "api.sock").exists()
    assert command("status").returncode == NOT_RUNNING


def test_the_socket_of_a_killed_daemon_is_replaced(site: Site) -> None:
    site.start().ready().kill()
    assert (site.state / "api.sock").is_socket()
    command = QuickCommand(site.root)
    assert command("status").returncode == NOT_RUNNING
    (site.state / "login-0123.html").write_text("to a link that the next daemon does not know")
    again = site.start().ready()
    assert command("status").returncode == 0
    assert not list(site.state.glob("login-*"))
    again.send(signal.SIGTERM)
    assert again.wait() == 0


def test_what_a_killed_daemon_announced_is_gone_before_the_next_one_names_itself(site: Site) -> None:
    site.start().ready().kill()
    assert (site.state / "api.sock").is_socket()
    assert site.start(crash_at="daemon-locked").wait() < 0
    assert not (site.state / "api.sock").exists()
