"""The examples in the client's documentation, as its reader would try them."""

import doctest
from pathlib import Path

import pytest

import claudomator_py.client
from tests.e2e.site import open_site
from tests.warm.starter import WarmStarter

AGENTS = {"simulated": {"kind": "simulated", "auto_select": True}}


def test_the_examples_do_what_they_say(tmp_path: Path, warm: WarmStarter, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_site(tmp_path / "site", warm=warm, agents=AGENTS) as site:
        site.start().ready()
        monkeypatch.setenv("CLAUDOMATOR_URL", str(site.endpoint))
        monkeypatch.setenv("CLAUDOMATOR_TOKEN", (site.state / "token").read_text().strip())
        monkeypatch.chdir(tmp_path)
        failed, attempted = doctest.testmod(claudomator_py.client)
    assert attempted > 10
    assert failed == 0
