"""What each command prints about tasks and agents."""

import json
import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.lifecycle import (
    Cancelled,
    Completed,
    Failed,
    InputKind,
    NeedsInput,
    Queued,
    Running,
    State,
    Waiting,
    WaitReason,
)
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.units import HOUR_MS
from tests.fakes.command import Command
from tests.fakes.prepared import START_MS, PreparedService

SUCCESS = Outcome(status=OutcomeStatus.SUCCEEDED, text="Done.")
FAILURE = Outcome(status=OutcomeStatus.FAILED, reason=Reason.CHECK_FAILED)


def test_status_shows_what_needs_a_person_first(command: Command, prepared: PreparedService) -> None:
    prepared.add("done", Completed())
    prepared.add("next")
    prepared.add("works", Running(), agent_name="claude")
    prepared.add("broken", Failed(Reason.TIMEOUT))
    prepared.add("asks", NeedsInput(InputKind.QUESTION))
    prepared.add_agent("claude")
    prepared.refuse_file("tasks/x.yaml", Problem(line=3, message="is wrong"))
    lines = command("status").stdout.splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    counts = "1 needs you, 1 failed, 1 refused file, 1 running, 1 queued; today 0 runs"
    assert heads == [counts, "NEEDS YOU", "PROBLEMS", "INBOX", "RUNNING", "QUEUED", "RECENT", "AGENTS"]
    assert "  tasks/x.yaml:3: is wrong" in lines
    assert any("broken" in line and "timeout: The run took longer" in line for line in lines)


def test_a_refused_file_shows_its_first_problem_and_how_many_more(command: Command, prepared: PreparedService) -> None:
    problems = tuple(Problem(line=line, message="is wrong") for line in range(1, 13))
    prepared.refuse_file("tasks/x.yaml", *problems)
    lines = command("status").stdout.splitlines()
    assert [line for line in lines if "x.yaml" in line] == ["  tasks/x.yaml:1: is wrong (and 11 more)"]


def test_files_that_status_leaves_out_are_listed_by_inbox_with_all_problems(
    command: Command, prepared: PreparedService
) -> None:
    assert command("inbox").stderr == "No file is refused.\n"
    for number in range(52):
        problems = (Problem(line=1, message="is wrong"), Problem(line=2, message="too"))
        prepared.refuse_file(f"tasks/{number}.yaml", *problems)

    assert "  ... and 2 more; `claudomator inbox` lists all" in command("status").stdout.splitlines()
    lines = command("inbox").stdout.splitlines()
    assert len(lines) == 104
    assert {"tasks/0.yaml:1: is wrong", "tasks/0.yaml:2: too", "tasks/51.yaml:2: too"} <= set(lines)
    assert len(json.loads(command("inbox", "-o", "json").stdout)) == 52


def test_status_of_nothing(command: Command) -> None:
    done = command("status")
    assert done.returncode == 0
    assert "claudomator submit FILE" in done.stdout


def test_a_cost_that_nobody_knows_is_not_zero(command: Command, prepared: PreparedService) -> None:
    prepared.add_run(prepared.add("it", Completed()), outcome=Outcome(status=OutcomeStatus.SUCCEEDED))
    assert command("status").stdout.splitlines()[0] == "Nothing is running or waiting; today 1 run"


@pytest.mark.parametrize("words", [("list",), ("show", "it")], ids=lambda words: words[0])
def test_a_cost_of_less_than_a_cent_is_not_zero(
    command: Command, prepared: PreparedService, words: tuple[str, ...]
) -> None:
    prepared.add_run(prepared.add("it", Completed()), outcome=Outcome(status=OutcomeStatus.SUCCEEDED, cost_usd=0.0042))
    assert "$0.0042" in command(*words).stdout


def test_a_pipe_gets_no_colour(command: Command, prepared: PreparedService) -> None:
    prepared.add("it")
    assert "\x1b" not in command("status", FORCE_COLOR="1").stdout


def test_status_fits_80_columns_whatever_the_names(command: Command, prepared: PreparedService) -> None:
    prepared.add(
        "a-very-long-name-" * 5 + "x", Failed(Reason.DEPENDENCY_FAILED), agent_name="an-agent-with-a-long-name"
    )
    prepared.add_agent(
        "an-agent-with-a-long-name", problem="it is not logged in, so nothing can be started on it; log in"
    )
    text = command("status", COLUMNS="80").stdout
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" in text
    assert "a-very-long-name-" * 5 in command("status").stdout  # in a pipe nothing is cut
    assert "a-very-long-name-" * 5 in command("status", "-o", "wide", COLUMNS="80").stdout


def test_ids_are_as_long_as_they_must_be(command: Command, prepared: PreparedService) -> None:
    name, two = prepared.add("one"), prepared.add("two", Completed())  # in two sections
    text = command("status").stdout
    shown = [word for word in text.split() if word.startswith("c0ffee")]
    assert len(set(shown)) == 2
    for ref in shown:
        assert json.loads(command("show", ref, "-o", "json").stdout)["id"] in (name, two)


def test_status_can_list_what_matches(command: Command, prepared: PreparedService) -> None:
    prepared.add("broken", Failed(Reason.TIMEOUT), tags=("shop",))
    prepared.add("other", Failed(Reason.TIMEOUT))
    prepared.add("fine", Completed(), tags=("shop",), done_by="plumber")
    result = json.loads(command("status", "--state", "failed", "--tag", "shop", "-o", "json").stdout)
    assert [task["name"] for task in result] == ["broken"]
    of_plumber = json.loads(command("status", "--specialist", "plumber", "-o", "json").stdout)
    assert [(task["name"], task["specialist"]) for task in of_plumber] == [("fine", "plumber")]
    nothing = command("status", "--tag", "none")
    assert (nothing.returncode, nothing.stderr) == (0, "No task matches.\n")


def test_a_name_cannot_speak_to_the_terminal(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("claude", problem="\x1b]0;owned\x07\x1b[2Jgone\r\nforged line")
    text = command("agents").stdout
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2


def test_json_on_a_terminal_says_the_same_and_shows_all_of_it(command: Command, prepared: PreparedService) -> None:
    text = "ü \x9b31m\u202etxt.exe\u200b\u2066"
    task = prepared.add("it", Completed())
    prepared.move(task, Completed(), result_text=text)
    printed = command("show", "it", "-o", "json").stdout
    assert json.loads(printed)["result_text"] == text
    assert '"ü \\u009b31m\\u202etxt.exe\\u200b\\u2066"' in printed


def test_show(command: Command, prepared: PreparedService) -> None:
    task_id = prepared.add("it", Failed(Reason.CHECK_FAILED), instructions="Line 1\nLine 2", depends_on=("other",))
    prepared.add_run(task_id, outcome=FAILURE)
    text = command("show", "it").stdout
    for expected in (task_id, "check_failed", "sonnet", "other (not seen yet)", "Line 1\nLine 2", "restart"):
        assert expected in text
    assert json.loads(command("show", "it", "-o", "json").stdout)["spec"]["depends_on"] == ["other"]


@pytest.mark.parametrize(
    ("state", "offers"),
    [
        (Queued(), "cancel, edit"),
        (Waiting(WaitReason.TIME, START_MS + HOUR_MS), "cancel, restart, edit"),
        (NeedsInput(InputKind.QUESTION), "answer, reject, cancel, restart, edit"),
        (Completed(), "restart, edit (on its page)"),
        (Cancelled(), "restart, edit (on its page)"),
    ],
)
def test_what_can_be_done_names_edit_where_it_is_taken(
    command: Command, prepared: PreparedService, state: State, offers: str
) -> None:
    prepared.add("it", state)
    assert f"you can    {offers}\n" in command("show", "it").stdout


def test_show_tells_what_decides_success_before_a_run_has(command: Command, prepared: PreparedService) -> None:
    prepared.add("it", check=["make test", ["sh", "-c", "exit 1"]])
    assert re.search(r"^check +make test; sh -c 'exit 1'$", command("show", "it").stdout, re.MULTILINE)


def test_result_is_data(command: Command, prepared: PreparedService) -> None:
    prepared.add("it")
    prepared.move(prepared.add("it"), Completed(), "The answer:\n  42\x1b[2J\n")
    done = command("result", "it")
    assert (done.returncode, done.stdout) == (0, "The answer:\n  42\n")
    run = prepared.world.service.runs("it")[-1]
    assert run.scratch_dir is not None
    assert done.stderr == f"Its files: {run.scratch_dir}\n"
    assert f"directory  {run.scratch_dir}\n" in command("show", "it").stdout


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (Queued(), "has not ended; it is QUEUED"),
        (Failed(Reason.TIMEOUT), "failed: timeout. The run took longer"),
        (Cancelled(), "was cancelled"),
    ],
)
def test_no_result_is_exit_1_with_the_reason(
    command: Command, prepared: PreparedService, state: Queued | Failed | Cancelled, text: str
) -> None:
    prepared.add("it", state)
    done = command("result", "it")
    assert (done.returncode, done.stdout) == (1, "")
    assert text in done.stderr
    assert f"claudomator {'restart' if isinstance(state, Cancelled) else 'why'} it" in done.stderr


def test_why_reads_like_an_explanation(command: Command, prepared: PreparedService) -> None:
    for agent in ("claude", "codex"):
        prepared.add_agent(agent)
    prepared.limit("claude", START_MS + HOUR_MS)
    prepared.add("fix-login")
    prepared.world.tick()
    prepared.world.succeed("fix-login")
    lines = command("why", "fix-login").stdout.splitlines()
    assert lines[0] == "fix-login is COMPLETED."
    assert any(line.split()[:2] == ["claude", "0/2"] and "limited" in line for line in lines)
    assert any(line.split()[:2] == ["codex", "0/2"] and "picked: least active" in line for line in lines)
    assert "Accepted" in command("why", "fix-login", "-o", "wide").stdout


def test_times_are_on_the_clock_of_whoever_reads_with_the_name_of_its_zone(
    forked: Command, prepared: PreparedService
) -> None:
    prepared.add_agent("codex")
    prepared.add_run(prepared.add("it", Completed()), outcome=SUCCESS)
    here = {"TZ": "Asia/Kolkata"}
    shown, log = forked("show", "it", **here).stdout, forked("log", **here).stdout
    why = forked("why", "it", "-o", "wide", **here).stdout
    assert re.search(r"^created +2026-09-21 19:\d\d:\d\d IST \(", shown, re.MULTILINE)
    assert re.search(r"^2026-09-21 19:\d\d:\d\d IST +Accepted +it", log, re.MULTILINE)
    for text in (shown, log, why):
        assert "UTC" not in text
        assert not re.search(r"\dT\d|\d{13}", text)
    assert json.loads(forked("show", "it", "-o", "json", **here).stdout)["created_at"].endswith("Z")


def test_cancel_and_restart(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("codex")
    prepared.add_run(prepared.add("it", Running()))
    refused = command("restart", "it")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "with `force`" in refused.stderr
    restarted = command("restart", "it", "--force", "--agent", "codex", "--reason", "again", "-o", "json")
    assert json.loads(restarted.stdout)["state"] == "RUNNING"
    prepared.settle()
    assert prepared.task("it").agent_hint == "codex"
    assert command("cancel", "it").returncode == 0
    prepared.settle()
    assert prepared.task("it").state == "CANCELLED"
    again = command("cancel", "it")
    assert (again.returncode, again.stdout) == (1, "")


def test_show_says_of_a_task_that_any_agent_may_do_so(command: Command, prepared: PreparedService) -> None:
    prepared.add("free", agent={"tier": "fast"})
    prepared.add("tied", agent={"type": "codex"})
    prepared.add("plain")
    assert "\nagent      any (fast)\n" in command("show", "free").stdout
    assert "\nagent      codex\n" in command("show", "tied").stdout
    assert "\nagent " not in command("show", "plain").stdout


def test_several_are_approved_and_rejected_at_once(command: Command, prepared: PreparedService) -> None:
    for name, tags in (("one", ("night",)), ("two", ("night",)), ("three", ()), ("four", ("bad",)), ("five", ("bad",))):
        task = prepared.add(name, NeedsInput(InputKind.APPROVAL), tags=tags)
        prepared.add_run(task)
        prepared.move(task, NeedsInput(InputKind.APPROVAL), result_text="May I?")
    prepared.add("calm", tags=("night", "bad"))
    tried = command("approve", "--tag", "night", "--dry-run")
    assert "2 tasks (2 NEEDS_INPUT); nothing was done" in tried.stderr
    assert prepared.heard() == []
    assert command("approve", "one", "three", "--yes").returncode == 0
    assert command("approve", "--tag", "night", "--yes").returncode == 0
    assert command("reject", "--tag", "bad", "--reason", "No.", "--yes").returncode == 0
    assert sorted((name, what) for name, what, _ in prepared.heard()) == [
        ("five", "rejected"),
        ("four", "rejected"),
        ("one", "approved"),
        ("three", "approved"),
        ("two", "approved"),
    ]
    for name in ("six", "seven", "eight", "nine"):
        prepared.add(name, NeedsInput(InputKind.APPROVAL))
    assert command("reject", "nine", "Never.").returncode == 0, "a word that cannot be a name is the reason"
    assert prepared.heard()[-1] == ("nine", "rejected", {"reason": "Never."})
    assert command("reject", "six", "seven", "Not now.", "--yes").returncode == 0
    assert command("approve", "--state", "NEEDS_INPUT", "--yes").returncode == 0
    assert [entry for entry in prepared.heard() if entry[0] in ("six", "seven", "eight")] == [
        ("six", "rejected", {"reason": "Not now."}),
        ("seven", "rejected", {"reason": "Not now."}),
        ("eight", "approved", {}),
    ]
    assert command("reject", "--state", "NEEDS_INPUT", "Not now.", "--reason", "Never.").returncode == 2
    assert command("reject").returncode == command("approve").returncode == 2
    assert command("reject", "calm", "--tag", "bad").returncode == 2


def test_answer_approve_and_reject(command: Command, prepared: PreparedService) -> None:
    for name, kind in (("asks", InputKind.QUESTION), ("wants", InputKind.APPROVAL), ("no", InputKind.APPROVAL)):
        task = prepared.add(name, NeedsInput(kind))
        prepared.add_run(task)
        prepared.move(task, NeedsInput(kind), result_text="Red or blue?\nThe old one is blue.")
    assert "Red or blue?" in command("status").stdout
    shown = command("show", "wants").stdout
    assert "The old one is blue.\napproving allows Bash(npm publish)\nclaudomator approve wants\n" in shown
    assert json.loads(command("answer", "asks", "Blue.", "-o", "json").stdout)["state"] == "QUEUED"
    assert "QUEUED" in command("approve", "wants", "--tool", "Bash(a)", "--tool", "Write").stdout
    assert "FAILED" in command("reject", "no", "Not now.").stdout
    assert prepared.heard() == [
        ("asks", "answered", {"answer": "Blue."}),
        ("wants", "approved", {"tools": ["Bash(a)", "Write"]}),
        ("no", "rejected", {"reason": "Not now."}),
    ]
    again = command("answer", "asks", "Blue.")
    assert (again.returncode, again.stdout) == (1, "")
    for odd in (("answer", "asks"), ("answer", "asks", "x", "--file", "-"), ("answer", "asks", " ")):
        assert command(*odd).returncode == 2
    assert command("answer", "asks", "--file", "/nowhere").returncode == 2


def test_an_answer_is_read_from_a_file_or_from_stdin(command: Command, prepared: PreparedService) -> None:
    for name in ("one", "two", "three"):
        prepared.add_run(prepared.add(name, NeedsInput(InputKind.QUESTION)))
    (command.home / "answer.md").write_text("Blau, wie früher.\n\nNicht rot.\n", encoding="utf-8")
    (command.home / "latin").write_bytes("früher".encode("latin-1"))
    (command.home / "empty").touch()

    assert command("answer", "one", "--file", "answer.md").returncode == 0
    assert command("answer", "two", "--file", "-", stdin="Blue.\n").returncode == 0
    for file, why in (("latin", "latin is not text in UTF-8"), ("empty", "text"), (".", "Is a directory")):
        refused = command("answer", "three", "--file", file)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert why in refused.stderr

    assert prepared.heard() == [
        ("one", "answered", {"answer": "Blau, wie früher. Nicht rot."}),
        ("two", "answered", {"answer": "Blue."}),
    ]


def test_since_when_it_drains_is_shown_in_local_time(command: Command, forked: Command) -> None:
    shown = forked("drain", TZ="Asia/Tokyo").stdout.splitlines()
    since = json.loads(command("drain", "-o", "json").stdout)["since"]
    at = datetime.fromisoformat(since).astimezone(ZoneInfo("Asia/Tokyo"))
    assert f"since    {at:%Y-%m-%d %H:%M:%S} JST" in shown


def test_agents_and_release(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude")
    for name in ("one", "two"):
        prepared.add_run(prepared.add(name, Running()))
    prepared.add_agent("codex", problem="codex is not on PATH; install it")
    lines = command("agents").stdout.splitlines()
    assert lines[1].split()[:4] == ["claude", "2/2", "held", "429,"]
    assert "codex is not on PATH; install it" in lines[2]
    released = command("release", "claude")
    assert ("full" in released.stdout, released.stderr) == (True, "")
    assert command("release", "claude").stderr == "Nothing was held on claude.\n"
    assert command("release", "claude", "codex", "--family", "opus").stderr == (
        "Nothing was held on claude for opus.\nNothing was held on codex for opus.\n"
    )
    assert json.loads(command("agents", "-o", "json").stdout)[0]["limited"] is False
    unknown = command("release", "gemini")
    assert unknown.returncode == 1
    assert "claude, codex" in unknown.stderr


def test_an_agent_is_held_for_a_while_until_a_time_or_until_it_is_released(
    command: Command, prepared: PreparedService
) -> None:
    prepared.add_agent("claude")
    held = json.loads(command("hold", "claude", "--for", "2h", "--reason", "kept for the day", "-o", "json").stdout)
    assert (held["provenance"], held["hold_reason"]) == ("operator", "by hand: kept for the day")
    assert held["limited_until"] is not None
    at = json.loads(command("hold", "claude", "--until", "2099-01-01T00:00:00+01:00", "-o", "json").stdout)
    assert at["limited_until"] == "2098-12-31T23:00:00.000Z"
    clock = json.loads(command("hold", "claude", "--until", "14:20", "-o", "json").stdout)
    assert clock["limited_until"] is not None
    table = command("hold", "claude").stdout
    assert "held" in table
    assert prepared.agents()[0].limited_until is None
    for wrong in (["--until", "soon"], ["--until", "2099-01-01T00:00:00"], ["--for", "2h", "--until", "14:20"]):
        assert command("hold", "claude", *wrong).returncode == 2


def test_a_shorter_hold_does_not_hide_a_longer_one(command: Command, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    assert command("hold", "claude", "--for", "1h").stderr == ""
    assert "It stays held until " in command("hold", "claude", "--for", "5m").stderr
    assert command("hold", "claude").stderr == ""
    text = "It stays held by an earlier hold; `claudomator release claude` ends both.\n"
    assert command("hold", "claude", "--for", "2h").stderr == text


def test_no_agents(command: Command) -> None:
    done = command("agents")
    assert (done.returncode, done.stdout) == (0, "")
    assert "claudomator doctor" in done.stderr
