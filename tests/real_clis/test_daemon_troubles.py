"""Real agent CLIs find their service in trouble, or are refused by it: the right reason, and what follows from it."""

from tests.e2e.scenarios_support import ended, in_state, why
from tests.fakes.http_api import Text
from tests.patience import wait_until
from tests.real_clis.clis import CLAUDE, CODEX, NOBODY, Cli, each
from tests.real_clis.place import END_S, NEXT, Place, outcome_of


@each()
def test_an_overloaded_service_is_asked_again_after_a_pause(place: Place, cli: Cli) -> None:
    place.api.script(cli.overloaded())
    daemon = place.start()

    place.drop("greet", retry={"max_attempts": 2, "backoff": "1s"})

    outcome = outcome_of(daemon, "greet")
    assert (outcome.status, outcome.reason) == ("failed", "overloaded"), outcome
    held = place.agent(daemon)
    assert (held.limited, held.provenance) == (True, "estimated"), "it is left alone for a moment"
    place.api.script(place.writes(), Text("I wrote it."))
    daemon.client.release(cli.kind)

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.attempts, task.runs) == ("COMPLETED", 1, 2), "a run that was never answered is no attempt"
    assert f"Run 1 on {cli.kind} failed (overloaded)" in why(daemon, "greet")


@each(CLAUDE, CODEX)
def test_a_model_that_is_overloaded_is_replaced_by_the_agents_fallback(place: Place, cli: Cli) -> None:
    fallback = "haiku" if cli is CLAUDE else "gpt-6-luna"
    place.configure(fallback_model=fallback)
    place.api.script(cli.overloaded())
    daemon = place.start()
    place.drop("greet", retry={"max_attempts": 2, "backoff": "1s"})
    assert outcome_of(daemon, "greet").reason == "overloaded"
    place.api.script(place.writes(), Text("I wrote it."))

    task = ended(daemon, "greet", END_S)

    assert (task.state, task.attempts, task.model) == ("COMPLETED", 1, fallback), why(daemon, "greet")
    assert fallback in str(place.api.requests[-1].body["model"])
    assert f"{fallback} is its fallback_model after overloaded" in why(daemon, "greet")
    assert not place.agent(daemon).limited, "other models are not held"


@each()
def test_a_service_that_cannot_be_reached_uses_up_no_attempt(place: Place, cli: Cli) -> None:
    place.configure(origin=NOBODY)
    daemon = place.start()

    # Codex waits for ever, in silence, unlike in a slow start.
    patience = {"stall_timeout": "10s"} if cli is CODEX else {}
    place.drop("greet", retry={"max_attempts": 1}, **patience)

    assert outcome_of(daemon, "greet").reason == "network"
    held = place.agent(daemon)
    assert (held.limited, held.provenance) == (True, "estimated"), "no other task is to find that out"
    task = in_state(daemon, "greet", "QUEUED", "WAITING")
    assert (task.attempts, task.runs) == (0, 1), task
    assert place.api.heard == 0
    daemon.client.cancel("greet")
    assert ended(daemon, "greet", END_S).state == "CANCELLED"


@each()
def test_a_key_that_is_not_accepted_holds_it_until_it_is_released(place: Place, cli: Cli) -> None:
    place.api.script(cli.unauthorized())
    daemon = place.start()
    place.drop("greet")

    wait_until(lambda: place.agent(daemon).limited, "the hold", END_S)
    held = place.agent(daemon)
    assert "auth" in str(held.hold_reason)
    assert held.limited_until is None
    task = in_state(daemon, "greet", "QUEUED")
    assert task.attempts == 0
    assert f"claudomator release {cli.kind}" in str(task.reason_text)
    heard = place.api.heard

    place.api.script(place.writes(), Text("I wrote it."))
    place.drop("next")
    wait_until(lambda: in_state(daemon, "next", "QUEUED").reason == "limited", "the next task to wait for it, too")
    assert place.api.heard == heard, "it was asked although it is held"
    daemon.client.release(cli.kind)
    task = ended(daemon, "greet", END_S)
    assert (task.state, task.attempts) == ("COMPLETED", 1)


@each()
def test_without_a_key_the_task_flows_to_the_next_agent(place: Place, cli: Cli) -> None:
    place.configure(key={}, next_agent=True)
    place.api.script(cli.unauthorized())
    daemon = place.start({})

    place.drop("greet", retry={"max_attempts": 1})

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.agent, task.attempts) == ("COMPLETED", NEXT, 1), task
    assert "auth" in str(place.agent(daemon).hold_reason)
    assert place.agent(daemon).limited_until is None
