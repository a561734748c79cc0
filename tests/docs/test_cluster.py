"""The page that sets up a cluster, followed on a fresh machine: from Debian's packages to a night of 24 tasks."""

import socket
from pathlib import Path

import pytest

from tests.docs.follow import follow_in
from tests.docs.fresh import fresh_machine, obstacle

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "how-to" / "cluster.md"
PORTS = (6817, 8484, 17001, 17002)
PATIENCE_S = 300.0

# On a loaded machine the whole page takes more than the 900 s of other tests; each command has a limit of its own.
pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.timeout(3_600)]


def test_a_fresh_machine_becomes_a_cluster_by_the_page_alone(tmp_path: Path) -> None:
    if (why := obstacle()) is not None:
        pytest.skip(why)
    for port in PORTS:
        # That machine has no network of its own, as it loads packages.
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"port {port} of the page is in use here")
    with fresh_machine(tmp_path / "machine", REPOSITORY) as terminal:
        assert follow_in(terminal, PAGE, patience_s=PATIENCE_S) > 0
        began = terminal.run("for run in /srv/claudomator/runs/*; do ls $run; done | grep -c started")
        assert int(began) >= 25
