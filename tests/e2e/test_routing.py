"""Who does a task: routed by its text, named, continued, asked for; and what the run is told."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.requests import HoldRequest, RestartRequest
from claudomator_py.resources.routing import RouteRequest
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest, TaskView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, in_state, why
from tests.e2e.site import Site, open_site
from tests.fakes.cards import card
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

DONE = "simulate: outcome=success"
NAMES = ("task-17", "login-timeout", "shop", "review", "db-backup", "write-docs", "fix", "deploy")
CARDS = (
    card(
        "db-admin",
        description="Runs the databases.",
        system_prompt="You look after databases.",
        allowed_agents=["beta"],
        skills=[{"id": "backup", "name": "Backups", "examples": ["Restore last night's dump of the orders database"]}],
    ),
    card("doc-writer", description="Writes tutorials and release notes.", system_prompt="You write plainly."),
    card("generalist", description="Whatever nobody else does.", system_prompt="You do anything."),
)


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    agents = {name: {"kind": "simulated", "auto_select": True} for name in ("alpha", "beta")}
    with open_site(
        tmp_path / "site", warm=warm, agents=agents, routing={"shipped": False}, concurrency={"total": 8}
    ) as site:
        yield site


@pytest.fixture
def daemon(site: Site) -> Daemon:
    daemon = site.start().ready()
    for entry in CARDS:
        daemon.client.register_specialist(entry)
    return daemon


def done(site: Site, daemon: Daemon, name: str, *lines: str, **fields: object) -> TaskView:
    site.drop(f"{name}.yaml", document(None, *lines, DONE, agent=None, **fields))
    return in_state(daemon, name, "COMPLETED")


def prompt_of(site: Site, daemon: Daemon, name: str) -> str:
    (run,) = daemon.client.runs(name)
    return (site.state / "runs" / run.id / "prompt.md").read_text()


def test_a_task_goes_to_whom_it_is_most_like_and_to_an_agent_of_theirs(site: Site, daemon: Daemon) -> None:
    routed = done(site, daemon, "nightly", "Restore the dump of the test database.")

    assert (routed.specialist, routed.agent) == ("db-admin", "beta")
    prompt = prompt_of(site, daemon, "nightly")
    assert prompt.startswith("# Your role: ")
    assert prompt.index("You look after databases.") < prompt.index("# Your task") < prompt.index("Restore the dump")
    text = why(daemon, "nightly")
    assert "nightly went to db-admin" in text
    assert "alpha was not among the agents allowed for the task" in text


def test_what_is_like_nobody_goes_to_the_default(site: Site, daemon: Daemon) -> None:
    routed = done(site, daemon, "odd", "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.")

    assert routed.specialist == "generalist"
    assert "You do anything." in prompt_of(site, daemon, "odd")
    assert "it matches no specialist well" in why(daemon, "odd")


def test_a_task_may_name_its_specialist_and_skill(site: Site, daemon: Daemon) -> None:
    named = done(site, daemon, "named", "Write a tutorial.", specialist="db-admin", skill="backup")

    assert named.specialist == "db-admin"
    assert "You are asked for: Backups." in prompt_of(site, daemon, "named")
    assert "the task names db-admin" in why(daemon, "named")


def test_a_task_goes_to_whom_it_addresses(site: Site, daemon: Daemon) -> None:
    addressed = done(site, daemon, "asked", "Restore the dump, and @doc-writer, say how. Not `@db-admin`.")

    assert addressed.specialist == "doc-writer"
    assert "the task addresses doc-writer" in why(daemon, "asked")
    asked = RouteRequest(instructions="@db-admin: write a tutorial.")
    assert daemon.client.route(asked).specialist == "db-admin"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"specialist": "db-admn"}, "specialist: there is no specialist `db-admn`; did you mean `db-admin`?"),
        (
            {"specialist": "db-admin", "skill": "backups"},
            "skill: `backups` is not a skill of db-admin; did you mean `backup`?",
        ),
    ],
)
def test_a_specialist_that_there_is_not_is_refused_with_the_nearest(
    site: Site, daemon: Daemon, fields: dict[str, object], problem: str
) -> None:
    site.drop("wrong.yaml", document(None, DONE, agent=None, **fields))

    refusal = site.inbox / "wrong.yaml.error.txt"
    wait_until(refusal.exists, "the refusal")
    assert problem in refusal.read_text()


def test_a_task_stays_with_the_specialist_of_the_one_that_it_continues(site: Site, daemon: Daemon) -> None:
    done(site, daemon, "first", "Restore the dump of the orders database.")

    second = done(site, daemon, "second", "Write a tutorial and the release notes.", continues="first")

    assert second.specialist == "db-admin"
    assert "db-admin did the task that it continues" in why(daemon, "second")


def test_an_operator_who_restarts_a_task_may_give_it_to_somebody_else(site: Site, daemon: Daemon) -> None:
    done(site, daemon, "again", "Restore the dump of the test database.")

    daemon.client.restart("again", RestartRequest(specialist="doc-writer"))

    wait_until(lambda: len(daemon.client.runs("again")) == 2, "the second run")
    assert in_state(daemon, "again", "COMPLETED").specialist == "doc-writer"


def test_a_task_whose_specialist_is_gone_asks_a_person_and_goes_on_with_the_answer(site: Site, daemon: Daemon) -> None:
    site.drop("later.yaml", document(None, DONE, agent=None, specialist="doc-writer", depends_on=["first"]))
    in_state(daemon, "later", "WAITING")
    daemon.client.remove_specialist("doc-writer")
    done(site, daemon, "first", "Restore the dump of the orders database.")

    asked = in_state(daemon, "later", "NEEDS_INPUT")
    assert asked.reason == "clarification"
    daemon.client.answer("later", AnswerRequest(text="db-admin"))

    assert in_state(daemon, "later", "COMPLETED").specialist == "db-admin"
    assert "an operator assigned it to db-admin" in why(daemon, "later")


def test_a_card_that_changes_has_its_waiting_tasks_routed_again(site: Site, daemon: Daemon) -> None:
    daemon.client.hold("beta", HoldRequest(reason="not now"))
    site.drop("wait.yaml", document(None, "Restore the dump of the test database.", DONE, agent=None))
    wait_until(lambda: in_state(daemon, "wait", "QUEUED").specialist == "db-admin", "the route")

    daemon.client.change_specialist(CARDS[0].model_copy(update={"allowed_agents": ("alpha",)}))

    assert in_state(daemon, "wait", "COMPLETED").agent == "alpha"


def test_the_specialists_that_come_with_it_are_there_where_they_are_wanted(tmp_path: Path, warm: WarmStarter) -> None:
    agents = {"alpha": {"kind": "simulated", "auto_select": True}}
    with open_site(tmp_path / "site", warm=warm, agents=agents, routing={"shipped": True}) as site:
        daemon = site.start().ready()
        reviewed = done(site, daemon, "look", "Review this pull request and say what you would change in its design.")
        assert reviewed.specialist == "code-reviewer"
        assert len(list(daemon.client.all_specialists())) == 10

        daemon.stop()
        site.configure(routing={"shipped": False})
        daemon = site.start().ready()
        assert list(daemon.client.all_specialists()) == []


def test_what_route_says_is_what_becomes_of_the_file(tmp_path: Path, warm: WarmStarter) -> None:
    """Of any text and any name, with the specialists that come with it. Nothing runs: it is chosen before."""
    data = Path(__file__).parents[1] / "data" / "routing" / "everyday.jsonl"
    texts = [str(json.loads(line)["text"]) for line in data.read_text("utf-8").splitlines()][::17]
    names = [f"{name}-{number}" for number, name in enumerate(itertools.islice(itertools.cycle(NAMES), len(texts)))]
    agents = {"alpha": {"kind": "simulated", "auto_select": True}}
    with open_site(tmp_path / "site", warm=warm, agents=agents, concurrency={"total": 8}) as site:
        daemon = site.start().ready()
        daemon.client.hold("alpha", HoldRequest(reason="not now"))
        for name, text in zip(names, texts, strict=True):
            site.drop(f"{name}.yaml", document(None, text, agent=None))
        payload = {
            name: daemon.client.route(RouteRequest(instructions=text, name=name)).specialist
            for name, text in zip(names, texts, strict=True)
        }

        def chosen() -> list[TaskView]:
            tasks = list(daemon.client.all_tasks())
            for task in tasks:
                if task.state == "NEEDS_INPUT":
                    daemon.client.approve(task.id, ApproveRequest())
            return [task for task in tasks if task.specialist or task.state == "FAILED"]

        wait_until(lambda: len(chosen()) == len(names), "all to be chosen for")
        for task in chosen():
            assert task.reason == "rejected" or task.specialist == payload[str(task.name)], task.name


def test_what_operators_corrected_is_what_eval_measures_and_calibrate_fits(tmp_path: Path, warm: WarmStarter) -> None:
    """With a daemon's own labels: of tasks that were right where they went, and of some given to somebody else."""
    agents = {"alpha": {"kind": "simulated", "auto_select": True}, "beta": {"kind": "simulated"}}
    routing, learning = {"shipped": False}, {"every": "10s"}
    letter = "Compose a paragraph on feature {} for the page of the shop."
    text = 'simulate: text="It is done, and here is what was done, at length."'
    with open_site(tmp_path / "site", warm=warm, agents=agents, routing=routing, learning=learning) as site:
        daemon = site.start().ready()
        for entry in CARDS:
            daemon.client.register_specialist(entry)
        right = [f"dump-{number}" for number in range(16)]
        wrong = [f"letter-{number}" for number in range(14)]
        others = [f"odd-{number}" for number in range(10)]
        for number, name in enumerate(right):
            site.drop(f"{name}.yaml", document(None, f"Restore dump {number} of the orders.", text, agent=None))
        for number, name in enumerate(wrong):
            site.drop(
                f"{name}.yaml",
                document(None, letter.format(number), text, agent=None),
            )
        for number, name in enumerate(others):
            site.drop(f"{name}.yaml", document(None, f"Zwölf Boxkämpfer jagen Viktor {number}.", text, agent=None))
        assert {in_state(daemon, name, "COMPLETED").specialist for name in right} == {"db-admin"}
        assert {in_state(daemon, name, "COMPLETED").specialist for name in others} == {"generalist"}
        for name in wrong:
            assert in_state(daemon, name, "COMPLETED").specialist == "generalist"
            daemon.client.restart(name, RestartRequest(specialist="doc-writer"))
        wait_until(lambda: len(daemon.client.labels(limit=100).items) == 40, "the labels")

        labels, cards = tmp_path / "labels.jsonl", tmp_path / "cards.yaml"
        labels.write_text(site.command("routing", "labels").stdout)
        cards.write_text(site.command("specialists", "export").stdout)
        rows = [json.loads(line) for line in labels.read_text().splitlines()]
        meant = sorted(str(row["expected"].get("specialist")) for row in rows)
        assert meant == ["None"] * 10 + ["db-admin"] * 16 + ["doc-writer"] * 14
        given = "--specialists", str(cards), "--data", str(labels)
        measured = json.loads(site.command("eval", *given, "-o", "json").stdout)
        assert (measured["cases"], measured["accuracy_with_none"]) == (40, 0.65)
        fitted = site.command("calibrate", *given, "--store", "--state-dir", str(site.state))
        assert "The daemon uses it after its next start" in fitted.stderr, fitted.stderr
        stored = next(iter(json.loads((site.state / "calibrations.json").read_text()).values()))
        daemon.stop()
        daemon = site.start().ready()
        asked = RouteRequest(instructions=letter.format(99))
        decided = daemon.client.route(asked)
        assert (decided.specialist, decided.threshold) == ("doc-writer", stored["calibration"]["threshold"])


def test_with_a_model_a_task_goes_to_who_is_meant_in_other_words(tmp_path: Path, warm: WarmStarter) -> None:
    agents = {"beta": {"kind": "simulated", "auto_select": True}}
    routing = {"shipped": False, "encoder": {"kind": "minilm"}}
    with open_site(tmp_path / "site", warm=warm, agents=agents, routing=routing) as site:
        daemon = site.start().ready()
        for entry in CARDS:
            daemon.client.register_specialist(entry)
        site.drop("dump.yaml", document(None, "Recover yesterday's copy of the customers' records.", agent=None))

        assert in_state(daemon, "dump", "COMPLETED").specialist == "db-admin"
        decided = daemon.client.why("dump").routing
        assert decided is not None
        assert not decided.degraded
        assert daemon.client.search_specialists("recover a copy of the records").items[0].specialist.id == "db-admin"
