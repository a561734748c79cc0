"""``route``: who would do a task, and why; ``routing``: how well that works, and what was learned."""

import sys
from typing import Annotated

import typer

from claudomator_py.cli import completion
from claudomator_py.cli.connect import Client, connected, with_client
from claudomator_py.cli.output import (
    checked,
    fields,
    note,
    out,
    out_json_line,
    table_section,
    table_text,
    write,
    wrote_json,
)
from claudomator_py.cli.times import ago, now_ms
from claudomator_py.domain.task import MAX_INSTRUCTIONS_LENGTH
from claudomator_py.resources.routing import (
    CORRECTIONS,
    FEES,
    GAPS,
    SIGNALS,
    TOPICS,
    ForgetRequest,
    LearnedView,
    RouteCandidateView,
    RouteRequest,
    StandingView,
    figures_table,
)
from claudomator_py.surface import table
from claudomator_py.surface.table import Column, Table, figure
from claudomator_py.texts import plain

_CANDIDATES = Table[RouteCandidateView](
    Column("SCORE", lambda candidate: f"{candidate.score:.3f}", right=True),
    Column("SPECIALIST", lambda candidate: candidate.specialist, flexible=True),
    Column("SKILL", lambda candidate: candidate.skill, flexible=True),
    Column("PARTS", lambda candidate: _parts(candidate), flexible=True),
    Column("NEEDS", lambda candidate: figure(candidate.needs, ".3f"), right=True),
    Column("VERDICT", lambda candidate: candidate.rejected or "chosen", flexible=True),
)
_STANDINGS = Table[StandingView](
    Column("SPECIALIST", lambda standing: standing.specialist, flexible=True),
    Column("TOPIC", lambda standing: standing.topic or "all", flexible=True),
    Column("PERFORMANCE", lambda standing: f"{standing.performance:.2f}", right=True),
    Column("UP", lambda standing: standing.positive, right=True),
    Column("DOWN", lambda standing: standing.negative, right=True),
    Column("LAST SUCCESS", lambda standing: table.ago(standing.last_success_at) or "never"),
    Column("ORGANISATION", lambda standing: standing.organisation, wide=True, flexible=True),
)


@connected
def route(
    client: Client,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The task's instructions; - reads stdin.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The task's name.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag of the task. Can be repeated.")] = None,
    requires: Annotated[
        list[str] | None,
        typer.Option(metavar="CAPABILITY", help="A capability that the specialist must have. Can be repeated."),
    ] = None,
) -> None:
    """Show who would do a task, and why.

    Each candidate is listed with the parts of its score; NEEDS is the score it lacks to be chosen.
    Nothing is created or stored.
    """
    instructions = sys.stdin.read(MAX_INSTRUCTIONS_LENGTH + 1) if text == "-" else text
    if not instructions.strip():
        raise typer.BadParameter("write the task's instructions")
    if len(instructions) > MAX_INSTRUCTIONS_LENGTH:
        raise typer.BadParameter(f"it is longer than {MAX_INSTRUCTIONS_LENGTH:,} characters")
    wanted = {"instructions": instructions, "name": name, "tags": tag, "requires": requires}
    route = client.route(checked(RouteRequest, wanted))
    if wrote_json(route):
        return
    for sentence in route.sentences:
        out(plain(sentence))
    if route.candidates:
        out("\n" + table_text(_CANDIDATES, route.candidates))
    elif not route.sentences:
        note("There are no specialists. Register one: claudomator specialists add FILE")


def _parts(candidate: RouteCandidateView) -> str:
    parts = ", ".join(f"{name} {value:.3f}" for name, value in candidate.parts.items())
    return f"{parts} (tie break {candidate.tie_break:.3f})" if candidate.tie_break else parts


@connected
def stats(
    client: Client,
    days: Annotated[int, typer.Option(min=1, max=365, metavar="DAYS", help="How many days to count, up to now.")] = 30,
) -> None:
    """Show routing statistics, by specialist and by topic.

    OVERRIDDEN is the share of decisions that an operator changed, FAILED the share of tasks that failed because of the
    work itself, and ANSWER the mean length of answers. Below are tasks that no specialist covers well, and the effect
    of each signal of the score: DECIDED counts the tasks that would have gone to another specialist without it. FEES
    are what cards with a price charged, by creator.
    """
    stats = client.routing_stats(days=days)
    if wrote_json(stats):
        return
    if not stats.total.decisions and not stats.fees:
        note(f"Nothing was routed in {stats.days} days.")
        return
    parts = [
        table_text(figures_table(stats.total), [*stats.specialists, stats.total]),
        *table_section("TOPICS", TOPICS, stats.topics),
        *table_section("POORLY COVERED", GAPS, stats.gaps),
        *table_section("SIGNALS", SIGNALS, stats.signals),
        *table_section("FEES", FEES, stats.fees),
    ]
    out("\n\n".join(parts))


@connected
def learned(client: Client) -> None:
    """Show what was learned from outcomes and corrections."""
    _print(client.learned())


@with_client
def labels(
    client: Client,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many to print at most, newest first.")] = 1_000,
) -> None:
    """Print labelled tasks, one line of JSON each.

    These are the tasks that operators gave to another specialist, and those that were completed where they were
    routed. `claudomator eval` and `claudomator calibrate` read them.
    """
    labels = client.labels(limit=limit)
    for label in labels.items:
        out_json_line(label)
    if not labels.items:
        note("There are no labelled tasks yet.")


@connected
def reset(
    client: Client,
    specialist: Annotated[
        str | None,
        completion.SPECIALISTS.argument("ID", "Only what was learned about this specialist. Default: everything."),
    ] = None,
) -> None:
    """Forget what was learned."""
    _print(client.reset_learned(ForgetRequest(specialist=specialist)))


@connected
def freeze(client: Client) -> None:
    """Stop learning until `unfreeze`.

    What was learned still counts. What happens meanwhile is never learned.
    """
    _print(client.freeze_learning())


@connected
def unfreeze(client: Client) -> None:
    """Resume learning, from now on."""
    _print(client.unfreeze_learning())


COMMANDS = {
    "stats": stats,
    "learned": learned,
    "labels": labels,
    "reset": reset,
    "freeze": freeze,
    "unfreeze": unfreeze,
}


def _print(learned: LearnedView) -> None:
    state = "no" if learned.frozen_at is None else f"yes, {ago(learned.frozen_at, now_ms())}"
    parts = [fields([("frozen", state), ("outcomes to learn", str(learned.waiting))])]
    parts += table_section("SPECIALISTS", _STANDINGS, learned.standings)
    parts += table_section("CORRECTED BY OPERATORS", CORRECTIONS, learned.corrections)
    write(learned, lambda: "\n\n".join(parts))
