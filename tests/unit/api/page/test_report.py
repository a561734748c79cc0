"""/report: its spans, and what it says of branches."""

import re
from html import unescape
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.outcome import Outcome, OutcomeStatus
from claudomator_py.domain.units import HOUR_MS, format_instant, parse_instant
from claudomator_py.resources.report import BranchChange, RepositoryReport
from claudomator_py.resources.report.page import REPOSITORIES
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, text_of


def spans(body: str) -> tuple[str, list[str]]:
    """The span that is shown, and where the others lead."""
    (shown,) = re.findall(r'<strong aria-current="true">([^<]+)</strong>', body)
    return shown, re.findall(r'<a href="(/report[^"]*)">\d+ (?:hours|days)</a>', body)


def test_spans_up_to_now_are_one_click_away(operator: Visitor) -> None:
    shown, others = spans(operator.get("/report").body.decode())
    assert (shown, len(others)) == ("12 hours", 3)
    for url, words in zip(others, ("24 hours", "3 days", "7 days"), strict=True):
        page = operator.get(url)
        assert page.status == 200
        assert spans(page.body.decode())[0] == words


def test_refused_files_are_shown_with_their_problems(operator: Visitor, prepared: PreparedService) -> None:
    assert "Refused files" not in text_of(operator.get("/report"))
    prepared.refuse_file("tasks/<b>.yaml", Problem(line=3, message="is `wrong`", remedy="write <i>"))
    text = text_of(operator.get("/report"))
    assert "Refused files (1)" in text
    assert "tasks/<b>.yaml:3: is wrong; write <i>" in text


@pytest.mark.parametrize("refs", [[], [{"name": "refs/heads/new", "after": "b" * 40}]])
def test_branches_are_to_be_merged_where_there_are_any(
    operator: Visitor, prepared: PreparedService, refs: list[dict[str, str]]
) -> None:
    changes = {"place": "/srv/shop", "files": [{"path": "a", "change": "added"}], "file_count": 1}
    made = RunChanges.model_validate(changes | {"refs": refs, "ref_count": len(refs)})
    prepared.end_run(prepared.add_run(prepared.add("t")), Outcome(status=OutcomeStatus.SUCCEEDED, changes=made))
    prepared.world.now_ms += HOUR_MS
    text = text_of(operator.get("/report"))
    assert "scratch directories" in text
    assert ("Merge or discard them in the list of unmerged branches" in text) == bool(refs)


def test_a_time_that_is_none_leads_back(operator: Visitor) -> None:
    page = operator.get("/report?since=yesterday")
    assert page.status == 422
    text = text_of(page)
    assert "'yesterday' is not a time" in text
    assert "write 22:00, 12h" in text
    assert "The last twelve hours" in text


def fields(body: str) -> dict[str, str]:
    """What the fields for times are filled with."""
    results = re.findall(r'<input type="datetime-local" name="(\w+)"[^>]*? value="([^"]+)" data-at="([^"]+)"', body)
    assert all(instant.endswith("Z") for _, _, instant in results)
    return {name: value for name, value, _ in results}


@pytest.mark.parametrize(
    ("query", "since", "until"),
    [
        ("since=2026-09-21T01:00&until=2026-09-21T07:30", "2026-09-21T01:00", "2026-09-21T07:30"),
        ("since=2026-09-20T22:30:00Z", "2026-09-20T22:30", None),
        ("since=1h&until=", "2026-09-21T13:13", None),
        ("since=22:00", "2026-09-20T22:00", None),
        ("", None, None),
    ],
)
def test_a_span_is_chosen_as_by_the_command(operator: Visitor, query: str, since: str, until: str | None) -> None:
    page = operator.get(f"/report?{query}")
    assert page.status == 200
    results = fields(page.body.decode())
    assert (results.get("since"), results.get("until")) == (since, until)


def test_the_night_is_one_click_away_and_ends_in_the_morning(operator: Visitor, prepared: PreparedService) -> None:
    def night() -> dict[str, str]:
        (url,) = re.findall(r'<a href="([^"]*)">Last night</a>', operator.get("/report").body.decode())
        return dict(parse_qsl(urlsplit(unescape(url)).query))

    assert night() == {"since": "2026-09-20T22:00:00.000Z", "until": "2026-09-21T08:00:00.000Z"}
    page = operator.get("/report?" + urlencode(night()))
    assert spans(page.body.decode())[0] == "Last night"
    prepared.world.now_ms = parse_instant("2026-09-22T01:30:00Z")
    assert night() == {"since": "2026-09-21T22:00:00.000Z"}


def test_what_happened_since_the_last_look_is_one_click_away(operator: Visitor, prepared: PreparedService) -> None:
    def look() -> list[str]:
        answer = operator.get("/report", Cookie="; ".join(filter(None, (operator.cookie, *kept))))
        kept[:] = [answer.headers["set-cookie"].partition(";")[0]]
        assert "HttpOnly" in answer.headers["set-cookie"]
        return re.findall(r'<a href="/report\?since=([^"]+)">Since your last look', answer.body.decode())

    kept: list[str] = []
    first = format_instant(prepared.world.now_ms)
    assert look() == []
    assert look() == [], "these are one look"
    prepared.world.now_ms += 8 * HOUR_MS
    assert look() == [first]
    prepared.world.now_ms += 60_000
    assert look() == [first]
    kept[:] = ["report_looks=1.2.3"]
    assert look() == []


@pytest.mark.parametrize(
    ("is_done", "more", "text"),
    [
        ([None, "merged into main"], 0, "b0, b1 (merged into main)"),
        ([None, "merged into main", "discarded"], 0, "3 branches, 2 merged or discarded"),
        ([None, None, None], 0, "3 branches"),
        (["merged into main"] * 20, 7, "27 branches"),
    ],
)
def test_many_branches_are_a_number(is_done: list[str | None], more: int, text: str) -> None:
    branches = tuple(BranchChange(name=f"b{at}", change="made", since=entry) for at, entry in enumerate(is_done))
    figures = dict.fromkeys(("runs", "tasks", "commits", "files", "added", "removed", "uncommitted"), 1)
    repository_report = RepositoryReport.model_validate(
        {"path": "/srv", "branches": branches, "more_branches": more, **figures}
    )
    assert REPOSITORIES.columns[-1].cell(repository_report) == text


@pytest.mark.parametrize(
    ("branches", "text"), [((), "not recorded: it is gone"), (("b",), "b; not recorded: it is gone")]
)
def test_a_repository_that_could_not_be_recorded_says_why(branches: tuple[str, ...], text: str) -> None:
    figures = dict.fromkeys(("runs", "tasks", "commits", "files", "added", "removed", "uncommitted"), 0)
    moved = tuple(BranchChange(name=name, change="made", since=None) for name in branches)
    lost = RepositoryReport.model_validate({"path": "/srv", "branches": moved, "fault": "it is gone", **figures})
    assert REPOSITORIES.columns[-1].cell(lost) == text
