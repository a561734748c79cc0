"""/report: its spans, and what it says of branches."""

import re

import pytest

from claudomator_py.resources.report import BranchChange, RepositoryReport
from claudomator_py.resources.report.page import REPOSITORIES
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


def test_a_time_that_is_none_leads_back(operator: Visitor) -> None:
    page = operator.get("/report?since=yesterday")
    assert page.status == 422
    assert "The last twelve hours" in text_of(page)


@pytest.mark.parametrize(
    ("settled", "more", "said"),
    [
        ([None, "merged into main"], 0, "b0 (made), b1 (made, merged into main)"),
        ([None, "merged into main", "discarded"], 0, "3 branches, 2 merged or discarded"),
        ([None, None, None], 0, "3 branches"),
        (["merged into main"] * 20, 7, "27 branches"),
    ],
)
def test_many_branches_are_a_number(settled: list[str | None], more: int, said: str) -> None:
    branches = tuple(BranchChange(name=f"b{at}", change="made", since=one) for at, one in enumerate(settled))
    figures = dict.fromkeys(("runs", "tasks", "commits", "files", "added", "removed", "uncommitted"), 1)
    one = RepositoryReport.model_validate({"path": "/srv", "branches": branches, "more_branches": more, **figures})
    assert REPOSITORIES.columns[-1].cell(one) == said
