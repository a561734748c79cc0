"""``route``: who would do a task, and why; and ``routing``: how that goes, and what was learned."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.arguments import checked
from claudomator_py.cli.connect import connected
from claudomator_py.cli.output import (
    Format,
    FormatOption,
    TextColumn,
    fields,
    heading,
    note,
    out,
    out_json,
    out_json_line,
    render,
)
from claudomator_py.cli.times import ago, now_ms
from claudomator_py.domain.task import MAX_INSTRUCTIONS_LENGTH
from claudomator_py.domain.text import plain
from claudomator_py.resources.routing.shape import ForgetRequest, RouteRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from claudomator_py.client.http import Client
    from claudomator_py.resources.routing.shape import LearnedView, RouteCandidateView, RoutingFiguresView

_COLUMNS = (
    TextColumn("SCORE", right=True),
    TextColumn("SPECIALIST", flexible=True),
    TextColumn("SKILL", flexible=True),
    TextColumn("PARTS", flexible=True),
    TextColumn("NEEDS", right=True),
    TextColumn("WHY NOT", flexible=True),
)
_FIGURES = (
    TextColumn("DECISIONS", right=True),
    TextColumn("CONFIDENCE", right=True),
    TextColumn("OVERRIDDEN", right=True),
    TextColumn("FAILED", right=True),
    TextColumn("ANSWER", right=True),
)
_GAPS = (
    TextColumn("DECISIONS", right=True),
    TextColumn("CONFIDENCE", right=True),
    TextColumn("CLOSEST", flexible=True),
    TextColumn("TOPIC", flexible=True),
    TextColumn("EXAMPLES", flexible=True),
)
_FEES = (TextColumn("CREATOR", flexible=True), TextColumn("RUNS", right=True), TextColumn("USD", right=True))
_SIGNALS = (
    TextColumn("SIGNAL"),
    TextColumn("DECISIONS", right=True),
    TextColumn("DECIDED", right=True),
    TextColumn("RIGHT", right=True),
    TextColumn("WRONG", right=True),
)
_STANDINGS = (
    TextColumn("SPECIALIST", flexible=True),
    TextColumn("TOPIC", flexible=True),
    TextColumn("PERFORMANCE", right=True),
    TextColumn("UP", right=True),
    TextColumn("DOWN", right=True),
    TextColumn("LAST SUCCESS"),
    TextColumn("ORGANISATION", wide=True, flexible=True),
)
_CORRECTIONS = (
    TextColumn("FROM", flexible=True),
    TextColumn("TO", flexible=True),
    TextColumn("TOPIC", flexible=True),
    TextColumn("TASKS", right=True),
    TextColumn("LAST"),
)
NOBODY = "(nobody)"


@connected
def route(
    client: "Client",
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Instructions of the task; - reads stdin.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the task.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Tag of the task. Can be repeated.")] = None,
    requires: Annotated[
        list[str] | None,
        typer.Option(metavar="CAPABILITY", help="Capability that the specialist must have. Can be repeated."),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show who would do a task, and why.

    Each candidate is shown with the parts of its score; NEEDS is the score that it lacks to match the best.
    Nothing is created or stored.
    """
    instructions = sys.stdin.read(MAX_INSTRUCTIONS_LENGTH + 1) if text == "-" else text
    if not instructions.strip():
        raise typer.BadParameter("write the instructions of the task")
    if len(instructions) > MAX_INSTRUCTIONS_LENGTH:
        raise typer.BadParameter(f"it is longer than {MAX_INSTRUCTIONS_LENGTH:,} characters")
    wanted = {"instructions": instructions, "name": name, "tags": tag, "requires": requires}
    found = client.route(checked(RouteRequest, wanted))
    if output is Format.JSON:
        out_json(found)
        return
    for sentence in found.sentences:
        out(plain(sentence))
    if found.candidates:
        out("\n" + render(_COLUMNS, [_row(one) for one in found.candidates], wide=output is Format.WIDE))
    elif not found.sentences:
        note("There are no specialists. Register one: claudomator specialists add FILE")


def _row(one: "RouteCandidateView") -> tuple[str, ...]:
    parts = ", ".join(f"{name} {value:.3f}" for name, value in one.parts.items())
    more = f"{parts} (+ {one.tie_break:.3f})" if one.tie_break else parts
    needs = "" if one.needs is None else f"{one.needs:.3f}"
    return (f"{one.score:.3f}", one.specialist, one.skill or "", more, needs, one.rejected or "chosen")


@connected
def stats(
    client: "Client",
    days: Annotated[int, typer.Option(min=1, max=365, metavar="DAYS", help="Number of days to count, up to now.")] = 30,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show routing statistics, by specialist and by topic.

    OVERRIDDEN is the share of decisions that an operator changed, FAILED the share of tasks that failed because of the
    work itself, and ANSWER the mean length of answers. Below are the tasks that no specialist covers well, and the
    effect of each signal of the score: DECIDED counts the tasks that would have gone to someone else without it. FEES
    are what cards with a price asked for, by whom they are owed to.
    """
    found = client.routing_stats(days=days)
    if output is Format.JSON:
        out_json(found)
        return
    if not found.total.decisions and not found.fees:
        note(f"Nothing was routed in {found.days} days.")
        return
    wide = output is Format.WIDE
    name, topic = TextColumn("SPECIALIST", flexible=True), TextColumn("TOPIC", flexible=True)
    performance = TextColumn("PERFORMANCE", right=True)
    everybody = [(one.specialist or NOBODY, *_figures(one), _share(one.performance)) for one in found.specialists]
    everybody.append(("all", *_figures(found.total), ""))
    parts = [render((name, *_FIGURES, performance), everybody, wide=wide)]
    if found.topics:
        rows = [(one.topic or "", *_figures(one)) for one in found.topics]
        parts.append(f"{heading('TOPICS')}\n{render((topic, *_FIGURES), rows, wide=wide)}")
    if found.gaps:
        gaps = [
            (
                str(one.decisions),
                _share(one.confidence),
                one.specialist or NOBODY,
                one.topic or "",
                ", ".join(one.tasks),
            )
            for one in found.gaps
        ]
        parts.append(f"{heading('POORLY COVERED')}\n{render(_GAPS, gaps, wide=wide)}")
    if found.signals:
        signals = [
            (one.signal, str(one.decisions), str(one.decided), str(one.right), str(one.wrong)) for one in found.signals
        ]
        parts.append(f"{heading('SIGNALS')}\n{render(_SIGNALS, signals, wide=wide)}")
    if found.fees:
        fees = [(one.creator, str(one.runs), f"{one.usd:.2f}") for one in found.fees]
        parts.append(f"{heading('FEES')}\n{render(_FEES, fees, wide=wide)}")
    out("\n\n".join(parts))


@connected
def learned(client: "Client", output: FormatOption = Format.TABLE) -> None:
    """Show what was learned from outcomes and corrections."""
    _tell(client.learned(), output)


@connected
def labels(
    client: "Client",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number, newest first.")] = 1_000,
) -> None:
    """Print labelled tasks, one line of JSON each.

    These are the tasks that operators gave to another specialist, and those that were completed where they were
    routed. `claudomator eval` and `claudomator calibrate` read them.
    """
    found = client.labels(limit=limit)
    for one in found.items:
        out_json_line(one)
    if not found.items:
        note("There are no labelled tasks yet.")


@connected
def reset(
    client: "Client",
    specialist: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="Only what was learned about this specialist. Default: everything.",
            autocompletion=completion.specialists,
        ),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Forget what was learned."""
    _tell(client.reset_learned(ForgetRequest(specialist=specialist)), output)


@connected
def freeze(client: "Client", output: FormatOption = Format.TABLE) -> None:
    """Stop learning until `unfreeze`.

    What was learned still counts. What happens meanwhile is never learned.
    """
    _tell(client.freeze_learning(), output)


@connected
def unfreeze(client: "Client", output: FormatOption = Format.TABLE) -> None:
    """Resume learning, from now on."""
    _tell(client.unfreeze_learning(), output)


def group() -> typer.Typer:
    """The commands under ``routing``."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for command in (stats, learned, labels, reset, freeze, unfreeze):
        app.command()(command)
    return app


def _tell(found: "LearnedView", output: Format) -> None:
    if output is Format.JSON:
        out_json(found)
        return
    now, wide = now_ms(), output is Format.WIDE
    state = "no" if found.frozen_at is None else f"yes, {ago(found.frozen_at, now)}"
    parts = [fields([("frozen", state), ("outcomes to learn", str(found.waiting))])]
    if found.standings:
        rows = [
            (
                one.specialist,
                one.topic or "all",
                _share(one.performance),
                str(one.positive),
                str(one.negative),
                "never" if one.last_success_at is None else ago(one.last_success_at, now),
                one.organisation or "",
            )
            for one in found.standings
        ]
        parts.append(f"{heading('SPECIALISTS')}\n{render(_STANDINGS, rows, wide=wide)}")
    if found.corrections:
        corrected = [
            (one.specialist or NOBODY, one.wanted, one.topic or "", str(one.tasks), ago(one.last_at, now))
            for one in found.corrections
        ]
        parts.append(f"{heading('CORRECTED BY OPERATORS')}\n{render(_CORRECTIONS, corrected, wide=wide)}")
    out("\n\n".join(parts))


def _figures(one: "RoutingFiguresView") -> "Sequence[str]":
    chars = "" if one.answer_chars is None else f"{one.answer_chars:,.0f} chars"
    return (str(one.decisions), _share(one.confidence), _per_cent(one.overridden), _per_cent(one.failed), chars)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _per_cent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
