"""What a report says of a span of time: what ended in it, what it changed and cost, and what is left."""

import re
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from pydantic import ValidationError

from claudomator_py.domain.errors import Invalid, Problem
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_instant
from claudomator_py.resources.report import ReportSpan, ReportView, TaskGroup, service
from claudomator_py.resources.report.service import Reports
from claudomator_py.resources.report.text import headline_of, markdown
from claudomator_py.resources.tasks.views import TaskViews
from claudomator_py.store.database import Database
from claudomator_py.store.events import NewEvent, record_all
from claudomator_py.store.report_rows import STARTED
from tests.fakes.steps import spec
from tests.fakes.world import START_MS, World

COMMITS = [{"id": letter * 40, "subject": f"{letter}", "author": "n"} for letter in "abcdef"]


@pytest.fixture
def world(database: Database) -> World:
    return World(database, total=20)


def report(world: World, by: Principal = OPERATOR, **span: int) -> ReportView:
    wanted = {name: datetime.fromtimestamp(at_ms / 1_000, UTC) for name, at_ms in span.items()}
    return world.access.as_(by)[Reports].report(ReportSpan(**wanted))


def changed(place: str = "/srv/shop", *, commits: Any = (), files: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    listed = [{"path": path, "change": "modified", "added": 2, "removed": 1} for path in files]
    figures = {"file_count": len(files), "added": 2 * len(files), "removed": len(files)}
    return {"place": place, "commits": commits, "commit_count": len(commits), "files": listed, **figures, **more}


def _is_in_a_directory(outcome: dict[str, Any]) -> bool:
    return not str(outcome.get("changes", {}).get("place", "/state/")).startswith("/state/")


def run(world: World, name: str, **outcome: Any) -> None:
    world.submit(name, **({"working_dir": outcome["changes"]["place"]} if _is_in_a_directory(outcome) else {}))
    world.tick()
    world.end(name, **outcome)
    world.tick(MINUTE_MS)


def test_a_night_in_which_nothing_happened_says_so(world: World) -> None:
    result = report(world)
    assert result.headline == "nothing happened"
    assert "no runs ended." in markdown(result, str)
    assert (result.since, result.until) == (format_instant(START_MS - 12 * HOUR_MS), format_instant(START_MS))


def test_the_headline_has_what_ended_what_asks_what_changed_and_what_it_cost(world: World) -> None:
    for name, commit in (("one", COMMITS[:2]), ("two", COMMITS[2:3])):
        run(world, name, cost_usd=0.25, changes=changed(commits=commit, files=("a", f"{name}.py")))
    run(world, "blog", cost_usd=0.5, changes=changed("/srv/blog", commits=COMMITS[3:4], files=("x",)))
    run(world, "bad", exit_code=1, status="failed", reason="refused", cost_usd=0.01)
    run(world, "asks", status="needs_input", question="Blue or green?", cost_usd=0.0)
    result = report(world)
    assert result.headline == "3 done, 1 failed, 1 asks you; 4 commits in 2 repositories; $1.01"
    assert [view.name for view in result.needs_you] == ["asks"]
    shop, blog = result.repositories
    assert (shop.path, shop.commits, shop.files, shop.tasks) == ("/srv/shop", 3, 3, 2)
    assert (blog.path, blog.commits) == ("/srv/blog", 1)


def test_all_numbers_of_the_headline_are_grouped_alike(world: World) -> None:
    counts = dict.fromkeys(("completed", "failed", "cancelled", "needs_you_total", "running", "queued"), 1_943)
    headline = headline_of(report(world).model_copy(update=counts | {"waiting": 3_886}))
    assert re.findall(r"[\d,]*\d", headline) == ["1,943"] * 7


def test_a_commit_that_two_runs_saw_counts_once(world: World) -> None:
    run(world, "one", changes=changed("/trees/one", commits=COMMITS[:3], repository="/srv/shop"))
    run(world, "two", changes=changed("/trees/two", commits=COMMITS[2:4], repository="/srv/shop"))
    (shop,) = report(world).repositories
    assert (shop.path, shop.commits, shop.runs) == ("/srv/shop", 4, 2)


def test_files_left_uncommitted_are_those_of_the_runs_counted_once(world: World) -> None:
    def left(*names: str, before: int) -> dict[str, Any]:
        return {"untracked": names, "untracked_count": len(names), "left_as_before": before}

    run(world, "one", changes=changed(files=("a", "b")) | left("a", "b", "mine", before=1))
    run(world, "two", changes=changed(files=("c",)) | left("b", "c", "mine", before=2))
    assert report(world).repositories[0].uncommitted == 2, "a was committed since, and mine is nobody's"


def test_commits_beyond_those_that_are_named_count(world: World) -> None:
    run(world, "one", changes=changed(commits=COMMITS[:1]) | {"commit_count": 70})
    assert report(world).repositories[0].commits == 70


def test_a_branch_is_named_with_what_became_of_it_in_all(world: World) -> None:
    def moved(name: str, before: str | None, after: str | None) -> dict[str, Any]:
        hashes = {"before": before and before * 40, "after": after and after * 40}
        return {"name": f"refs/heads/{name}", **hashes}

    first = [moved("main", "a", "b"), moved("new", None, "b"), moved("old", "a", None), moved("brief", None, "c")]
    second = [moved("main", "b", "a"), moved("new", "b", "c"), moved("brief", "c", None)]
    run(world, "one", changes=changed(refs=[*first, {"name": "refs/tags/v1", "after": "a" * 40}], ref_count=5))
    run(world, "two", changes=changed(refs=second, ref_count=3))
    (shop,) = report(world).repositories
    assert {branch.name: branch.change for branch in shop.branches} == {"new": "made", "old": "deleted"}


def test_a_failed_night_says_first_that_nothing_is_done_and_groups_the_reasons(world: World) -> None:
    for number in range(3):
        run(world, f"login-{number}", exit_code=1, status="failed", reason="refused", text="I will not do that.")
    run(world, "late", exit_code=1, status="failed", reason="turn_limit")
    result = report(world)
    assert result.headline == "nothing done, 4 failed; cost unknown"
    assert [(group.reason, group.count) for group in result.failures] == [("refused", 3), ("turn_limit", 1)]
    assert [ref.name for ref in result.failures[0].tasks] == ["login-2", "login-1", "login-0"]


def test_more_branches_than_are_named_are_counted(world: World) -> None:
    refs = [{"name": f"refs/heads/claudomator/t-{entry}", "before": None, "after": "a" * 40} for entry in range(27)]
    run(world, "many", changes=changed(refs=refs, ref_count=27))
    result = report(world)
    assert (len(result.repositories[0].branches), result.repositories[0].more_branches) == (20, 7)
    assert "  - and 22 more branches\n" in markdown(result, str)


def test_of_tasks_that_failed_alike_only_as_many_become_views_as_are_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c", "d"):
        detail = "the disk is full" if name != "d" else "no such host"
        run(world, name, exit_code=1, status="failed", reason="refused", detail=detail)
    viewed: list[str] = []
    views_of = TaskViews.of

    def of(self: TaskViews, connection: Any, tasks: Any, **how: Any) -> Any:
        viewed.extend(task.name for task in tasks)
        return views_of(self, connection, tasks, **how)

    monkeypatch.setattr(TaskViews, "of", of)
    monkeypatch.setattr(service, "MAX_NAMES", 2)
    groups = report(world).failures
    assert [(group.count, [ref.name for ref in group.tasks]) for group in groups] == [(3, ["c", "b"]), (1, ["d"])]
    assert sorted(viewed) == ["b", "c", "d"]


def test_tasks_whose_dependencies_failed_or_are_open_are_one_group_each(world: World) -> None:
    for number in range(2):
        world.submit(f"broken-{number}", retry={"max_attempts": 1}, agent={"type": "claude", "strict": True})
        world.submit(f"after-broken-{number}", depends_on=[f"broken-{number}"])
        world.submit(f"asks-{number}", agent={"type": "codex", "strict": True})
        world.submit(f"after-asks-{number}", depends_on=[f"asks-{number}"])
    world.tick()
    for number in range(2):
        world.end(f"broken-{number}", exit_code=1, status="failed", reason="agent_error")
        world.end(f"asks-{number}", status="needs_input", question="Which?")
    world.tick(MINUTE_MS)
    result = report(world)
    groups = {group.reason: group for group in (*result.failures, *result.waits)}
    assert groups["dependency_failed"].count == 2
    assert groups["dependency_failed"].text == "A task that it depends on did not complete."
    assert groups["dependency"].count == 2
    assert len([entry for entry in result.waits if entry.reason == "dependency"]) == 1


def test_a_repository_that_a_run_deleted_is_named(world: World) -> None:
    gone = "its git directory /srv/shop/.git is not there any more"
    run(world, "wipes", changes=changed("/srv/shop", repository="/srv/shop", fault=gone))
    assert f"\n- /srv/shop: not recorded, by 1 task: {gone}\n" in markdown(report(world), str)


def test_what_an_earlier_run_of_a_task_changed_counts(world: World) -> None:
    world.submit("t", retry={"max_attempts": 2, "backoff": "1s"})
    world.tick()
    world.fail("t", "agent_error", changes=changed(commits=COMMITS[:1], commit_count=1))
    world.tick(MINUTE_MS)
    world.end("t", text="Fixed the bug.", changes=changed())
    world.tick()
    result = report(world)
    assert (result.completed, result.unchanged, result.doubtful) == (1, 0, 0)
    assert len(result.repositories) == 1


def test_a_repository_that_nothing_changed_is_not_among_those_that_changed(world: World) -> None:
    run(world, "looks", changes=changed())
    result = report(world)
    assert (result.repositories, result.headline) == ((), "1 done; no commits; cost unknown")
    assert "What changed" not in markdown(result, str)
    run(world, "edits", changes=changed("/srv/other", files=("a",), is_repository=False))
    assert "\n- /srv/other: 1 file (+2 -1), by 1 task\n" in markdown(report(world), str)


def test_a_sum_of_dollars_that_lacks_some_says_so(world: World) -> None:
    run(world, "priced", cost_usd=0.4)
    run(world, "unpriced")
    assert report(world).headline == "2 done; at least $0.40"
    run(world, "changes", cost_usd=0.25, changes=changed(files=("a",)))
    run(world, "changes-too", changes=changed(files=("b",)))
    (repository,) = report(world).repositories
    assert (repository.cost_usd, repository.unpriced) == (0.25, 1)
    assert "by 2 tasks, at least $0.25\n" in markdown(report(world), str)


def test_a_limit_that_another_agent_took_over_is_told_from_one_that_was_waited_for(world: World) -> None:
    world.submit("around")
    world.tick()
    first = world.live("around").agent
    world.limit("around", reset_at=world.now_ms + 2 * HOUR_MS)
    assert world.live("around").agent != first
    world.end("around")
    world.tick(MINUTE_MS)
    other = next(name for name in ("claude", "codex") if name != first)
    world.submit("waits", agent={"type": first, "strict": True})
    world.submit("limited", agent={"type": other, "strict": True})
    world.tick()
    world.limit("limited", reset_at=world.now_ms + HOUR_MS)
    result = report(world)
    assert (result.limits, result.limits_flowed_around, result.waiting) == (2, 1, 2)
    assert "2 limits, 1 flowed around" in result.headline
    assert {group.reason for group in result.waits} == {"limited"}
    assert all(re.fullmatch(r"[a-z]+ is limited \(.*[a-z]\)", group.text) for group in result.waits), result.waits
    assert all(group.until is not None for group in result.waits)


def test_an_agent_that_only_a_person_can_release_needs_one_even_if_no_task_waits_for_it(world: World) -> None:
    run(world, "t", exit_code=1, status="failed", reason="auth", detail="Invalid API key")
    run(world, "u", exit_code=1, status="limited", reason="rate_limited", reset_at=world.now_ms + HOUR_MS)
    world.succeed("t")
    result = report(world)
    assert result.needs_you == ()
    assert result.held == ("claude is held (auth: Invalid API key, reported) until `claudomator release claude`",)
    assert result.headline.startswith("1 done, 1 agent held, ")
    assert "## What needs you\n\n- claude is held" in markdown(result, str)
    assert report(world, Principal("guest", Role.READ, "acme")).held == ()


def test_waits_of_one_kind_are_one_group_whatever_their_times(world: World) -> None:
    for number in range(3):
        world.submit(f"late-{number}", not_before=format_instant(START_MS + (number + 1) * HOUR_MS))
        world.submit(f"again-{number}", retry={"max_attempts": 2, "backoff": f"{number + 1}m"})
    world.tick()
    for number in range(3):
        world.end(f"again-{number}", exit_code=1, status="failed", reason="agent_error")
        world.tick(SECOND_MS)
    groups = {group.reason: group for group in report(world).waits}
    assert {reason: group.count for reason, group in groups.items()} == {"time": 3, "backoff": 3}
    assert groups["time"].until == format_instant(START_MS + HOUR_MS)
    assert not any(re.search(r"\d\d:\d\d|\(in|\bat$|\buntil$", group.text) for group in groups.values())
    assert (groups["time"].text, groups["backoff"].text) == ("", "tries again")
    text = markdown(report(world), lambda instant: "then")
    assert "- 3 x time, the first until then (late-0" in text
    assert "- 3 x backoff: tries again, the first at then (again-" in text
    assert "the first until" in markdown(report(world), lambda instant: "then" if instant else "")


def test_tasks_that_nobody_approved_in_time_are_described_without_the_time(world: World) -> None:
    world = World(world.database, routes=True)
    world.submit("t", approval=True, expires="1m")
    world.tick()
    world.tick(2 * MINUTE_MS)
    assert world.state("t") == "FAILED expired"
    (group,) = report(world).failures
    assert (group.reason, group.text) == ("expired", "Nobody approved it; it asks for approval before its first run.")


def test_a_sentence_goes_on_where_its_time_was_in_the_middle(world: World) -> None:
    world.submit("early", agent={"type": "claude"}, on_limit="wait", retry={"max_attempts": 1})
    world.submit("asked", expires="1m")
    world.tick()
    world.end("asked", status="needs_input", text="Red or blue?", question="Red, which I look at, or blue?")
    world.end("early", windows={"five_hour": {"used": 0.97, "resets_at": START_MS + HOUR_MS}}, text="Half of it.")
    world.tick()
    world.tick(2 * MINUTE_MS)
    assert (world.state("asked"), world.state("early")) == ("FAILED expired", "WAITING backoff")
    (failed,), (waits,) = report(world).failures, report(world).waits
    assert failed.text == "Nobody answered: Red, which I look at, or blue?"
    assert waits.text.endswith("continues to finish, or to confirm that it is done"), waits.text


def test_a_group_counts_tasks_that_no_list_names(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of waiting tasks that several agents could do is complete, and names no time that is left out."""
    monkeypatch.setattr(service, "SHOWN", 3)
    world.submit("first")
    world.tick()
    for _ in range(2):  # on the one agent, then on the other
        world.limit("first", reset_at=world.now_ms + HOUR_MS)
    for number in range(5):
        world.submit(f"next-{number}")
    world.tick()
    result = report(world)
    assert result.waiting == 6
    assert max(group.count for group in result.waits) >= 5, "the first may be in a group that no list names"
    assert not any(re.search(r"\b(until|at)\s*(;|,|$)", group.text) for group in result.waits), result.waits


@pytest.mark.parametrize("section", ["What is waiting", "What failed"])
def test_what_is_in_no_group_is_counted_so_that_each_section_adds_up(world: World, section: str) -> None:
    waiting = report(world).model_copy(update={"waiting": 71, "failed": 600})
    group = TaskGroup(reason="time", text="not before", until=None, count=50, tasks=())
    known = waiting.model_copy(update={"waits": (group,), "failures": (group,)})
    lines = markdown(known, str).split(f"## {section}\n\n")[1].splitlines()
    assert lines[0].startswith("- 50 x")
    assert lines[1] == ("- and 21 more" if section == "What is waiting" else "- and 550 more")
    whole = known.model_copy(update={"waiting": 50, "failed": 50})
    assert "- and" not in markdown(whole, str)


def test_folders_that_runs_had_for_themselves_are_one_and_none_where_nothing_was_made(world: World) -> None:
    for name, files in (("poem", ("a.txt",)), ("song", ("b.txt", "c.txt")), ("talk", ())):
        run(world, name, changes=changed(f"/state/runs/{name}/work", files=files, is_repository=False))
    (scratch,) = report(world).repositories
    assert (scratch.path, scratch.files, scratch.tasks) == ("scratch directories", 3, 2)


def test_only_what_ended_in_the_span_counts(world: World) -> None:
    run(world, "early", cost_usd=1.0)
    middle = world.now_ms + 1
    world.tick(3 * DAY_MS)
    run(world, "late", cost_usd=2.0)
    assert (report(world).completed, report(world).cost_usd) == (1, 2.0)
    assert (report(world, since=START_MS, until=middle).completed, report(world, since=START_MS).completed) == (1, 2)


def test_a_report_may_end_in_the_first_hours_of_the_year_1(world: World) -> None:
    first_ms = round(datetime.min.replace(tzinfo=UTC).timestamp() * 1_000)
    assert report(world, until=first_ms + HOUR_MS).since == "0001-01-01T00:00:00.000Z"
    with pytest.raises(ValidationError, match="is out of range"):
        ReportSpan.model_validate({"until": "0001-01-01T00:00:00+02:00"})


def test_an_empty_span_is_refused_with_what_to_do(world: World) -> None:
    with pytest.raises(Invalid) as refused:
        report(world, since=START_MS, until=START_MS)
    assert refused.value.problems[0].field == "since"


def test_times_of_schedules_without_a_task_are_listed_whatever_the_cause(world: World) -> None:
    first = START_MS // HOUR_MS * HOUR_MS + HOUR_MS
    for name, overlap in (("skips", "skip"), ("asleep", "queue")):
        world.take(f"/in/{name}.yaml", spec(name, schedule="0 * * * *", timezone="UTC", overlap=overlap))
    world.now_ms = first
    world.schedule_runner.run_due()
    world.schedules.pause("asleep")
    world.now_ms = first + HOUR_MS
    world.schedule_runner.run_due()
    world.schedules.resume("asleep")
    world.now_ms += HOUR_MS + 30 * MINUTE_MS
    missed = report(world).missed
    assert ("skips", format_instant(first + HOUR_MS)) in [(entry.schedule, entry.due_at) for entry in missed]
    overdue = [(entry.schedule, entry.due_at) for entry in missed if entry.why == "it is overdue"]
    assert overdue == [(name, format_instant(first + 2 * HOUR_MS)) for name in ("asleep", "skips")]
    assert "scheduled times missed" in report(world).headline
    latest = world.access.as_(OPERATOR)[Reports].missed(7)
    assert sorted(latest, key=str) == sorted(missed, key=str)
    assert [entry.due_at for entry in latest] == sorted((missed_time.due_at for missed_time in latest), reverse=True)
    assert world.access.as_(OPERATOR)[Reports].missed(0) == []


def test_a_guest_reads_of_its_own_tasks_alone(world: World) -> None:
    run(world, "ours", cost_usd=1.0, changes=changed(commits=COMMITS))
    world.checks = lambda: [CheckView(name="disk", ok=False, detail="the disk is full", remedy="")]
    guest = report(world, Principal("eve", Role.READ, "shop"))
    assert guest.headline == "nothing happened"
    assert (guest.repositories, guest.trouble, guest.runs) == ((), (), 0)
    assert report(world).trouble == ("the disk is full",)


def test_what_keeps_nothing_from_running_is_no_trouble(world: World) -> None:
    world.checks = lambda: [
        CheckView(name="agent", ok=False, detail="no agent is on PATH", remedy="", blocking=False),
        CheckView(name="store", ok=True, detail=""),
    ]
    result = report(world)
    assert (result.trouble, result.warnings) == ((), ("no agent is on PATH",))
    assert "trouble" not in result.headline
    assert "## What else to look at\n\n- no agent is on PATH" in markdown(result, lambda _: "")
    world.checks = lambda: [CheckView(name="disk", ok=False, detail="the disk is full", remedy="")]
    assert report(world).headline == "nothing happened; the daemon is in trouble"


def test_it_says_when_the_daemon_started(world: World) -> None:
    started = NewEvent(world.now_ms, STARTED)
    world.database.write(partial(record_all, events=[started] * 7))
    result = report(world)
    assert len(result.starts) == 7
    text = f" The daemon started at {', '.join(['then'] * 5)} and 2 more times."
    assert text in markdown(result, lambda instant: "then" if instant else "")
    guest = report(world, by=Principal("eve", Role.READ, "shop"))
    assert guest.starts == ()
    assert "The daemon started" not in markdown(guest, lambda _: "")


def test_as_markdown_it_has_a_section_for_each_thing_there_is_something_to_say_of(world: World) -> None:
    run(world, "one", cost_usd=0.4, changes=changed(commits=COMMITS[:1], files=("a",)))
    run(world, "bad", exit_code=1, status="failed", reason="refused", text="No.")
    run(world, "asks", status="needs_input", question="Blue\nor green?")
    text = markdown(report(world), lambda instant: "then" if instant else "")
    assert text.startswith("# 1 done, 1 failed, 1 asks you; 1 commit in 1 repository; at least $0.40\n\nFrom then to ")
    assert "## What needs you\n\n- asks: Blue or green?\n" in text
    assert "- /srv/shop: 1 commit, 1 file (+2 -1), by 1 task, $0.40\n" in text
    assert "What is waiting" not in text


def test_it_says_what_became_of_each_branch(world: World) -> None:
    names = ("merged", "discarded", "left")
    refs = [{"name": f"refs/heads/claudomator/{name}", "before": None, "after": "a" * 40} for name in names]
    run(world, "work", changes=changed(refs=refs, ref_count=3))
    task_id = world.task("work").id
    for kind, data in (("merged", {"into": "main"}), ("discarded", {})):
        payload = {"branch": f"claudomator/{kind}", **data}
        event = NewEvent(world.now_ms, kind, task_id, None, payload)
        world.database.write(partial(record_all, events=[event]))
    (repository,) = report(world).repositories
    assert [branch.words for branch in repository.branches] == [
        "claudomator/merged (merged into main)",
        "claudomator/discarded (discarded)",
        "claudomator/left",
    ]
    assert "  - claudomator/merged (merged into main)" in markdown(report(world), str)
    stranger = Principal("p", role=Role.READ, organisation="elsewhere")
    assert report(world, stranger).repositories == ()


def test_refused_files_are_reported_to_those_who_see_all(world: World) -> None:
    world.refusals.put("/srv/tasks/a.yaml", [Problem(line=2, message="is wrong"), Problem(line=3, message="is odd")])
    result = report(world)
    assert (result.headline, result.refused_total) == ("nothing happened, 1 refused file", 1)
    assert "## Refused files\n\n- /srv/tasks/a.yaml:2: is wrong (and 1 more)\n" in markdown(result, str)
    stranger = Principal("bob", Role.READ, "acme")
    assert (report(world, stranger).refused, report(world, stranger).refused_total) == ((), 0)


def test_queued_and_waiting_tasks_are_counted_as_the_status_counts_them(world: World) -> None:
    world.submit("first", working_dir="/srv/shop")
    world.submit("second", depends_on=("first",))
    assert (report(world).queued, report(world).waiting) == (1, 2)
    assert report(world).headline == "nothing happened, 1 queued, 1 waiting"


def test_a_place_that_does_not_exist_has_not_changed(world: World) -> None:
    nowhere = changed("/nope", fault="/nope/: No such file or directory")
    run(world, "lost", exit_code=1, status="failed", reason="setup_failed", changes=nowhere)
    known = changed("/srv/shop", repository="/srv/shop", fault="it took too long")
    run(world, "slow", exit_code=1, status="failed", reason="agent_error", changes=known)
    assert [repository.path for repository in report(world).repositories] == ["/srv/shop"]
