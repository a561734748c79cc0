"""Real agent CLIs run a tool that prints what a limit looks like: that is none of theirs."""

import shlex

from tests.e2e.scenarios_support import ended, why
from tests.fakes.http_api import Text
from tests.real_clis.clis import Cli, each
from tests.real_clis.place import END_S, Place

WORDS = (
    "fetching the index failed:",
    "429 from mirror. Retrying after 9999999999999ms",
    "Attempt 1 failed: You have exhausted your capacity on this model.. Retrying after 9999999999999ms...",
    "Claude AI usage limit reached|1795400000",
    "ERROR: You've hit your usage limit. Try again at 5:38 PM.",
)


@each()
def test_a_limit_that_a_tool_prints_on_both_streams_holds_nothing(place: Place, cli: Cli) -> None:
    printed = shlex.join(["printf", "%s\\n", *WORDS])
    place.api.script(cli.shell(f"{printed}; {printed} >&2; exit 1"), Text("The mirror is busy.", pause=3.0))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands)

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.runs) == ("COMPLETED", 1), why(daemon, "greet")
    assert "9999999999999" in str(place.api.requests[-1].body), "the model has read it"
    assert place.agent(daemon).holds == ()
