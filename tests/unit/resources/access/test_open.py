"""``claudomator open``: the link that lets a browser in."""

import html
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.fakes.command import Command
from tests.fakes.daemon import Daemon


def test_open_prints_a_link_that_works_once(command: Command, daemon: Daemon) -> None:
    done = command("open")
    assert done.returncode == 0
    url = urlsplit(done.stdout.strip())
    assert f"{url.scheme}://{url.netloc}" == f"http://{daemon.page_host}"
    sent = {
        "Authorization": None,
        "Host": daemon.page_host,
        "Origin": f"http://{daemon.page_host}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    body = url.query.encode()
    assert daemon.ask("POST", url.path, body=body, headers=sent).status == 303
    assert daemon.ask("POST", url.path, body=body, headers=sent).status == 403


def test_the_link_holds_no_token(command: Command, daemon: Daemon) -> None:
    assert daemon.token not in command("open").stdout


def test_open_in_json(command: Command, daemon: Daemon) -> None:
    record = json.loads(command("open", "-o", "json").stdout)
    assert record["url"].startswith(f"http://{daemon.page_host}/login?code=")
    assert record["expires_at"].endswith("Z")


def test_without_a_daemon_it_says_how_to_start_one(offline: Command) -> None:
    done = offline("open")
    assert done.returncode == 3
    assert "claudomator serve" in done.stderr


@pytest.fixture
def browser(tmp_path: Path) -> Path:
    """A browser that writes down what it was started with, which every user could read, and keeps what it was shown."""
    program = tmp_path / "browser"
    program.write_text(
        f"""#!/bin/sh
echo "$@" > {tmp_path}/arguments
cp "${{1#file://}}" {tmp_path}/shown
stat -c '%a %U' "${{1#file://}}" > {tmp_path}/mode
"""
    )
    program.chmod(0o755)
    return program


def test_the_link_is_in_no_argument_of_the_browser(forked: Command, browser: Path, daemon: Daemon) -> None:
    left = daemon.state_dir / "login-old.html"
    left.touch()
    os.utime(left, (0, 0))
    done = forked("open", "--browser", BROWSER=f"{browser} %s")
    assert done.returncode == 0
    link = done.stdout.strip()
    arguments = (browser.parent / "arguments").read_text().strip()
    page = Path(arguments.removeprefix("file://"))
    assert (page.parent, page.suffix) == (daemon.state_dir, ".html")
    assert link.partition("code=")[2] not in arguments
    assert f"url={html.escape(link)}" in (browser.parent / "shown").read_text()
    assert (browser.parent / "mode").read_text().split() == ["600", page.owner()]
    assert not left.exists()
    assert "open the link yourself" in done.stderr
    page.unlink()


def test_without_a_state_folder_the_page_is_in_the_folder_of_the_session(
    forked: Command, browser: Path, daemon: Daemon, tmp_path: Path
) -> None:
    session = tmp_path / "session"
    session.mkdir(mode=0o700)
    where = {"CLAUDOMATOR_URL": daemon.url, "CLAUDOMATOR_TOKEN": daemon.token, "BROWSER": f"{browser} %s"}
    done = forked("open", "--browser", XDG_RUNTIME_DIR=str(session), **where)
    assert f"file://{session}/login-" in (browser.parent / "arguments").read_text()
    session.chmod(0o755)
    (browser.parent / "arguments").unlink()
    done = forked("open", "--browser", XDG_RUNTIME_DIR=str(session), **where)
    assert (done.returncode, "/login?code=" in done.stdout) == (0, True)
    assert "open the link yourself" in done.stderr
    assert not (browser.parent / "arguments").exists()


def test_a_browser_that_does_not_start_leaves_no_page(forked: Command, daemon: Daemon) -> None:
    done = forked("open", "--browser", BROWSER="false %s", PATH="/nonexistent")
    assert done.returncode == 0
    assert "Could not start a browser" in done.stderr
    assert not list(daemon.state_dir.glob("login-*"))
