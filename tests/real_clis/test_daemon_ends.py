"""Real agent CLIs are ended in the middle of a tool call: whatever they had started ends with them."""

from claudomator_py.resources.runs import OutcomeView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import ended
from tests.fakes.http_api import Hang
from tests.real_clis.clis import Cli, each
from tests.real_clis.place import END_S, SLEEP, Place, outcome_of


def ends_with_nothing_left(place: Place, daemon: Daemon) -> OutcomeView:
    outcome = outcome_of(daemon, "greet")
    assert not place.running(SLEEP)
    assert not place.running(place.cli.program.name)
    assert daemon.stop() == 0
    place.site.no_processes()
    return outcome


@each()
def test_a_cancel_in_the_middle_of_a_tool_leaves_nothing_alive(place: Place, cli: Cli) -> None:
    place.api.script(place.sleeps(), Hang())
    daemon = place.start()
    place.drop("greet", permissions=cli.commands)
    place.until_begun()

    daemon.client.cancel("greet")

    assert ended(daemon, "greet", END_S).state == "CANCELLED"
    assert ends_with_nothing_left(place, daemon).status == "cancelled"


@each()
def test_a_timeout_in_the_middle_of_a_tool_leaves_nothing_alive(place: Place, cli: Cli) -> None:
    # Codex asks on after ten seconds, with its tool still at work.
    place.api.script(place.sleeps(), Hang())
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, timeout=f"{cli.start_s}s")
    place.until_begun()

    task = ended(daemon, "greet", END_S)

    assert (task.state, task.reason, task.attempts) == ("FAILED", "timeout", 1), task
    assert ends_with_nothing_left(place, daemon).reason == "timeout"


@each()
def test_a_service_that_never_answers_costs_the_timeout(place: Place, cli: Cli) -> None:
    place.api.script(Hang())
    daemon = place.start()
    place.drop("greet", timeout="10s")

    task = ended(daemon, "greet", END_S)

    assert (task.state, task.reason) == ("FAILED", "timeout"), task
    assert ends_with_nothing_left(place, daemon).reason == "timeout"
