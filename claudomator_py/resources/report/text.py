"""The report in words: the headline, and all of it as Markdown that is also readable as plain text."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from claudomator_py.domain.budget import cost_text
from claudomator_py.domain.lifecycle import WaitReason
from claudomator_py.domain.units import counted
from claudomator_py.resources.report import ReportView, RepositoryReport, TaskGroup

SHOWN_BRANCHES = 5
"""Of each repository; `claudomator branches` and the page of repositories list the unmerged ones."""
MAX_STARTS = 5
"""The most starts of the daemon that are named."""
Instants = Callable[[str | None], str]
"""Returns an instant in words; empty for None."""


def headline_of(report: ReportView) -> str:
    """Return the report in one line: ``12 done, 2 failed, 2 ask you; 31 commits in 4 repositories; $1.19``."""
    ended = report.completed + report.failed + report.cancelled
    tasks = [f"{report.completed:,} done" if report.completed else "nothing done"]
    tasks += [f"{report.failed:,} failed"] if report.failed else []
    tasks += [f"{report.cancelled:,} cancelled"] if report.cancelled else []
    asking = report.needs_you_total
    tasks += [f"{asking:,} {'asks' if asking == 1 else 'ask'} you"] if asking else []
    if not (ended or asking or report.runs):
        tasks = ["nothing happened"]
    tasks += [f"{counted(len(report.held), 'agent')} held"] if report.held else []
    tasks += [counted(report.refused_total, "refused file")] if report.refused_total else []
    tasks += [f"{report.running:,} running"] if report.running else []
    tasks += [f"{report.queued:,} queued"] if report.queued else []
    tasks += [f"{report.waiting - report.queued:,} waiting"] if report.waiting > report.queued else []
    parts = [", ".join(tasks), *_figures(report)]
    if report.doubtful:
        parts.append(counted(report.doubtful, "doubtful result"))
    if report.missed:
        parts.append(f"{counted(len(report.missed), 'scheduled time')} missed")
    if report.trouble:
        parts.append("the daemon is in trouble")
    return "; ".join(parts)


def _figures(report: ReportView) -> Iterator[str]:
    commits = sum(repository.commits for repository in report.repositories)
    with_commits = [repository for repository in report.repositories if repository.commits]
    if commits:
        yield f"{counted(commits, 'commit')} in {counted(len(with_commits), 'repository')}"
    elif report.repositories or report.unchanged:
        yield "no commits"
    if report.cost_usd is not None or report.runs:
        yield cost_text(report.cost_usd, report.unpriced) or "cost unknown"
    if report.limits:
        around = report.limits_flowed_around
        yield f"{counted(report.limits, 'limit')}{f', {around} flowed around' if around else ''}"


def markdown(report: ReportView, at: Instants) -> str:
    """Return the whole report."""
    parts = [f"# {report.headline}", f"From {at(report.since)} to {at(report.until)}: {_runs(report)}."]
    if report.starts:
        more = f" and {counted(len(later), 'more time')}" if (later := report.starts[MAX_STARTS:]) else ""
        parts[-1] += f" The daemon started at {', '.join(map(at, report.starts[:MAX_STARTS]))}{more}."
    sections = (
        ("What is wrong with the daemon", [f"- {problem}" for problem in report.trouble]),
        ("What else to look at", [f"- {warning}" for warning in report.warnings]),
        ("What needs you", list(_needs_you(report))),
        ("Refused files", list(_refused(report))),
        ("What failed", list(_groups(report.failures, report.failed, at))),
        ("Doubtful results", list(_doubtful(report))),
        ("What changed", [line for repository in report.repositories for line in _repository(repository)]),
        ("What is waiting", list(_groups(report.waits, report.waiting, at))),
        (
            "Missed scheduled times",
            [f"- {task.schedule}, due {at(task.due_at)}: {task.why}" for task in report.missed],
        ),
    )
    parts += [f"## {title}\n\n" + "\n".join(lines) for title, lines in sections if lines]
    return "\n\n".join(parts) + "\n"


def _runs(report: ReportView) -> str:
    words = [f"{counted(report.runs, 'run')} ended" if report.runs else "no runs ended"]
    words += [f"{report.tokens:,} tokens"] if report.tokens else []
    if report.cost_usd is not None and report.unpriced:
        words.append(f"{counted(report.unpriced, 'run')} of unknown cost")
    if report.unchanged:
        words.append(f"{counted(report.unchanged, 'completed task')} changed nothing")
    return ", ".join(words)


def _doubtful(report: ReportView) -> Iterator[str]:
    for ref in report.doubtful_tasks:
        yield f"- {ref.name}: {ref.changes}"
    if report.doubtful > len(report.doubtful_tasks):
        yield f"- and {report.doubtful - len(report.doubtful_tasks)} more"


def _needs_you(report: ReportView) -> Iterator[str]:
    yield from (f"- {sentence}" for sentence in report.held)
    for view in report.needs_you:
        asked = view.asks.text if view.asks is not None else view.reason_text or view.reason or ""
        yield f"- {view.name}: {' '.join(asked.split())}"
    if report.needs_you_total > len(report.needs_you):
        yield f"- and {report.needs_you_total - len(report.needs_you):,} more"


def _refused(report: ReportView) -> Iterator[str]:
    yield from (f"- {file.line}" for file in report.refused if file.problems)
    if report.refused_total > len(report.refused):
        yield f"- and {report.refused_total - len(report.refused)} more"


def _groups(groups: Sequence[TaskGroup], total: int, at: Instants) -> Iterator[str]:
    yield from (_group(group, at) for group in groups)
    if beyond := not_grouped(groups, total):
        yield f"- and {beyond:,} more"


def not_grouped(groups: Iterable[TaskGroup], total: int) -> int:
    """Return how many of ``total`` tasks are in none of ``groups``, as only so many are grouped."""
    return max(0, total - sum(group.count for group in groups))


def _group(group: TaskGroup, at: Instants) -> str:
    names = ", ".join(ref.name for ref in group.tasks)
    more = f" and {group.count - len(group.tasks)} more" if group.count > len(group.tasks) else ""
    words = ": ".join(part for part in (group.reason, group.text.rstrip(".")) if part)
    return f"- {group.count:,} x {words or 'no reason given'}{_until(group, at)}{f' ({names}{more})' if names else ''}"


def _until(group: TaskGroup, at: Instants) -> str:
    if group.until is None:
        return ""
    if group.reason == WaitReason.BACKOFF:  # which is followed by "tries again"
        return f"{'' if group.count == 1 else ', the first'} at {at(group.until)}"
    return f", {'until' if group.count == 1 else 'the first until'} {at(group.until)}"


def _repository(repository: RepositoryReport) -> Iterator[str]:
    # Outside of repositories, lines are not counted.
    lines = f" (+{repository.added} -{repository.removed})" if repository.added or repository.removed else ""
    changed = [counted(repository.commits, "commit")] if repository.commits else []
    changed += [f"{counted(repository.files, 'file')}{lines}"] if repository.files else []
    fault = ""
    if repository.fault is not None:
        changed, fault = changed or ["not recorded"], f": {repository.fault}"
    changed += [f"{repository.uncommitted} uncommitted"] if repository.uncommitted else []
    parts = [*(changed or ["no commits or files"]), f"by {counted(repository.tasks, 'task')}"]
    parts += [cost] if (cost := cost_text(repository.cost_usd, repository.unpriced)) else []
    yield f"- {repository.path}: {', '.join(parts)}{fault}"
    for branch in repository.branches[:SHOWN_BRANCHES]:
        yield f"  - {branch.words}"
    if more := more_branches(repository):
        yield f"  - and {counted(more, 'more branch')}"


def more_branches(repository: RepositoryReport) -> int:
    """Return how many branches of the repository are not shown."""
    return len(repository.branches[SHOWN_BRANCHES:]) + repository.more_branches
