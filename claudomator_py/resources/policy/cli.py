"""``policy``: the rules in force and how often each applied; and what configured rules say about task files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from claudomator_py.cli import ExitCode, completion
from claudomator_py.cli.connect import Client, ConfigOption, connected
from claudomator_py.cli.output import formatted, note, out, table_text, wants_json, write, wrote_json
from claudomator_py.cli.times import now_ms
from claudomator_py.domain.budget import Spending
from claudomator_py.domain.principal import OPERATOR, Principal
from claudomator_py.domain.task import TaskSpec
from claudomator_py.domain.units import counted, parse_instant
from claudomator_py.domain.verdict import VerdictView, consequences
from claudomator_py.resources.access.cli import parse_role
from claudomator_py.resources.policy import CHECKS, PolicyView, RuleView
from claudomator_py.surface.table import Column, Table, ago
from claudomator_py.texts import one_line
from claudomator_py.values import dataclass

_RULES = Table[tuple[RuleView, str]](
    Column("RULE", lambda row: row[0].name),
    Column("EFFECT", lambda row: ", ".join(row[0].effects), flexible=True),
    Column("APPLIED", lambda row: row[0].applied, right=True),
    Column("FAULTS", lambda row: row[0].faults or None, right=True),
    Column("LAST", lambda row: ago(row[0].last)),
    Column("WHEN", lambda row: row[1], flexible=True),
)


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What rules may look at that a task file does not say."""

    actor: Principal
    source: str
    specialist: str | None
    spent: Spending
    now_ms: int


Tester = Callable[[TaskSpec, RuleContext], VerdictView]
"""Returns what rules say about a task."""


@connected
def show(
    client: Client, days: Annotated[int, typer.Option(min=1, max=365, help="How many days to count, up to now.")] = 30
) -> None:
    """Show the rules in force, and how often each applied."""
    policy = client.policy(days=days)
    if wrote_json(policy):
        return
    out(rules_table(policy))
    if not policy.rules and policy.built_in:
        note("Only built-in rules apply: add your own under `policy` in the configuration.")
    if policy.rules or policy.built_in:
        span = f"{counted(policy.decisions, 'decision')} in {policy.days} days"
        note(f"{span}: {counted(policy.denied, 'task')} denied, {policy.held} held for approval.")


def rules_table(policy: PolicyView) -> str:
    """Return the rules in their order, followed by the built-in ones."""
    if not (policy.rules or policy.built_in):
        return "There are no rules: add some under `policy` in the configuration."
    rules = [(rule, one_line(rule.when or "always")) for rule in policy.rules]
    rules += [(rule, "built in: judged by the text of the task") for rule in policy.built_in]
    return table_text(_RULES, rules)


def testing(tester: Callable[[Path | None], Tester]) -> Callable[..., None]:
    """Return the command that tests the rules. tester: returns what tests the rules of a configuration."""

    @formatted
    def test(
        files: Annotated[
            list[Path],
            typer.Argument(metavar="FILE", readable=False, help="Task files or directories; - reads stdin."),
        ],
        specialist: Annotated[
            str | None,
            completion.SPECIALISTS.option("As if the task had been routed to this specialist.", metavar="ID"),
        ] = None,
        at: Annotated[str | None, typer.Option(metavar="RFC3339", help="Evaluate as of this time.")] = None,
        creator: Annotated[
            str, typer.Option(metavar="NAME", help="As if this principal had submitted it.")
        ] = OPERATOR.id,
        role: Annotated[str, typer.Option(metavar="ROLE", help="As if that principal had this role.")] = "admin",
        organisation: Annotated[
            str | None, typer.Option(metavar="NAME", help="As if it belonged to this organisation.")
        ] = None,
        source: Annotated[
            str, typer.Option(metavar="WORD", help="As if it had come from this source: file, api, ...")
        ] = "file",
        spent_usd: Annotated[
            float, typer.Option(metavar="USD", min=0, help="As if this much had been spent today.")
        ] = 0.0,
        config: ConfigOption = None,
    ) -> None:
        """Evaluate the configured rules on task files. Exits with 1 if they deny one.

        Needs no daemon, and stores nothing.
        """
        from claudomator_py.cli.task_files import read

        try:
            now = now_ms() if at is None else parse_instant(at)
        except ValueError:
            message = f"{at!r} is not a time; write one such as 2026-11-23T22:00:00+01:00"
            raise typer.BadParameter(message, param_hint="--at") from None
        asked = RuleContext(
            Principal(creator, parse_role(role), organisation), source, specialist, Spending(usd=spent_usd), now
        )
        judge, verdicts, bad = tester(config), [], False
        for file in read(files):
            for problem in file.problems:
                note(problem.render(file.shown))
                bad = True
            verdicts += [judge(spec, asked) for spec in file.specs]
        _print_verdicts(verdicts, has_problems=bad)

    return test


def _print_verdicts(verdicts: Sequence[VerdictView], *, has_problems: bool) -> None:
    """Print the verdicts. Exits with 1 if one is a denial, and as for wrong usage if a file has problems."""
    if verdicts or wants_json() or not has_problems:
        write(verdicts, lambda: "\n\n".join(map(_shown, verdicts)), "There are no task files.")
    if has_problems:
        raise typer.Exit(ExitCode.USAGE)
    if any(verdict.verdict == "denied" for verdict in verdicts):
        raise typer.Exit(1)


def _shown(verdict: VerdictView) -> str:
    """Return the verdict on one task, rule by rule, with its consequences."""
    lines = [verdict.sentence]
    if verdict.checks:
        lines.append(table_text(CHECKS, verdict.checks))
    lines += consequences(verdict)
    return "\n".join(lines)
