"""The web server is imported when the first connection comes: a daemon works without it, and whoever comes waits."""

import http.client
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.daemon import published_url
from tests.e2e.scenarios_support import document, ended
from tests.e2e.site import REPOSITORY, Site, open_site
from tests.fakes.service_manager import ServiceManager
from tests.patience import PATIENCE_S, wait_until

SIMULTANEOUS = 12


@pytest.fixture
def cold_site(tmp_path: Path) -> Iterator[Site]:
    """A place for daemons that import everything themselves."""
    with open_site(tmp_path / "site") as site:
        yield site


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ServiceManager]:
    with ServiceManager(tmp_path / "notify") as listening:
        yield listening


def livez(site: Site) -> int:
    """The status of an answer to a request on a connection of its own."""
    url = published_url(site.state)
    assert url is not None
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status
    finally:
        connection.close()


def livez_by_socket(site: Site) -> int:
    """The same, on the Unix socket of this user's own commands."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_S)
        sock.connect(str(site.state / "api.sock"))
        sock.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return int(sock.makefile("rb").readline().split()[1])


def test_a_daemon_that_nobody_asks_works_and_stops(cold_site: Site, manager: ServiceManager) -> None:
    daemon = cold_site.start(NOTIFY_SOCKET=manager.address)
    manager.next(lambda message: message.get("READY") == "1", "readiness")
    cold_site.drop("one.yaml", document("one", f"do: touch {cold_site.root / 'seen'}"))
    wait_until((cold_site.root / "seen").exists, "the task")
    assert daemon.stop() == 0
    assert cold_site.endpoint is None


def test_all_who_come_at_once_are_answered(cold_site: Site, manager: ServiceManager) -> None:
    cold_site.start(NOTIFY_SOCKET=manager.address)
    manager.next(lambda message: message.get("READY") == "1", "readiness")
    with ThreadPoolExecutor(2 * SIMULTANEOUS) as clients:
        answers = [clients.submit(ask, cold_site) for ask in (livez, livez_by_socket) for _ in range(SIMULTANEOUS)]
        assert [each.result() for each in answers] == [200] * 2 * SIMULTANEOUS


def test_a_library_that_is_broken_ends_no_work_and_is_tried_again(cold_site: Site, manager: ServiceManager) -> None:
    broken = cold_site.root / "broken"
    (broken / "uvicorn").mkdir(parents=True)
    (broken / "uvicorn" / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    daemon = cold_site.start(NOTIFY_SOCKET=manager.address, PYTHONPATH=f"{broken}:{REPOSITORY}")
    manager.next(lambda message: message.get("READY") == "1", "readiness")
    with pytest.raises(ConnectionError):
        livez(cold_site)
    assert "web_server_not_made" in cold_site.log_text()
    assert "ImportError: broken on purpose" in cold_site.log_text()
    cold_site.drop("one.yaml", document("one", f"do: touch {cold_site.root / 'seen'}"))
    wait_until((cold_site.root / "seen").exists, "the task")

    shutil.rmtree(broken / "uvicorn")

    assert livez(cold_site) == 200
    assert ended(daemon, "one").state == "COMPLETED"
    assert daemon.stop() == 0
