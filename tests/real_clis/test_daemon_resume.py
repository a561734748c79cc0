"""Real agent CLIs go on in their conversations: ``restart`` with ``resume``.

Without a working directory: they all have to find the conversation in the scratch folder of the task's first run.
"""

import shutil

import pytest

from claudomator_py.domain.requests import RestartRequest
from claudomator_py.resources.runs import RunView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import ended, last_run, why
from tests.fakes.http_api import INPUT_TOKENS, OUTPUT_TOKENS, Text
from tests.patience import wait_until
from tests.real_clis.clis import GEMINI, Cli, each
from tests.real_clis.conversation import MEMORY, TOLD, begun, heard
from tests.real_clis.place import END_S, SLEEP, Place


def resumed(daemon: Daemon, reason: str) -> RunView:
    """Restart it so, and wait for the end of its run."""
    daemon.client.restart("greet", RestartRequest(resume=True, reason=reason))
    task = ended(daemon, "greet", END_S)
    assert task.state == "COMPLETED", why(daemon, "greet")
    return last_run(daemon, "greet")


@each()
def test_it_remembers_over_several_resumptions_and_counts_each_runs_own_share(place: Place, cli: Cli) -> None:
    daemon, first = begun(place)
    assert first.outcome is not None
    for number, added in enumerate(("Make it longer.", "Make it shorter."), 2):
        place.api.script(Text(f"Answer {number}."))
        run = resumed(daemon, added)
        assert run.outcome is not None
        assert (run.outcome.text, run.outcome.conversation_id) == (f"Answer {number}.", first.outcome.conversation_id)
        assert TOLD in heard(place), "it remembers the first run"
        assert added in heard(place)
        assert (run.outcome.tokens.input, run.outcome.tokens.output) == (INPUT_TOKENS, OUTPUT_TOKENS)
        assert run.outcome.cost_usd == (
            pytest.approx(first.outcome.cost_usd) if cli.tells_dollars else first.outcome.cost_usd
        )
    assert "Make it longer." in heard(place)
    task, runs = daemon.client.task("greet"), daemon.client.runs("greet")
    assert [run.resumes for run in runs] == [None, runs[0].id, runs[1].id]
    assert task.tokens.input == 3 * INPUT_TOKENS
    assert f"resumes the conversation of run {runs[1].id[:8]} on {cli.kind}" in why(daemon, "greet")


@each()
def test_a_conversation_that_it_has_forgotten_begins_afresh(place: Place, cli: Cli) -> None:
    daemon, first = begun(place)
    shutil.rmtree(place.site.root / "home" / MEMORY[cli])
    cli.settle_in(place.site.root / "home")
    place.api.script(Text("A new one."))

    last = resumed(daemon, "Make it longer.")

    runs = daemon.client.runs("greet")
    assert [run.resumes for run in runs] == [None, first.id, None], why(daemon, "greet")
    assert runs[1].outcome is not None
    assert runs[1].outcome.reason == "bad_invocation"
    assert last.outcome is not None
    assert last.outcome.text == "A new one."
    assert TOLD in heard(place)
    assert "Make it longer." in heard(place)
    assert daemon.client.task("greet").attempts == 1
    assert f"The conversation of run {first.id[:8]} was given up: {cli.kind} no longer knows it" in why(daemon, "greet")


@each()
def test_a_run_cancelled_in_the_middle_of_a_tool_goes_on_where_it_was(place: Place, cli: Cli) -> None:
    place.api.script(place.sleeps(), Text("Slept."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands)
    place.until_begun()
    first = last_run(daemon, "greet")
    place.api.script(Text("Awake."))

    daemon.client.restart("greet", RestartRequest(resume=True, force=True, reason="Do not sleep."))

    wait_until(lambda: last_run(daemon, "greet").id != first.id, "the next run", END_S)
    task = ended(daemon, "greet", END_S)
    assert (task.state, task.result_text, task.generation) == ("COMPLETED", "Awake.", 2), why(daemon, "greet")
    assert last_run(daemon, "greet").resumes == first.id
    assert TOLD in heard(place)
    # Gemini CLI keeps a tool call when that has ended.
    assert (SLEEP in heard(place)) is (cli is not GEMINI), "it knows what it was doing"
    assert "Do not sleep." in heard(place)
