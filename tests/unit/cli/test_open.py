"""``claudomator open``: the link that lets a browser in."""

import json
from urllib.parse import urlsplit

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
    told = json.loads(command("open", "-o", "json").stdout)
    assert told["url"].startswith(f"http://{daemon.page_host}/login?code=")
    assert told["expires_at"].endswith("Z")


def test_without_a_daemon_it_says_how_to_start_one(offline: Command) -> None:
    done = offline("open")
    assert done.returncode == 3
    assert "claudomator serve" in done.stderr
