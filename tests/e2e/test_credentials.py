"""Secrets as files of the service manager: no environment holds them but that of whom they are for."""

from pathlib import Path
from typing import Any

import pytest

from claudomator_py.client import NotAuthorised
from claudomator_py.client.http import Client
from tests.e2e.scenarios_support import document, ended
from tests.e2e.site import Site
from tests.patience import PATIENCE_S, wait_until

TOKEN = "a-token-of-the-service-manager"


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    folder = tmp_path / "credentials"
    folder.mkdir()
    for name, value in {"token": TOKEN, "ONE_KEY": "first", "OTHER_KEY": "second", "HOME": "/nowhere"}.items():
        (folder / name).write_text(f"{value}\n")
    return folder


def agents(site: Site, **pass_env: list[str]) -> dict[str, Any]:
    """An agent for each, all of which do as their task says."""
    return {
        name: {"kind": "command", "command": site.ledger.agent, "pass_env": names} for name, names in pass_env.items()
    }


def test_a_run_gets_the_keys_of_its_agent_and_no_others(site: Site, credentials: Path) -> None:
    site.configure(agents=agents(site, one=["ONE_KEY"], both=["ONE_KEY", "OTHER_KEY"], none=[]))
    daemon = site.start(CREDENTIALS_DIRECTORY=str(credentials), OTHER_KEY="from the environment")
    url = wait_until(lambda: site.endpoint, "the endpoint")
    seen: dict[str, dict[str, str]] = {}
    with Client(url, TOKEN, timeout_s=PATIENCE_S) as client:
        for name in ("one", "both", "none"):
            site.drop(f"{name}.yaml", document(name, f"do: env > {site.root / name}", agent=name))
        wait_until(lambda: client.status().counts.get("COMPLETED") == 3, "the tasks")
    for name in ("one", "both", "none"):
        lines = (line.partition("=") for line in (site.root / name).read_text().splitlines())
        seen[name] = {key: value for key, _, value in lines}
    keys = {name: {key: value for key, value in env.items() if key.endswith("_KEY")} for name, env in seen.items()}
    own = {
        name: {key: value for key, value in results.items() if "CLAUDOMATOR" not in key}
        for name, results in keys.items()
    }
    assert own == {
        "one": {"ONE_KEY": "first"},
        "both": {"ONE_KEY": "first", "OTHER_KEY": "from the environment"},
        "none": {},
    }
    assert all(env["HOME"] == str(site.root / "home") for env in seen.values())
    assert not any("CREDENTIALS_DIRECTORY" in env for env in seen.values())
    assert daemon.stop() == 0


def test_the_operators_token_is_the_credential_and_is_written_nowhere(site: Site, credentials: Path) -> None:
    site.start(CREDENTIALS_DIRECTORY=str(credentials))
    url = wait_until(lambda: site.endpoint, "the endpoint")
    with Client(url, TOKEN, timeout_s=PATIENCE_S) as client:
        assert client.agents()
    with Client(url, "another-token-altogether", timeout_s=PATIENCE_S) as stranger, pytest.raises(NotAuthorised):
        stranger.agents()
    assert not (site.state / "token").exists()
    assert not any(TOKEN.encode() in path.read_bytes() for path in site.state.rglob("*") if path.is_file())


def test_a_credential_that_is_no_token_keeps_the_daemon_from_starting(site: Site, credentials: Path) -> None:
    (credentials / "token").write_text("short")
    daemon = site.start(CREDENTIALS_DIRECTORY=str(credentials))
    assert daemon.wait() == 1
    assert "does not hold a token" in site.log_text()


def test_without_credentials_the_token_is_made_as_ever(site: Site, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    daemon = site.start(CREDENTIALS_DIRECTORY=str(tmp_path / "empty")).ready()
    site.drop("one.yaml", document("one"))
    assert ended(daemon, "one").state == "COMPLETED"
