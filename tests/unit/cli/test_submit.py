"""Handing in tasks, and waiting for their end."""

import errno
import json
import os
from pathlib import Path

import pytest

from claudomator_py.cli.task_files import read
from claudomator_py.domain.lifecycle import Cancelled, Completed, Failed, InputKind, NeedsInput
from claudomator_py.domain.outcome import Reason
from tests.fakes.command import Command
from tests.fakes.prepared import PreparedService

TASK = "instructions: Do it.\ntags: [shop]\n"


@pytest.fixture
def file(command: Command) -> Path:
    path = command.home / "fix-login.yaml"
    path.write_text(TASK)
    return path


def test_a_file_becomes_a_task_named_for_it(command: Command, prepared: PreparedService, file: Path) -> None:
    done = command("submit", "fix-login.yaml")
    assert done.returncode == 0
    (task,) = map(prepared.task, prepared.task_ids())
    assert (task.name, task.tags) == ("fix-login", ("shop",))
    assert task.id in done.stdout
    assert done.stderr == ""


def test_several_files_and_documents(command: Command, prepared: PreparedService, file: Path) -> None:
    (command.home / "two.yaml").write_text("name: a\ninstructions: x\n---\nname: b\ninstructions: y\n")
    (command.home / "notes.md").write_text("---\npriority: high\n---\nDo this.\n")
    done = command("submit", "fix-login.yaml", "two.yaml", "notes.md", "-o", "json")
    assert [task["name"] for task in json.loads(done.stdout)] == ["fix-login", "a", "b", "notes"]
    assert len(prepared.task_ids()) == 4


def test_stdin(command: Command, prepared: PreparedService) -> None:
    assert command("submit", "-", stdin="name: piped\ninstructions: x\n").returncode == 0
    assert command("submit", "-", stdin='{"name": "json", "instructions": "x"}').returncode == 0
    assert [spec.name for spec in prepared.specs()] == ["piped", "json"]
    nameless = command("submit", "-", stdin="instructions: x\n")
    assert nameless.returncode == 1
    assert "name" in nameless.stderr


def test_all_or_nothing(command: Command, prepared: PreparedService, file: Path) -> None:
    (command.home / "bad.yaml").write_text("instructions: x\npriorty: high\n")
    done = command("submit", "fix-login.yaml", "bad.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "bad.yaml:2: priorty: is not a known key; did you mean `priority`?" in done.stderr
    assert "Nothing was submitted." in done.stderr
    assert not prepared.task_ids()


def test_what_the_daemon_refuses_is_told_with_what_was_accepted(
    command: Command, prepared: PreparedService, file: Path
) -> None:
    (command.home / "outside.yaml").write_text("instructions: x\nworking_dir: /forbidden\n")
    done = command("submit", "fix-login.yaml", "outside.yaml")
    assert done.returncode == 1
    assert "fix-login" in done.stdout
    assert "Only the tasks above were submitted." in done.stderr
    assert "working_dir" in done.stderr


def test_a_relative_directory_is_refused_as_in_the_inbox(command: Command, prepared: PreparedService) -> None:
    (command.home / "here.yaml").write_text("instructions: x\nworking_dir: src\n")
    done = command("submit", "here.yaml")
    assert done.returncode == 1
    assert "here.yaml:2: working_dir" in done.stderr
    assert not prepared.task_ids()


def test_the_home_stays_for_the_daemon_to_know(command: Command, prepared: PreparedService) -> None:
    (command.home / "there.yaml").write_text("instructions: x\nworking_dir: ~/src/shop\n")
    assert command("submit", "there.yaml").returncode == 0
    assert [spec.working_dir for spec in prepared.specs()] == ["~/src/shop"]


def test_waiting_for_success(command: Command, prepared: PreparedService, file: Path) -> None:
    prepared.when_accepted(lambda task_id: prepared.move(task_id, Completed(), "All done."))
    done = command("submit", "fix-login.yaml", "--wait")
    assert done.returncode == 0
    assert "COMPLETED" in done.stdout
    assert "fix-login: COMPLETED" in done.stderr


@pytest.mark.parametrize("end", [Failed(Reason.CHECK_FAILED), Cancelled()])
def test_waiting_for_a_failure_is_exit_5(
    command: Command, prepared: PreparedService, file: Path, end: Failed | Cancelled
) -> None:
    (command.home / "good.yaml").write_text("instructions: x\n")

    def act(task_id: str) -> None:
        prepared.move(task_id, Completed() if prepared.task(task_id).name == "good" else end)

    prepared.when_accepted(act)
    done = command("submit", "fix-login.yaml", "good.yaml", "--wait", "-o", "json")
    assert done.returncode == 5
    states = {task["name"]: task["state"] for task in json.loads(done.stdout)}
    assert states["good"] == "COMPLETED"
    assert states["fix-login"] in ("FAILED", "CANCELLED")


def test_waiting_too_long_is_exit_124(command: Command, prepared: PreparedService, file: Path) -> None:
    done = command("submit", "fix-login.yaml", "--wait", "--timeout", "50ms")
    assert done.returncode == 124
    assert "QUEUED" in done.stdout
    assert "They continue" in done.stderr


def test_tasks_that_exist_are_waited_for_and_told_apart_by_the_exit_code(
    command: Command, prepared: PreparedService
) -> None:
    prepared.add("good", Completed())
    prepared.add("bad", Failed(Reason.CHECK_FAILED))
    prepared.add("open")
    for named, code in ((("good", "good"), 0), (("good", "bad"), 5), (("good", "open", "--timeout", "50ms"), 124)):
        done = command("wait", *named, "-o", "json")
        assert done.returncode == code
        assert [task["name"] for task in json.loads(done.stdout)] == [*dict.fromkeys(named[:2])]
    assert "They continue" in command("wait", "open", "--timeout", "50ms").stderr
    assert command("wait", "nobody").returncode == 1
    assert command("wait").returncode == 2


def test_without_a_person_the_wait_ends_once_one_is_needed(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.add("good", Completed())
    prepared.add("open")
    prepared.add("asks", NeedsInput(InputKind.QUESTION))
    done = command("wait", "good", "open", "asks", "--no-input", "-o", "json")
    assert done.returncode == 6
    assert [task["name"] for task in json.loads(done.stdout)] == ["good", "open", "asks"]
    assert "asks needs a person" in done.stderr
    assert "claudomator why asks" in done.stderr


def test_without_a_person_the_wait_ends_at_what_only_a_person_changes(
    command: Command, prepared: PreparedService, file: Path
) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude", None, reason=None)
    for line in (("submit", "fix-login.yaml", "--wait"), ("add", "Do it.", "--wait")):
        done = command(*line, "--no-input")
        assert done.returncode == 6, done.stderr
        assert "needs a person: " in done.stderr


def test_without_a_person_what_ends_by_itself_is_waited_for(
    command: Command, prepared: PreparedService, file: Path
) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude", prepared.world.now_ms + 3_600_000)
    done = command("submit", "fix-login.yaml", "--wait", "--no-input", "--timeout", "50ms")
    assert done.returncode == 124
    assert command("submit", "fix-login.yaml", "--no-input").returncode == 2
    assert command("add", "Do it.", "--no-input").returncode == 2


def test_validate_needs_no_daemon(offline: Command) -> None:
    folder = offline.home / "tasks"
    folder.mkdir()
    (folder / "good.yaml").write_text(TASK)
    (folder / "bad.yaml").write_text("timeout: 5\n")
    (folder / "README.md").write_text("no task\n")
    done = offline("validate", "tasks")
    assert (done.returncode, done.stderr) == (1, "")
    assert "tasks/good.yaml: ok (good)" in done.stdout
    assert "tasks/bad.yaml:1: timeout: is the bare number 5" in done.stdout
    assert "README" not in done.stdout
    assert offline("validate", "tasks/good.yaml").returncode == 0


def test_validate_counts_what_a_long_file_has_further(offline: Command) -> None:
    (offline.home / "night.yaml").write_text("---\n".join(f"name: t-{n}\ninstructions: Go.\n" for n in range(12)))
    (line,) = offline("validate", "night.yaml").stdout.splitlines()
    assert line.endswith(", t-8, t-9 and 2 more)")


def test_what_init_writes_can_be_checked_whole(offline: Command) -> None:
    """A configuration among tasks is checked as one, and what lies in hidden folders is nobody's."""
    files = {
        "claudomator.yaml": "inbox: {paths: [tasks]}\n",
        "tasks/good.yaml": TASK,
        ".git/hook.yaml": "nothing: of ours\n",
    }
    for name, text in files.items():
        (offline.home / name).parent.mkdir(exist_ok=True)
        (offline.home / name).write_text(text)
    done = offline("validate", ".")
    assert done.stdout.splitlines() == ["claudomator.yaml: ok (configuration)", "tasks/good.yaml: ok (good)"]

    (offline.home / "old").mkdir()
    (offline.home / "old" / "claudomator.yaml").write_text("inbxo: {paths: [tasks]}\nlimits: {grace: soon}\n")
    done = offline("validate", "old/claudomator.yaml")
    assert done.returncode == 1
    assert "old/claudomator.yaml:1: inbxo: is not a known key; did you mean `inbox`?" in done.stdout
    (result,) = json.loads(offline("validate", "old", "-o", "json").stdout)
    assert {problem["line"] for problem in result["problems"]} == {1, 2}


def test_a_configuration_among_tasks_is_not_submitted(command: Command) -> None:
    (command.home / "more").mkdir()
    (command.home / "more" / "claudomator.yaml").write_text("inbox: {paths: [tasks]}\n")
    (command.home / "more" / "paint.yaml").write_text(TASK)
    done = command("submit", "more")
    assert (done.returncode, "claudomator.yaml" in done.stderr) == (0, False)


def test_validate_tells_programs_the_same(offline: Command) -> None:
    (offline.home / "good.yaml").write_text(TASK)
    (offline.home / "bad.yaml").write_text("instructions: x\npriority: highest\n")
    good, bad = json.loads(offline("validate", "good.yaml", "bad.yaml", "-o", "json").stdout)
    assert (good["valid"], good["tasks"][0]["name"], good["tasks"][0]["timeout"]) == (True, "good", "1h")
    assert (bad["valid"], bad["problems"][0]["line"], bad["problems"][0]["field"]) == (False, 2, "priority")


def test_a_file_that_is_no_task_by_its_name(offline: Command) -> None:
    (offline.home / "task.txt").write_text(TASK)
    done = offline("validate", "task.txt")
    assert done.returncode == 1
    assert ".yaml" in done.stdout


def test_the_schema_is_for_editors(offline: Command) -> None:
    schema = json.loads(offline("validate", "--schema").stdout)
    assert "instructions" in schema["properties"]
    assert schema["additionalProperties"] is False
    schema = json.loads(offline("validate", "--schema", "--specialists").stdout)
    assert "skills" in schema["properties"]


def test_names_that_the_system_or_the_inbox_does_not_take(offline: Command) -> None:
    (offline.home / os.fsdecode(b"caf\xe9.yaml")).write_text(TASK)
    done = offline("validate", ".")
    assert (done.returncode, done.stdout) == (1, "caf\\xe9.yaml: its name is not valid UTF-8; rename it\n")
    done = offline("validate", f"{'a' * 300}.yaml")
    assert done.returncode == 2
    assert "there is no aaa" in done.stderr


def test_what_cannot_be_read_is_a_problem_of_that_file_alone(offline: Command) -> None:
    os.mkfifo(offline.home / "pipe.yaml")
    for name, target in (("endless", "/dev/zero"), ("circle", "circle.yaml"), ("gone", "nowhere")):
        (offline.home / f"{name}.yaml").symlink_to(target)
    (offline.home / "line\n\u202e.yaml").write_text(TASK)
    done = offline("validate", *sorted(path.name for path in offline.home.iterdir()))
    assert (done.returncode, done.stderr) == (1, "")
    assert offline("validate", ".").stdout == done.stdout
    assert done.stdout.splitlines() == [
        "circle.yaml: cannot be read: Too many levels of symbolic links; check that it is a readable file",
        "endless.yaml: is not a regular file; name a file, or a folder of them",
        "gone.yaml: cannot be read: No such file or directory; check that it is a readable file",
        "line\\n\\u202e.yaml: ok (line)",
        "pipe.yaml: is not a regular file; name a file, or a folder of them",
    ]


def test_a_folder_that_cannot_be_read_is_a_problem_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.yaml").write_text(TASK)
    for name in ("closed", ".hidden"):
        (tmp_path / name).mkdir()
    scandir = os.scandir

    def refused(path: os.PathLike[str] | str) -> object:
        if Path(path).name in ("closed", ".hidden"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    closed, task = read([tmp_path])
    assert [problem.message for problem in closed.problems] == ["cannot be read: Permission denied"]
    assert (closed.shown, task.problems) == (str(tmp_path / "closed"), ())


def test_validate_checks_zones_and_agents_as_the_daemon_would(offline: Command) -> None:
    (offline.home / "zone.yaml").write_text('instructions: x\nschedule: "0 3 * * *"\ntimezone: Europe/Berln\n')
    (offline.home / "two.yaml").write_text(
        "name: a\ninstructions: x\n---\nname: b\ninstructions: y\nagent: {type: cluade, strict: true}\n"
    )
    done = offline("validate", "zone.yaml", "two.yaml")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "zone.yaml:3: timezone: there is no time zone `Europe/Berln`; did you mean `Europe/Berlin`?",
        "two.yaml:6: agent.type: no agent `cluade` is configured, and the task insists on it; did you mean `claude`?",
    ]
    config = "agents:\n  lint: {kind: command, command: [make, lint]}\nworkdir_roots: [src]\n"
    (offline.home / "other.yaml").write_text(config)
    (offline.home / "task.yaml").write_text("instructions: x\nagent: {type: lint, strict: true}\n")
    assert offline("validate", "task.yaml").returncode == 1
    assert offline("validate", "--config", "other.yaml", "task.yaml").returncode == 0
    (offline.home / "claudomator.yaml").write_text(config)
    (offline.home / "task.yaml").write_text(
        "instructions: x\nagent: {type: lnt, strict: true}\nworking_dir: /somewhere\n"
    )
    stdout = offline("validate", "task.yaml").stdout
    assert "agent.type: no agent `lnt` is configured, and the task insists on it; did you mean `lint`?" in stdout
    assert "task.yaml:3: working_dir: /somewhere is not under a root" in stdout


def test_validate_warns_of_a_wish_that_nobody_can_grant(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("agents: {claude: {}}\n")
    (offline.home / "task.yaml").write_text("instructions: x\nagent: {type: cluade}\n")
    done = offline("validate", "task.yaml")
    warning = "no agent `cluade` is configured, so any other may take the task"
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        ["task.yaml: ok (task)", f"task.yaml:2: warning: agent.type: {warning}; did you mean `claude`?"],
    )
    (result,) = json.loads(offline("validate", "task.yaml", "-o", "json").stdout)
    assert [(result["valid"], warning["line"], warning["message"]) for warning in result["warnings"]] == [
        (True, 2, warning)
    ]
    # Simulated work is not to become real work, nor a program's an agent's.
    for kind in ("simulated", "command"):
        (offline.home / "task.yaml").write_text(f"instructions: x\nagent: {{type: {kind}}}\n")
        assert offline("validate", "task.yaml").returncode == 1


CARD = "id: plumber\ndescription: Finds and fixes leaks.\n"


def test_validate_reads_cards_where_the_daemon_would(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("routing: {specialists: [roles]}\n")
    (offline.home / "roles/more").mkdir(parents=True)
    (offline.home / "roles/plumber.yaml").write_text(CARD)
    (offline.home / "roles/more/bad.yaml").write_text("id: bad\ndescripton: x\n")
    (offline.home / "task.yaml").write_text(TASK)

    done = offline("validate", "roles", "task.yaml")

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "roles/more/bad.yaml:1: description: is missing; add it",
        "roles/more/bad.yaml:2: descripton: is not a known key; did you mean `description`?",
        "roles/plumber.yaml: ok (specialist plumber)",
        "task.yaml: ok (task)",
    ]


def test_validate_reads_cards_anywhere_if_told_to(offline: Command) -> None:
    (offline.home / "plumber.yaml").write_text(CARD)

    completed = offline("validate", "--specialists", "plumber.yaml", "-o", "json")
    untold = offline("validate", "plumber.yaml")

    (result,) = json.loads(completed.stdout)
    assert (result["valid"], [card["id"] for card in result["specialists"]]) == (True, ["plumber"])
    assert untold.returncode == 1
    assert "a card file, not a task file; --specialists checks it as one" in untold.stderr


@pytest.mark.parametrize(
    ("text", "is_card"),
    [
        (CARD.replace("description", "descripton"), True),
        ("id: plumber\ndescription: Lays pipes.\nsystem_promt: You.\n", True),
        ("name: pipes\ninstrutions: Lay pipes.\n", False),
        ("pipes", False),
    ],
)
def test_validate_names_the_option_for_a_card_with_a_mistake_of_its_own(
    offline: Command, text: str, *, is_card: bool
) -> None:
    (offline.home / "pipes.yaml").write_text(text)
    assert ("--specialists checks it as one" in offline("validate", "pipes.yaml").stderr) is is_card


def test_validate_warns_of_whom_no_card_file_has(offline: Command) -> None:
    (offline.home / "specialists").mkdir()
    (offline.home / "specialists/plumber.yaml").write_text(CARD)
    for name, fallback in (("known", "plumber"), ("comes", "code-reviewer"), ("unknown", "roofer")):
        (offline.home / f"{name}.yaml").write_text(f"id: {name}\ndescription: x\nfallback: {fallback}\n")
    warning = "there is no specialist `roofer` in a file; unless one is registered, this is refused"

    done = offline("validate", "--specialists", "known.yaml", "comes.yaml", "unknown.yaml")

    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if "warning" in line] == [
        f"unknown.yaml:3: warning: fallback: {warning}"
    ]
    (result,) = json.loads(offline("validate", "--specialists", "unknown.yaml", "-o", "json").stdout)
    assert [(warning["line"], warning["field"], warning["message"]) for warning in result["warnings"]] == [
        (3, "fallback", warning)
    ]


def test_validate_warns_of_a_specialist_whom_no_card_file_has(offline: Command) -> None:
    (offline.home / "known.yaml").write_text(f"{TASK}specialist: code-reviewer\n")
    (offline.home / "unknown.yaml").write_text(f"{TASK}specialist: roofer\n")
    done = offline("validate", "known.yaml", "unknown.yaml")
    assert (done.returncode, done.stdout.splitlines()[:2]) == (
        0,
        ["known.yaml: ok (known)", "unknown.yaml: ok (unknown)"],
    )
    assert "warning: specialist: there is no specialist `roofer` in a file; unless" in done.stdout.splitlines()[2]


def test_validate_warns_of_a_name_that_another_file_has(offline: Command) -> None:
    for name in ("it.yaml", "it.yml"):
        (offline.home / name).write_text(TASK)
    *_, warning = offline("validate", "it.yaml", "it.yml").stdout.splitlines()
    assert warning.startswith("it.yml:1: warning: name: is the name of a task in it.yaml, too, and an inbox takes only")


def test_validate_names_what_of_an_agent_file_is_not_applied(offline: Command) -> None:
    text = "---\nname: worker\ndescription: Works.\ncolor: blue\nhooks: {}\ntools: Read\n---\nWork.\n"
    (offline.home / "worker.md").write_text(text)
    done = offline("validate", "--specialists", "worker.md")
    assert done.stdout.splitlines() == [
        "worker.md: ok (specialist worker)",
        "worker.md:4: warning: color: is kept but not applied",
        "worker.md:5: warning: hooks: is kept but not applied",
    ]


def test_what_the_daemon_refuses_is_told_with_its_line(command: Command, prepared: PreparedService) -> None:
    (command.home / "outside.yaml").write_text("instructions: x\nworking_dir: /forbidden\n")
    done = command("submit", "outside.yaml")
    assert done.returncode == 1
    assert "outside.yaml:2: working_dir:" in done.stderr
