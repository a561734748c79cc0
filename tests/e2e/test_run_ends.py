"""The end of a run behind a real daemon: a program that stays after its last word keeps neither slot nor folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scenarios_support import document, ended, in_state, last_run, why
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    """A site whose programs may stay for two seconds, with room for one run."""
    agents = {"simulated": {"kind": "simulated", "max_concurrent": 1}}
    limits = {"grace": "150ms", "min_free": "1MiB", "linger": "2s"}
    with open_site(tmp_path / "site", warm=warm, agents=agents, limits=limits) as opened:
        yield opened


def test_a_program_that_hangs_after_its_last_word_is_ended_with_its_success(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("hangs.yaml", document(None, 'simulate: linger=1h text="All done."', agent="simulated"))
    site.drop("next.yaml", document(None, "simulate: outcome=success", agent="simulated"))
    task = ended(daemon, "hangs")
    assert (task.state, task.attempts) == ("COMPLETED", 1)
    assert task.result_text == "[simulated] All done."
    assert "Its program did not exit after its last word, and was stopped." in why(daemon, "hangs")
    assert ended(daemon, "next").state == "COMPLETED"


def test_it_is_ended_whether_or_not_the_daemon_lives(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("hangs.yaml", document(None, "simulate: linger=1h", agent="simulated"))
    in_state(daemon, "hangs", "RUNNING")
    folder = site.state / "runs" / last_run(daemon, "hangs").id
    wait_until((folder / "wind-down.json").exists)
    daemon.kill()
    wait_until((folder / "exit.json").exists)
    assert ended(site.start().ready(), "hangs").state == "COMPLETED"


def test_a_daemon_that_was_away_when_it_had_its_last_word_ends_it(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("hangs.yaml", document(None, "simulate: delay=2s linger=1h", agent="simulated"))
    in_state(daemon, "hangs", "RUNNING")
    output = site.state / "runs" / last_run(daemon, "hangs").id / "stdout.jsonl"
    daemon.kill()
    wait_until(lambda: '"type": "end"' in output.read_text())
    assert ended(site.start().ready(), "hangs").state == "COMPLETED"
