"""Real agent CLIs go on in the conversation of another task: ``continues``, in a folder or a scratch folder."""

import json
import shutil

from tests.e2e.scenarios_support import ended, last_run, why
from tests.fakes.http_api import INPUT_TOKENS, Text
from tests.real_clis.clis import CLAUDE, CODEX, Cli, each
from tests.real_clis.conversation import MEMORY, TOLD, begun, heard
from tests.real_clis.place import END_S, Place

both = each(CLAUDE, CODEX)
NEXT = "Now translate it."


@both
def test_it_knows_what_the_other_was_told_and_counts_its_own_share(place: Place, cli: Cli) -> None:
    daemon, first = begun(place)
    place.api.script(Text("I did."))
    place.drop("translate", instructions=NEXT, working_dir=None, continues="greet")
    task = ended(daemon, "translate", END_S)
    assert (task.state, task.result_text) == ("COMPLETED", "I did."), why(daemon, "translate")
    run = last_run(daemon, "translate")
    assert run.resumes == first.id
    assert run.outcome is not None
    assert first.outcome is not None
    assert run.outcome.conversation_id == first.outcome.conversation_id
    assert run.outcome.tokens.input == INPUT_TOKENS
    assert TOLD in heard(place), "it remembers the other task"
    assert NEXT in heard(place)

    place.api.script(Text("And that."))
    place.drop("shorten", instructions="And shorten it.", working_dir=None, continues="greet")
    assert ended(daemon, "shorten", END_S).state == "COMPLETED"
    assert last_run(daemon, "shorten").resumes == run.id
    assert NEXT in heard(place), "the turn before it is of a third task"


@both
def test_it_works_in_the_folder_of_the_other(place: Place, cli: Cli) -> None:
    place.api.script(Text("I have."))
    daemon = place.start()
    place.drop("greet")
    assert ended(daemon, "greet", END_S).state == "COMPLETED"
    place.api.script(Text("I did."))
    place.drop("translate", instructions=NEXT, working_dir=None, continues="greet")
    task = ended(daemon, "translate", END_S)
    assert (task.state, task.working_dir) == ("COMPLETED", daemon.client.task("greet").working_dir)
    assert last_run(daemon, "translate").resumes == last_run(daemon, "greet").id
    assert TOLD in json.dumps(place.api.requests[-1].body)


@both
def test_one_that_has_forgotten_begins_afresh_with_a_note(place: Place, cli: Cli) -> None:
    daemon, first = begun(place)
    shutil.rmtree(place.site.root / "home" / MEMORY[cli])
    cli.settle_in(place.site.root / "home")
    place.api.script(Text("I did."))
    place.drop("translate", instructions=NEXT, working_dir=None, continues="greet")
    task = ended(daemon, "translate", END_S)
    assert (task.state, task.attempts) == ("COMPLETED", 1), why(daemon, "translate")
    assert [run.resumes for run in daemon.client.runs("translate")] == [first.id, None]
    assert "continues another one, greet" in heard(place)
    assert "I have." in heard(place), "what the other said last"
