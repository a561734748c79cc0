"""The figures for people: lines in a terminal, and a page that needs nothing but itself."""

from html.parser import HTMLParser
from typing import Any

import pytest

from claudomator_py.lab.evaluation_report import Gate, page, terminal

FIGURES: dict[str, Any] = {
    "cases": 3,
    "top1": 0.5,
    "oos_recall": None,
    "latency_ms": {"p99": 1.5},
    "tier": {"accuracy": 0.7, "under": None},
    "per_class": {"yes": {"cases": 2, "precision": 1.0, "recall": 0.5}, "<no>": {"cases": 1, "precision": None}},
    "confusion": {"yes": {"yes": 1, "<no>": 1}, "<no>": {"yes": 0, "<no>": 1}},
}
FIGURES["per_class"]["<no>"]["recall"] = None


class Elements(HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_terminal_gets_figures_and_two_tables() -> None:
    assert terminal(FIGURES).splitlines() == [
        "cases           3",
        "top1            0.5",
        "p99 (ms)        1.5",
        "tier, accuracy  0.7",
        "",
        "ROUTE  CASES  PRECISION  RECALL",
        "yes        2        1.0     0.5",
        "<no>       1          -       -",
        "",
        "RIGHT \\ DECIDED  yes  <no>",
        "yes                1     1",
        "<no>               0     1",
    ]


def test_figures_without_routes_have_no_tables() -> None:
    assert terminal({"cases": 1, "per_class": {}, "confusion": {}, "tier": None}) == "cases  1"
    assert "<svg" not in page({"cases": 1, "per_class": {}, "confusion": {}}, [])


def test_a_page_loads_nothing_and_quotes_what_it_tells() -> None:
    text = page(FIGURES, [Gate("<b>", None, 0.5, None), Gate("top1", 0.5, 0.4, 0.6)])
    elements = Elements(text)
    assert elements.open == []
    assert not {"script", "link", "img", "iframe", "no", "b"} & set(elements.tags)
    assert not {"src", "href", "onload", "onclick"} & set(elements.attributes)
    assert elements.tags.count("rect") == 4
    assert "yes decided as &lt;no&gt;: 1 of 2" in text
    assert '<tr class="missed"><td>&lt;b&gt;</td><td>-</td><td>at least 0.5</td><td>missed</td></tr>' in text
    assert "<td>at least 0.4 and at most 0.6</td><td>met</td>" in text


@pytest.mark.parametrize(
    ("held", "met", "miss"),
    [
        (Gate("x", 0.5, 0.5, None), True, ""),
        (Gate("x", 0.5, None, 0.5), True, ""),
        (Gate("x", 0.4, 0.5, None), False, "x is 0.4, but must be at least 0.5"),
        (Gate("x", 0.6, None, 0.5), False, "x is 0.6, but must be at most 0.5"),
        (Gate("x", None, 0.5, None), False, "x cannot be measured on this set"),
    ],
)
def test_a_figure_is_met_within_its_bounds(held: Gate, met: bool, miss: str) -> None:
    assert held.met is met
    assert met or held.miss == miss
