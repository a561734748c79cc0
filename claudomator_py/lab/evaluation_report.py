"""The report of an evaluation: text for a terminal, and a self-contained HTML page."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final, TypeVar

from claudomator_py.cli.output import fields, table_text
from claudomator_py.surface.table import Column, Table
from claudomator_py.values import dataclass

_NESTED: Final = {
    "latency_ms": "{} (ms)",
    "exact_by_reason": "exact, {}",
    "tier": "tier, {}",
    "baselines": "baseline, {}",
}
"""Nested figures, with the pattern for the names of their parts."""
_TABLES: Final = ("per_class", "per_specialist", "confusion", "wrong")
_GROUPS: Final = (("per_class", "ROUTE"), ("per_specialist", "SPECIALIST"))
_MAX_WRONG: Final = 20
"""Wrong cases shown in a terminal."""
_CELL: Final = 96
_LABELS: Final = 120
_ROW: Final = 44
_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 0 0 1.5rem }
th, td { padding: .2rem .9rem .2rem 0; text-align: left; border-bottom: 1px solid #8884 }
td { font-variant-numeric: tabular-nums }
svg { max-width: 100%; height: auto; font: 13px system-ui, sans-serif }
.missed { font-weight: bold }
"""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure with bounds."""

    name: str
    """The figure's name; a dot leads into a nested one."""
    value: float | None
    """The measured value. None: the set cannot tell."""
    at_least: float | None
    at_most: float | None

    @property
    def met(self) -> bool:
        """Whether the value is within the bounds. A figure without a value is missed."""
        if self.value is None:
            return False
        low, high = self.at_least, self.at_most
        return (low is None or self.value >= low) and (high is None or self.value <= high)

    @property
    def bounds(self) -> str:
        """The bounds in words: "at least 0.8"."""
        words = [(self.at_least, "at least"), (self.at_most, "at most")]
        return " and ".join(f"{word} {bound}" for bound, word in words if bound is not None)

    @property
    def miss(self) -> str:
        """The error text for a missed gate."""
        if self.value is None:
            return f"{self.name} cannot be measured on this set"
        return f"{self.name} is {self.value}, but must be {self.bounds}"


def terminal(figures: Mapping[str, Any]) -> str:
    """Return the figures as text: one per line, then tables of routes, specialists, confusion and wrong cases."""
    parts = [fields(_single(figures))]
    for group, head in _GROUPS:
        if classes := figures.get(group):
            parts.append(table_text(_classes(head), list(classes.items())))
    if confusion := figures.get("confusion"):
        parts.append(table_text(_confused(confusion), list(confusion.items())))
    if wrong := figures.get("wrong"):
        parts.append(table_text(_WRONG, wrong[:_MAX_WRONG]))
        if len(wrong) > _MAX_WRONG:
            parts.append(f"{len(wrong) - _MAX_WRONG} more cases are wrong: --html and -o json list them all.")
    return "\n\n".join(part.rstrip("\n") for part in parts)


def page(figures: Mapping[str, Any], gates: Sequence[Gate]) -> str:
    """Return the figures as an HTML document without scripts or external resources."""
    body = ["<h1>Evaluation</h1>"]
    if gates:
        body += ["<h2>Gates</h2>", _html(_GATES, gates)]
    body += ["<h2>Figures</h2>", _html(_SINGLE, _single(figures))]
    for group, head in _GROUPS:
        if classes := figures.get(group):
            body += [f"<h2>By {head.lower()}</h2>", _html(_classes(head), list(classes.items()))]
    if confusion := figures.get("confusion"):
        body += ["<h2>Routes: which is right, by row, and which was decided, by column</h2>", _confusion(confusion)]
    if wrong := figures.get("wrong"):
        body += ["<h2>Wrong cases</h2>", _html(_WRONG, wrong)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Evaluation</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _single(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the name and value of every scalar figure that has a value."""
    rows: list[tuple[str, Any]] = [
        (name.replace("_", " "), value) for name, value in figures.items() if name not in (*_NESTED, *_TABLES)
    ]
    for group, named in _NESTED.items():
        rows += [(named.format(name.replace("_", " ")), value) for name, value in (figures.get(group) or {}).items()]
    return [(name, str(value)) for name, value in rows if value is not None]


def _scores(case: Mapping[str, Any]) -> str:
    scores = [f"{score['specialist']} {score['score']:.3f}" for score in case["scores"]]
    least = "" if case["threshold"] is None or not scores else f" (threshold {case['threshold']})"
    return f"{', '.join(scores)}{least}"


def _way(route: str | None, specialist: str | None) -> str:
    if route in (None, "specialist"):
        return specialist or route or "nobody"
    return f"{route}: {specialist}" if specialist else str(route)


def _decided(confusion: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the columns of the confusion matrix."""
    return list(next(iter(confusion.values())))


def _classes(head: str) -> Table[tuple[str, Mapping[str, Any]]]:
    """Return the table of figures by route or specialist."""
    return Table(Column(head, lambda row: row[0]), *map(_figure, ("cases", "precision", "recall")))


def _figure(name: str) -> Column[tuple[str, Mapping[str, Any]]]:
    return Column(name.upper(), lambda row: _number(row[1][name]), right=True)


def _confused(confusion: Mapping[str, Mapping[str, int]]) -> Table[tuple[str, Mapping[str, int]]]:
    """Return the table of the confusion matrix: a row for each right route."""
    return Table(Column("RIGHT \\ DECIDED", lambda row: row[0]), *map(_times, _decided(confusion)))


def _times(decided: str) -> Column[tuple[str, Mapping[str, int]]]:
    return Column(decided, lambda row: row[1][decided], right=True)


def _number(value: float | None) -> str:
    return "-" if value is None else str(value)


_GATES: Final = Table[Gate](
    Column("FIGURE", lambda gate: gate.name),
    Column("VALUE", lambda gate: _number(gate.value)),
    Column("REQUIRED", lambda gate: gate.bounds),
    Column("VERDICT", lambda gate: "met" if gate.met else "missed"),
)
_SINGLE: Final = Table[tuple[str, str]](Column("FIGURE", lambda row: row[0]), Column("VALUE", lambda row: row[1]))
_WRONG: Final = Table[Mapping[str, Any]](
    Column("CASE", lambda case: str(case["id"])),
    Column("EXPECTED", lambda case: _way(case["expected_route"], " or ".join(case["expected"]))),
    Column("DECIDED", lambda case: _way(case["route"], case["specialist"])),
    Column("SCORES", lambda case: _scores(case), flexible=True),
    Column("TEXT", lambda case: case["text"], wide=True),
    Column("WHY", lambda case: case["reason"], wide=True),
)


def _html(shown: Table[T], rows: Sequence[T]) -> str:
    """Return the table as HTML, with the wide columns, too."""
    head = "".join(f'<th scope="col">{escape(column.title.capitalize())}</th>' for column in shown.columns)
    lines = []
    for row in rows:
        cells = [str(column.cell(row)) for column in shown.columns]
        missed = ' class="missed"' if cells[-1] == "missed" else ""
        lines.append(f"<tr{missed}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody>\n</table>"


def _confusion(confusion: Mapping[str, Mapping[str, int]]) -> str:
    """Draw the confusion matrix as SVG: right decisions green, others red, more opaque for a larger share of a row."""
    names = _decided(confusion)
    width, height = _LABELS + _CELL * len(names), _ROW * (len(confusion) + 1)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [f'<svg role="img" aria-label="Confusion matrix" {size} fill="currentColor">']
    for column, name in enumerate(names):
        x = _LABELS + _CELL * column + _CELL // 2
        parts.append(f'<text x="{x}" y="{_ROW // 2 + 5}" text-anchor="middle">{escape(name)}</text>')
    for line, (right, row) in enumerate(confusion.items(), 1):
        top, total = _ROW * line, sum(row.values())
        parts.append(f'<text x="0" y="{top + _ROW // 2 + 5}">{escape(right)}</text>')
        for column, name in enumerate(names):
            x, count = _LABELS + _CELL * column, row[name]
            share = count / total if total else 0.0
            colour = "#2a9d5c" if name == right else "#d1495b"
            parts.append(
                f"<g><title>{escape(f'{right} decided as {name}: {count} of {total}')}</title>"
                f'<rect x="{x + 1}" y="{top + 1}" width="{_CELL - 2}" height="{_ROW - 2}" rx="4" '
                f'fill="{colour}" fill-opacity="{0.06 + 0.7 * share:.2f}"/>'
                f'<text x="{x + _CELL // 2}" y="{top + _ROW // 2 + 5}" text-anchor="middle">{count}</text></g>'
            )
    return "\n".join([*parts, "</svg>"])
