"""``route``: who would do a task, and why."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import Column, Format, FormatOption, note, out, out_json, render
from claudomator_py.domain.text import plain
from claudomator_py.domain.views.routing import LONGEST_TEXT, RouteRequest

if TYPE_CHECKING:
    from claudomator_py.client.http import Client
    from claudomator_py.domain.views.routing import RouteCandidateView

_COLUMNS = (
    Column("SCORE", right=True),
    Column("SPECIALIST", flexible=True),
    Column("SKILL", flexible=True),
    Column("PARTS", flexible=True),
    Column("NEEDS", right=True),
    Column("WHY NOT", flexible=True),
)


@connected
def route(
    client: "Client",
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the task would say; - reads stdin.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the task.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Tag of the task. Can be repeated.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show who would do a task, and why.

    Every candidate comes with what its score is made of, and NEEDS, the score that it lacks to be as good as the best.
    Nothing is made or stored.
    """
    instructions = sys.stdin.read(LONGEST_TEXT + 1) if text == "-" else text
    if not instructions.strip():
        raise typer.BadParameter("write what the task would say")
    if len(instructions) > LONGEST_TEXT:
        raise typer.BadParameter(f"it is longer than {LONGEST_TEXT:,} characters")
    found = client.route(RouteRequest(instructions=instructions, name=name, tags=tuple(tag or ())))
    if output is Format.JSON:
        out_json(found)
        return
    if not found.candidates:
        note("There are no specialists. Register one: claudomator specialists add FILE")
        return
    rows = [_row(one) for one in found.candidates]
    told = "\n".join(plain(sentence) for sentence in found.sentences)
    out(f"{told}\n\n{render(_COLUMNS, rows, wide=output is Format.WIDE)}")


def _row(one: "RouteCandidateView") -> tuple[str, ...]:
    parts = ", ".join(f"{name} {value:.3f}" for name, value in one.parts.items())
    more = f"{parts} (+ {one.tie_break:.3f})" if one.tie_break else parts
    needs = "" if one.needs is None else f"{one.needs:.3f}"
    return (f"{one.score:.3f}", one.specialist, one.skill or "", more, needs, one.rejected or "chosen")
