"""A shadow configuration beside a real daemon: put in force and out by a reload, and caught up with after a kill."""

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from claudomator_py.domain.requests import DecisionFilter
from claudomator_py.resources.decisions import DecisionView
from tests.e2e.daemon import Daemon
from tests.e2e.reloading import configuration, reload
from tests.e2e.scenarios_support import document, ended
from tests.e2e.site import Site
from tests.patience import wait_until

OFF = {"preset": "none"}
NO_DEPLOYS = {"name": "no-deploys", "when": "'deploy' in task.tags", "deny": "not at night"}


def write(site: Site, **settings: Any) -> Path:
    """The other configuration, beside that of the site."""
    path = site.config_file.with_name("other.yaml")
    path.write_text(json.dumps(settings, indent=2))
    return path


def shadows(daemon: Daemon, number: int) -> list[DecisionView]:
    """As many as there are to be, by now or soon."""

    def there() -> list[DecisionView] | None:
        decisions = [
            item for item in daemon.client.decisions(DecisionFilter(kind="shadow")).items if item.shadow is not None
        ]
        return decisions if len(decisions) >= number else None

    return wait_until(there, f"{number} shadows")


def followed(site: Site) -> str | None:
    """The hash of the configuration that the daemon decides by in the shadow, once it does."""
    with closing(sqlite3.connect(f"file:{site.state / 'claudomator.db'}?mode=ro", uri=True)) as connection:
        row = connection.execute("SELECT data FROM remembered WHERE name = 'shadow'").fetchone()
    return None if row is None else str(json.loads(row[0])["configuration"])


def test_it_decides_about_live_tasks_and_nothing_follows_and_a_kill_loses_none(site: Site) -> None:
    write(site, policy=[NO_DEPLOYS], routing=OFF)
    site.configure(shadow="other.yaml", routing=OFF)
    daemon = site.start().ready()
    wait_until(lambda: followed(site), "the beginning")
    site.drop("a.yaml", document("a", tags=["deploy"]))

    assert ended(daemon, "a").state == "COMPLETED"
    results = {shadow.shadow.about: shadow for shadow in shadows(daemon, 2) if shadow.shadow is not None}
    refused = results["specialist"]
    assert refused.verdict is not None
    assert (refused.verdict.verdict, refused.verdict.rules) == ("denied", ("no-deploys",))
    assert refused.shadow is not None
    assert refused.shadow.actual.verdict == "allowed"

    site.drop("b.yaml", document("b", tags=["deploy"]))
    ended(daemon, "b")
    daemon.kill()
    daemon = site.start().ready()
    assert len(shadows(daemon, 4)) == 4
    assert daemon.stop() == 0


def test_one_that_cannot_be_used_is_refused_with_its_place(site: Site) -> None:
    path = write(site, policy=[{"name": "no", "when": "task.nonsense", "deny": "no"}])
    site.configure(shadow="other.yaml")
    assert site.start().wait() == 1
    assert f"{path}:" in site.log_text()
    assert "policy[0].when" in site.log_text()

    site.configure(shadow="gone.yaml")
    assert site.start().wait() == 1
    assert f"{path.with_name('gone.yaml')}: cannot be read: no such file or directory" in site.log_text()

    write(site, shadow="further.yaml")
    site.configure(shadow="other.yaml")
    assert site.start().wait() == 1
    assert f"{path}: shadow: is the key of a configuration that is itself a shadow" in site.log_text()


def test_it_comes_changes_and_goes_with_a_reload(site: Site) -> None:
    site.configure(routing=OFF)
    daemon = site.start().ready()
    write(site, policy=[NO_DEPLOYS], routing=OFF)
    assert reload(site, daemon, shadow="other.yaml", routing=OFF)["needs_restart"] == []
    wait_until(lambda: followed(site), "the beginning")
    site.drop("a.yaml", document("a", tags=["deploy"]))
    before = {shadow.id for shadow in shadows(daemon, 2)}

    # Its file alone is changed: the configuration that names it stays as it is.
    write(site, policy=[{**NO_DEPLOYS, "name": "moved"}], routing=OFF)
    former = followed(site)
    reload(site, daemon, shadow="other.yaml", routing=OFF)
    wait_until(lambda: followed(site) != former, "the other one")
    site.drop("b.yaml", document("b", tags=["deploy"]))
    ended(daemon, "b")
    fresh = [shadow for shadow in shadows(daemon, 4) if shadow.id not in before]
    assert [entry.verdict.rules for entry in fresh if entry.verdict is not None] == [("moved",)]

    write(site, policy=[{"name": "no", "when": "task.nonsense", "deny": "no"}])
    site.configure(shadow="other.yaml", routing=OFF)
    daemon.send(signal.SIGHUP)
    refused = wait_until(lambda: None if configuration(daemon).ok else configuration(daemon), "the refusal")
    assert "other.yaml" in str(refused.detail)
    assert "policy[0].when" in str(refused.detail)
    assert daemon.stop() == 0
