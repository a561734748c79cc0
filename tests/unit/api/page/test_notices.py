"""/notices: what was sent to whom, and sending it again."""

from typing import Literal

import pytest

from claudomator_py.domain.notice import DeliveryState
from claudomator_py.resources.access import TokenRequest
from tests.fakes.daemon import Daemon
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, log_in, text_of


def test_where_nobody_was_told_it_says_how_that_begins(operator: Visitor) -> None:
    page = operator.get("/notices")
    assert (page.status, "Nobody was told about anything yet." in text_of(page)) == (200, True)
    assert "There is none that is dead." in text_of(operator.get("/notices?state=dead"))


def test_what_did_not_arrive_is_told_with_why_and_sent_again(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add_delivery("phone", DeliveryState.DELIVERED)
    prepared.add_delivery("hook", DeliveryState.DEAD, "the server answered 500 <b>")
    shown = text_of(operator.get("/notices"))
    assert "to phone" in shown
    assert "the server answered 500 <b>" in shown
    for words in ("All (2)", "Pending (0)", "Delivered (1)", "Dead (1)"):
        assert words in shown
    dead = operator.get("/notices?state=dead")
    assert "to phone" not in text_of(dead)
    assert "Send again" in text_of(dead)
    answer = operator.post("/notices/2/retry")
    assert (answer.status, answer.headers["location"]) == (303, "/notices")
    assert prepared.deliveries() == ["delivered", "pending"]
    assert operator.post("/notices/1/retry").status == 409
    assert operator.post("/notices/77/retry").status == 404


def test_many_are_shown_by_parts(operator: Visitor, prepared: PreparedService) -> None:
    for _ in range(60):
        prepared.add_delivery("phone", DeliveryState.DEAD, "no route")
    first = operator.get("/notices?state=dead")
    assert first.body.decode().count('class="row"') == 50
    more = first.body.decode().split('class="more"><a href="')[1].split('"')[0].replace("&amp;", "&")
    assert operator.get(more).body.decode().count('class="row"') == 10


def test_equal_ones_that_arrived_share_a_row(operator: Visitor, prepared: PreparedService) -> None:
    for title in ("claude is held", "Report", "claude is held", "claude is held"):
        prepared.add_delivery("phone", DeliveryState.DELIVERED, title=title)
    for _ in range(3):
        prepared.add_delivery("hook", DeliveryState.DEAD, "no route", title="claude is held")
    page = operator.get("/notices")
    assert page.body.decode().count('class="row"') == 5
    assert text_of(page).count("3 times, first") == 1
    assert text_of(page).count("Send again") == 3


@pytest.mark.parametrize("role", ["read", "operate"])
def test_only_an_administrator_sends_again(
    daemon: Daemon, prepared: PreparedService, role: Literal["read", "operate"]
) -> None:
    prepared.add_delivery("hook", DeliveryState.DEAD, "no route")
    token = prepared.world.tokens.create(TokenRequest(name="someone", role=role)).token
    visitor = log_in(daemon, token)
    assert "Send again" not in text_of(visitor.get("/notices"))
    assert visitor.post("/notices/1/retry").status == 403
    assert prepared.deliveries() == ["dead"]
