"""The front page: everything at a glance, what needs a person first."""

import re
from urllib.parse import quote

import pytest

from claudomator_py.api.page.formatting import took
from claudomator_py.api.page.front import SHOWN
from claudomator_py.domain.budget import cost_text
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.lifecycle import (
    Cancelled,
    Completed,
    Failed,
    InputKind,
    NeedsInput,
    Phase,
    Queued,
    QueueReason,
    Running,
    Waiting,
    WaitReason,
)
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.requests import ProgressRequest
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import HOUR_MS, MINUTE_MS, parse_instant
from tests.fakes.daemon import Answer
from tests.fakes.prepared import START_MS, PreparedService
from tests.unit.api.page.conftest import Visitor, text_of

AT_THREE = START_MS + 2_800_000  # 15:00 UTC
HOSTILE = "<img src=x onerror=alert(1)>"


def section(answer: Answer, name: str) -> str:
    """The markup of one section."""
    match = re.search(rf'<section id="{name}".*?</section>', answer.body.decode(), re.DOTALL)
    assert match is not None, f"there is no section {name}"
    return match[0]


def test_a_running_task_tells_how_far_it_is(operator: Visitor, prepared: PreparedService) -> None:
    run = prepared.add_run(prepared.add("works", Running(Phase.RUNNING)))
    prepared.world.run_requests.report_progress(run, ProgressRequest(text=f"Half of {HOSTILE}.", percent=50))
    page = section(operator.get("/"), "running")
    assert "50%: Half of &lt;img src=x" in page


def test_what_runs_is_cancelled_from_its_row_and_what_waits_from_its_page(
    operator: Visitor, prepared: PreparedService
) -> None:
    waits = prepared.add("next")
    works = prepared.add("works", Running(Phase.RUNNING))
    prepared.add_run(works)
    page = operator.get("/")
    assert f'href="/tasks/{works}/cancel"' in section(page, "running")
    assert "/restart" not in section(page, "running")
    assert f"/tasks/{waits}/cancel" not in page.body.decode()


def test_sections_come_in_the_order_of_urgency(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add("done", Completed())
    prepared.add("next")
    prepared.add_run(prepared.add("works", Running(Phase.RUNNING)))
    prepared.add("broken", Failed(Reason.LOST))
    prepared.add("asks", NeedsInput(InputKind.QUESTION))
    prepared.add_agent("claude")
    page = operator.get("/")
    assert re.findall(r'<section id="([^"]+)"', page.body.decode()) == [
        "needs-you",
        "running",
        "problems",
        "queue",
        "recent",
    ]
    for name, holds in (
        ("needs-you", "asks"),
        ("problems", "broken"),
        ("running", "works"),
        ("queue", "next"),
        ("recent", "done"),
    ):
        assert f">{holds}</a>" in section(page, name)
    assert "<title>(1) Claudomator</title>" in page.body.decode()
    assert "1/2 slots" in text_of(page)


def test_where_there_is_nothing_the_page_says_so(operator: Visitor, prepared: PreparedService) -> None:
    text = text_of(operator.get("/"))
    assert "There are no tasks yet." in text
    assert "No agent is configured." in text
    assert "Nothing" not in text  # five empty lists would stand above or below the next step
    prepared.add("it", Completed())
    text = text_of(operator.get("/"))
    assert "There are no tasks yet." not in text
    for words in (
        "Nothing needs you.",
        "Nothing failed in the last 24 hours.",
        "Nothing runs.",
        "Nothing waits.",
    ):
        assert words in text


def test_what_needs_a_person_besides_tasks(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude", reason=Reason.AUTH)
    prepared.add_agent("codex", problem="codex is not on PATH; install it")
    problem = Problem(line=3, field="agnt", message="is not a known key", remedy="did you mean `agent`?")
    prepared.refuse_file("tasks/it.yaml", problem)
    prepared.ready = False
    needs = section(operator.get("/"), "needs-you")
    for words in ("The agent is not logged in", "not on PATH", "3: agnt: is not a known key", "Stop the other process"):
        assert words in needs
    assert 'action="/agents/claude/release"' in needs


def test_a_refused_file_shows_its_first_problem_and_stands_after_what_is_asked(
    operator: Visitor, prepared: PreparedService
) -> None:
    problems = tuple(Problem(line=line, message="is wrong") for line in range(1, 13))
    prepared.refuse_file("tasks/it.yaml", *problems)
    prepared.add("asks", NeedsInput(InputKind.QUESTION))
    page = operator.get("/")
    needs = section(page, "needs-you")
    assert needs.index(">asks</a>") < needs.index("it.yaml")
    assert needs.count("is wrong") == 1
    assert "and 11 more in it.yaml.error.txt" in needs


def test_numbers_have_their_grammar_and_what_they_count(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add("asks", NeedsInput(InputKind.QUESTION))
    page = operator.get("/")
    assert 'data-summary="1 needs you, 0 failed' in page.body.decode()
    assert "1 needs input" in text_of(page)
    assert 'class="note"' not in section(page, "needs-you"), "the heading has the number of tasks"
    prepared.add("asks-too", NeedsInput(InputKind.QUESTION))
    prepared.refuse_file("tasks/it.yaml", Problem(line=3, message="is wrong"))
    page = operator.get("/")
    assert 'data-summary="3 need you, 0 failed, 0 running, 0 queued or waiting"' in page.body.decode()
    assert "2 need input" in text_of(page)
    assert '<p class="note">2 tasks, 1 refused file</p>' in section(page, "needs-you")


def test_what_asks_beyond_those_shown_is_one_link_away(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(SHOWN + 1):
        prepared.add(f"asks-{number}", NeedsInput(InputKind.QUESTION))
    needs = section(operator.get("/"), "needs-you")
    assert f'and 1 more: <a href="/?state=NEEDS_INPUT">all {SHOWN + 1} tasks</a>' in needs


def test_every_wait_tells_its_reason_and_its_time(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add("later", Waiting(WaitReason.TIME, START_MS + HOUR_MS))
    prepared.add_agent("claude")
    prepared.limit("claude", START_MS + 47 * MINUTE_MS)
    prepared.add("limited", Queued(QueueReason.LIMITED, START_MS + 47 * MINUTE_MS))
    queue = section(operator.get("/"), "queue")
    assert "not before" in queue
    for instant in ("2026-09-21T15:13:20.000Z", "2026-09-21T15:00:20.000Z"):
        assert f'<time datetime="{instant}" data-show="until">' in queue


def test_failures_are_counted_by_their_reason(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(3):
        prepared.add(f"t{number}", Failed(Reason.TIMEOUT))
    prepared.add("t3", Failed(Reason.LOST))
    assert "3 timeout, 1 lost" in section(operator.get("/"), "problems")


def test_filters_are_in_the_address(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add("fix-login", Failed(Reason.TIMEOUT), tags=["shop"])
    prepared.add("fix-logout", Completed(), tags=["shop"], done_by="plumber")
    prepared.add("write-notes", Failed(Reason.TIMEOUT))
    for query, expected in (
        ("q=LOG", {"fix-login", "fix-logout"}),
        ("state=FAILED", {"fix-login", "write-notes"}),
        ("tag=shop&state=COMPLETED", {"fix-logout"}),
        ("specialist=plumber", {"fix-logout"}),
        ("q=nothing", set()),
    ):
        page = operator.get(f"/?{query}")
        assert set(re.findall(r'class="name"[^>]*>([^<]+)</a>', page.body.decode())) == expected
    assert "No task matches." in text_of(operator.get("/?q=nothing"))
    body = operator.get("/?state=FAILED&q=%22log&tag=a%26b&specialist=c%3Cd").body.decode()
    assert '<option value="FAILED" selected>' in body
    assert 'value="&#34;log"' in body
    assert 'value="a&amp;b"' in body
    assert 'value="c&lt;d"' in body
    assert "/select?state=FAILED&amp;q=%22log&amp;tag=a%26b&amp;specialist=c%3Cd" in body


def test_an_impossible_filter_is_refused_with_the_remedy(operator: Visitor) -> None:
    answer = operator.get("/?state=ASLEEP")
    assert answer.status == 422
    assert "is not one of" in text_of(answer)


def test_a_long_list_goes_on_on_the_next_page(operator: Visitor, prepared: PreparedService) -> None:
    names = {prepared.add(f"t{number:03}", Cancelled()) and f"t{number:03}" for number in range(60)}
    seen: set[str] = set()
    path = "/?state=CANCELLED"
    for _ in range(2):
        body = operator.get(path).body.decode()
        seen |= set(re.findall(r'class="name"[^>]*>([^<]+)</a>', body))
        more = re.search(r'<a href="(/\?[^"]*cursor=[^"]*)">', body)
        path = more[1].replace("&amp;", "&") if more else ""
    assert seen == names
    assert path == ""


@pytest.mark.parametrize("words", [HOSTILE, '"><script>alert(1)</script>', "{{ 7 * 7 }}", "a' onclick='x", "&lt;b&gt;"])
def test_what_strangers_wrote_is_shown_and_never_run(operator: Visitor, prepared: PreparedService, words: str) -> None:
    task = prepared.add("it", Completed(), tags=[words], working_dir=f"/srv/{words}")
    prepared.move(task, Completed(), result_text=f"{words}<script>alert(2)</script>")
    prepared.refuse_file(f"tasks/{words}.yaml", Problem(message=words))
    prepared.add_agent(words, problem=words)
    for path in ("/", f"/?tag={quote(words)}", f"/tasks/{task}", f"/tasks/{task}/restart"):
        page = operator.get(path)
        assert words in text_of(page)
        assert "<img" not in page.body.decode()
        assert re.findall(r"<script(?! src=\"/static/)", page.body.decode()) == []
        assert " onclick='" not in page.body.decode()


def test_terminal_codes_and_hidden_directions_are_left_out(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", Completed())
    prepared.move(
        task, Completed(), result_text="\x1b[31mred\x1b[0m \x1b]8;;http://evil\x07link \u202et\u200bx\u2066et\x00"
    )
    for path in ("/", f"/tasks/{task}"):
        page = operator.get(path)
        assert "red link txet" in text_of(page)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u2069]", page.body.decode())


def test_a_question_is_shown_itself(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", NeedsInput(InputKind.QUESTION))
    prepared.add_run(task, outcome=Outcome(status=OutcomeStatus.NEEDS_INPUT))
    prepared.move(task, NeedsInput(InputKind.QUESTION), result_text="Which one?")
    assert "Which one?" in section(operator.get("/"), "needs-you")


def test_amounts() -> None:
    assert (cost_text(None, 2), cost_text(0.25, 2)) == (None, "at least $0.25")
    assert [cost_text(usd) for usd in (None, 0.0, 0.0023, 0.0123, 0.25, 12.5)] == [
        None,
        "$0.00",
        "$0.0023",
        "$0.01",
        "$0.25",
        "$12.50",
    ]
    start = "2026-09-21T14:20:00.000Z"
    assert took(start, None) is None
    assert took(start, "2026-09-21T14:20:00.900Z") == "0s"
    assert took(start, "2026-09-21T15:21:02.000Z") == "1h1m"
    assert took(start, "2026-09-23T17:21:02.000Z") == "2d3h"


def test_schedules_say_when_they_come_and_what_became_of_the_last_time(
    operator: Visitor, prepared: PreparedService
) -> None:
    assert 'id="schedules"' not in operator.get("/").body.decode()
    assert "There is no schedule." in text_of(operator.get("/schedules"))
    spec = TaskSpec(name="nightly", instructions="x", schedule="0 3 * * *", timezone="Europe/Berlin")
    prepared.schedules.add(spec)
    page = operator.get("/")
    assert "0 3 * * * (Europe/Berlin)" in text_of(page)
    schedules = text_of(operator.get("/schedules"))
    assert "0 3 * * * (Europe/Berlin)" in schedules
    assert "None was missed." in schedules
    assert '<time datetime="2026-09-22T01:00:00.000Z" data-show="until">' in page.body.decode()
    answer = operator.post("/schedules/nightly/run")
    (task,) = map(prepared.task, prepared.task_ids())
    assert (answer.status, answer.headers["location"]) == (303, f"/tasks/{task.id}")
    page = operator.get("/")
    assert f'<a href="/tasks/{task.id}">{task.name}</a> queued, by hand' in page.body.decode()
    answer = operator.post("/schedules/nightly/pause")
    assert (answer.status, answer.headers["location"]) == (303, "/#schedules")
    assert prepared.schedules.get("nightly").paused_since is not None
    assert "paused" in text_of(operator.get("/"))
    assert operator.post("/schedules/nightly/resume").status == 303
    assert prepared.schedules.get("nightly").paused_since is None
    prepared.world.now_ms = parse_instant("2026-09-22T01:00:00.000Z")
    prepared.world.schedule_runner.run_due()
    text = f"skipped 2026-09-22 01:00 UTC : {task.name} had not ended (QUEUED)"
    assert text in text_of(operator.get("/"))
    assert operator.post("/schedules/nobody/run").status == 404


def test_only_states_with_tasks_are_led_to_and_one_reason_is_not_counted_twice(
    operator: Visitor, prepared: PreparedService
) -> None:
    for number in range(21):
        prepared.add(f"late-{number}", Failed(Reason.TIMEOUT))
        prepared.add(f"done-{number}", Completed())
    page = operator.get("/")
    assert "21 timeout" not in section(page, "problems")
    recent = section(page, "recent")
    assert "all 21 completed" in recent
    assert "cancelled" not in recent


def test_totals_add_up_beyond_what_is_shown(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(61):
        reason = Reason.TIMEOUT if number % 3 else Reason.LOST
        prepared.add(f"broken-{number}", Failed(reason))
    page = operator.get("/")
    problems = section(page, "problems")
    assert '<span class="count">61</span>' in problems
    assert "40 timeout, 21 lost" in problems
    assert re.findall(r"<strong>(\d+) failed</strong>", problems) == ["21", "40"]
    assert re.findall(r"and (\d+) more", problems) == ["11", "30"]
    assert "all 61 failed" in problems
    result = section(operator.get("/?state=FAILED"), "found")
    assert '<span class="count">61</span>' in result
    assert "50 of them shown" in result
    rest = re.search(r'href="(/\?[^"]*cursor[^"]*)"', result)
    assert rest is not None
    last = section(operator.get(rest[1].replace("&amp;", "&")), "found")
    assert '<span class="count">61</span>' in last
    assert "11 of them shown" in last


def test_a_list_of_tasks_that_are_all_alike_shows_each(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(9):
        prepared.add(f"broken-{number}", Failed(Reason.TIMEOUT))
    assert "<strong>9 failed</strong>" in section(operator.get("/"), "problems")
    result = section(operator.get("/?state=FAILED"), "found")
    assert "<details" not in result
    assert len(re.findall(r">broken-\d</a>", result)) == 9


def test_the_strip_counts_every_task_once(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(3):
        prepared.add(f"done-{number}", Completed())
    prepared.add("broken", Failed(Reason.LOST))
    prepared.add("next")
    strip = re.search(r'<p class="strip">.*?</p>', operator.get("/").body.decode())
    assert strip is not None
    numbers = [int(number) for number in re.findall(r"<strong>(\d+)", strip[0])]
    assert numbers == [5, 0, 0, 1, 1, 0, 3, 0]
    assert '<a href="/?state=FAILED"><strong>1</strong> failed</a>' in strip[0]


def test_equal_reasons_are_one_line_and_others_stand_by_themselves(
    operator: Visitor, prepared: PreparedService
) -> None:
    for number in range(4):
        prepared.add(f"later-{number}", Waiting(WaitReason.TIME, START_MS + HOUR_MS))
    prepared.add("much-later", Waiting(WaitReason.TIME, START_MS + 2 * HOUR_MS))
    for number in range(3):
        prepared.add(f"asks-{number}", NeedsInput(InputKind.QUESTION))
    page = operator.get("/")
    queue = section(page, "queue")
    assert queue.count("<summary>") == 1
    assert "<strong>4 wait</strong>: " in queue
    folded = queue[queue.index("<summary>") : queue.index("</details>")]
    assert set(re.findall(r">(later-\d|much-later)</a>", folded)) == {f"later-{number}" for number in range(4)}
    assert "much-later" in queue
    assert "<summary>" not in section(page, "needs-you")  # each wants an answer of its own


def test_whose_limit_many_wait_for_is_said_in_their_line(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.limit("claude", AT_THREE)
    for number in range(3):
        prepared.add(f"page-{number}")
    queue = text_of(operator.get("/"))
    assert "3 wait : claude is limited" in queue
    assert "until 2026-09-21 15:00 UTC" in queue


def test_what_runs_is_seen_below_much_that_needs_somebody(operator: Visitor, prepared: PreparedService) -> None:
    for number in range(9):
        prepared.add(f"asks-{number}", NeedsInput(InputKind.QUESTION))
    needs = section(operator.get("/"), "needs-you")
    assert needs.index("<summary>4 more</summary>") > needs.index("asks-4")
    assert needs.count('class="row task"') == 9


def test_a_row_says_where_a_task_works_and_how_long_it_took(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", working_dir="/srv/shop")
    run = prepared.add_run(task)
    began = prepared.task(task).started_at
    assert began is not None
    prepared.world.now_ms = parse_instant(began) + 3 * MINUTE_MS
    prepared.end_run(run, Outcome(status=OutcomeStatus.SUCCEEDED))
    prepared.move(task, Completed())
    recent = section(operator.get("/"), "recent")
    assert '<span class="at" title="shop">shop</span>' in recent
    assert '<span class="took"><span class="unseen">took </span>3m</span>' in recent


def test_the_next_that_needs_somebody(operator: Visitor, prepared: PreparedService) -> None:
    assert operator.get("/next").headers["location"] == "/"
    text, two = (prepared.add(name, NeedsInput(InputKind.QUESTION)) for name in ("one", "two"))
    first = operator.get("/next").headers["location"]
    assert first in (f"/tasks/{text}", f"/tasks/{two}")
    other = operator.get(f"/next?after={first.removeprefix('/tasks/')}").headers["location"]
    assert {first, other} == {f"/tasks/{text}", f"/tasks/{two}"}
    assert operator.get(f"/next?after={other.removeprefix('/tasks/')}").headers["location"] == first
    assert f'href="/next?after={text}"' in operator.get(f"/tasks/{text}").body.decode()


def test_one_task_is_counted_as_one(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add("only", Running(Phase.RUNNING))
    assert "<strong>1 task</strong>" in operator.get("/").body.decode()
    prepared.add("other", Running(Phase.RUNNING))
    assert "<strong>2 tasks</strong>" in operator.get("/").body.decode()


@pytest.mark.parametrize(
    ("path", "onward"),
    [
        ("/?q=nothing", "/"),
        ("/select?q=nothing", "/select"),
        ("/report?since=1h", "/night"),
        ("/night", "/"),
        ("/decisions", "/new"),
        ("/decisions?agent=nobody", "/decisions"),
        ("/repositories", "/new"),
        ("/specialists?q=zebra", "/specialists"),
    ],
)
def test_where_there_is_nothing_a_link_leads_on(operator: Visitor, path: str, onward: str) -> None:
    nothing = re.search(r'<p class="empty">[^\n]*?<a href="([^"?]+)', operator.get(path).body.decode())
    assert nothing is not None
    assert nothing[1] == onward
