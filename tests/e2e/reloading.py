"""Have a daemon read its configuration again."""

import json
import signal
import sqlite3
from contextlib import closing
from typing import Any

from claudomator_py.domain.health import CheckView
from tests.e2e.daemon import Daemon
from tests.e2e.site import Site
from tests.patience import wait_until


def events(site: Site, kind: str) -> list[dict[str, Any]]:
    """What the events of that kind tell, in order."""
    with closing(sqlite3.connect(f"file:{site.state / 'claudomator.db'}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT data FROM event WHERE kind = ? ORDER BY id", (kind,)).fetchall()
    return [json.loads(data) for (data,) in rows]


def reload(site: Site, daemon: Daemon, **config: Any) -> dict[str, Any]:
    """Have it take that configuration into use; what the event of it tells."""
    before = len(events(site, "config_reloaded"))
    site.configure(**config)
    daemon.send(signal.SIGHUP)
    return wait_until(lambda: events(site, "config_reloaded")[before:], "the reload")[0]


def configuration(daemon: Daemon) -> CheckView:
    """What readiness says of the configuration."""
    return next(check for check in daemon.client.readiness().checks if check.name == "configuration")
