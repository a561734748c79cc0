"""Real agent CLIs are kept within a reach, and what goes further is asked of a person, then let through: exactly it."""

import pytest

from tests.e2e.scenarios_support import ended, in_state, last_run, why
from tests.fakes.http_api import Text
from tests.patience import wait_until
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, Cli, each
from tests.real_clis.place import END_S, Place


@each(CLAUDE, CODEX, GEMINI, OPENCODE, QWEN)
def test_what_goes_too_far_is_asked_and_then_let_through_alone(place: Place, cli: Cli) -> None:
    acted = place.site.work / "acted"
    act = cli.shell(f"touch {acted}; git push --force origin main")
    place.api.script(act, Text("I may not."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, reach="network")
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert task.reason == "approval"
    assert not acted.exists()
    assert (task.reason_text or "").startswith(f"{cli.kind} asks to use ")
    assert f"(touch {acted}; git push --force origin main)" in (task.reason_text or "")
    first = last_run(daemon, "greet")
    place.api.script(act, cli.shell(f"touch {acted}2; git push origin :gone"), Text("One of two."))
    daemon.client.approve("greet")
    wait_until(lambda: last_run(daemon, "greet").id != first.id, "the next run", END_S)
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert acted.exists()
    assert not place.site.work.joinpath("acted2").exists()
    assert "git push origin :gone" in (task.reason_text or "")
    assert "Write a greeting." in str(place.api.requests[-1].body), "it is the same conversation"


@each(CLAUDE, CODEX, GEMINI, OPENCODE, QWEN)
@pytest.mark.parametrize("reach", ["network", "tree"])
def test_what_stays_within_is_not_disturbed(place: Place, cli: Cli, reach: str) -> None:
    work = "git add -A; git commit -qm 'npm publish: mend' --allow-empty; grep -r x . ; echo done > ok"
    place.api.script(place.writes(), cli.shell(work), Text("Done."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, reach=reach)
    task = ended(daemon, "greet", END_S)
    assert (task.state, task.runs) == ("COMPLETED", 1), why(daemon, "greet")
    assert place.greeting.exists()
    assert (place.site.work / "ok").exists()
