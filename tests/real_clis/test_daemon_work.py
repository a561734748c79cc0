"""Real agent CLIs do a dropped task: the work is done, checked, accounted for, and outlives the daemon."""

from claudomator_py.resources.tasks import TaskView
from tests.e2e.scenarios_support import ended, in_state, last_run
from tests.fakes.http_api import INPUT_TOKENS, OUTPUT_TOKENS, Text
from tests.patience import wait_until
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, Cli, each
from tests.real_clis.place import END_S, Place

FAST = {CLAUDE: "haiku", GEMINI: "flash-lite", CODEX: "gpt-6-luna", OPENCODE: "fake/m1"}


def used(task: TaskView, steps: int) -> bool:
    return (task.tokens.input, task.tokens.output) == (steps * INPUT_TOKENS, steps * OUTPUT_TOKENS)


@each()
def test_it_edits_a_file_that_the_check_finds_and_its_use_is_known(place: Place, cli: Cli) -> None:
    place.api.script(place.writes(), Text("I wrote it."))
    daemon = place.start()
    agent = place.agent(daemon)
    assert agent.problem is None
    assert (agent.version or "")[0].isdigit()

    place.drop("greet", agent={"tier": "fast"}, check=["grep -qx hello hello.txt"])

    task = ended(daemon, "greet", END_S)
    assert task.state == "COMPLETED", task
    assert place.greeting.read_text() == "hello\n"
    assert (task.agent, task.tier, task.model, task.attempts) == (cli.kind, "fast", FAST[cli], 1)
    assert task.result_text == "I wrote it."
    assert used(task, 2), task.tokens
    assert ((task.cost_usd or 0) > 0) is cli.tells_dollars
    run = last_run(daemon, "greet")
    assert run.exit_code == 0
    assert b"hello.txt" in daemon.client.log(run.id).data
    asked = place.api.requests[0]
    assert "Write a greeting." in str(asked.body)
    assert FAST[cli].rpartition("/")[2] in f"{asked.path} {asked.body.get('model')}"


@each()
def test_a_text_that_begins_with_a_slash_reaches_the_model(place: Place) -> None:
    place.api.script(Text("It did."))
    daemon = place.start()

    place.drop("greet", instructions="/login redirects twice.")

    assert ended(daemon, "greet", END_S).result_text == "It did."
    assert "/login redirects twice." in str(place.api.requests[0].body)


COMMANDS = {
    CLAUDE: (".claude/commands/gh/review.md", "Look at the pull request $ARGUMENTS with care.\n"),
    GEMINI: (".gemini/commands/gh/review.toml", 'prompt = "Look at the pull request {{args}} with care."\n'),
    QWEN: (".qwen/commands/gh/review.toml", 'prompt = "Look at the pull request {{args}} with care."\n'),
}


@each(*COMMANDS)
def test_a_text_that_is_a_command_of_the_project_is_expanded(place: Place, cli: Cli) -> None:
    file, text = COMMANDS[cli]
    (place.site.work / file).parent.mkdir(parents=True)
    (place.site.work / file).write_text(text)
    place.api.script(Text("It did."))
    daemon = place.start()

    place.drop("greet", instructions="/gh:review 12")

    assert ended(daemon, "greet", END_S).result_text == "It did."
    assert "Look at the pull request 12 with care." in str(place.api.requests[0].body)
    given = f"Its text is the command /gh:review ({file}), which {cli.kind} gets alone, without a role."
    assert given in daemon.client.why("greet").sentences


@each(CLAUDE)
def test_a_shell_in_a_command_does_not_run_behind_a_fence(place: Place) -> None:
    command = place.site.work / ".claude/commands/review.md"
    command.parent.mkdir(parents=True)
    command.write_text("---\nallowed-tools: Bash(touch:*)\n---\nLook at !`touch seen` with care.\n")
    place.api.script(Text("It did."))
    daemon = place.start()

    place.drop("fenced", instructions="/review", reach="tree")
    assert ended(daemon, "fenced", END_S).result_text == "It did."
    assert "/review" in str(place.api.requests[0].body)
    assert not (place.site.work / "seen").exists()

    place.drop("free", instructions="/review", reach="any")
    assert ended(daemon, "free", END_S).result_text == "It did."
    assert (place.site.work / "seen").exists()


@each()
def test_a_failing_check_fails_the_run_of_a_contented_agent(place: Place, cli: Cli) -> None:
    place.api.script(Text("I wrote it, believe me."))
    daemon = place.start()

    place.drop("greet", check=["test -e hello.txt"], retry={"max_attempts": 1})

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.reason) == ("FAILED", "check_failed")
    assert task.result_text == "I wrote it, believe me."


@each()
def test_a_run_outlives_a_killed_daemon_and_is_adopted(place: Place, cli: Cli) -> None:
    waits = cli.shell(f"touch begun; until [ -e {place.site.root}/go ]; do sleep 0.1; done")
    place.api.script(waits, place.writes(), Text("I wrote it."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands)
    wait_until((place.site.work / "begun").exists, "the tool to begin", END_S)
    run_id = last_run(daemon, "greet").id

    daemon.kill()
    daemon = place.start()
    assert in_state(daemon, "greet", "RUNNING").runs == 1
    (place.site.root / "go").touch()

    task = ended(daemon, "greet", END_S)
    assert (task.state, task.runs, task.result_text) == ("COMPLETED", 1, "I wrote it.")
    assert [run.id for run in daemon.client.runs("greet")] == [run_id]
    assert used(task, 3) or cli is CODEX, task.tokens
    assert place.greeting.read_text() == "hello\n"


@each()
def test_the_key_reaches_it_by_pass_env_and_nothing_else_of_the_daemons_environment(place: Place, cli: Cli) -> None:
    secret = "SECRET_OF_THE_DAEMON"
    place.api.script(cli.shell(f"env > {place.site.work}/env"), Text())
    daemon = place.site.start(**cli.key, **{secret: "kept"}).ready()

    place.drop("greet", permissions=cli.commands, check=["test -s env"])

    assert ended(daemon, "greet", END_S).state == "COMPLETED"
    text = (place.site.work / "env").read_text()
    assert "CLAUDOMATOR_RUN=" in text
    assert secret not in text
    headers = {name: value for request in place.api.requests for name, value in request.headers.items()}
    assert any(next(iter(cli.key.values())) in value for value in headers.values())
