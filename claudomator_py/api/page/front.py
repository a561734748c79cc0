"""The front page: everything at a glance, or the tasks that match the filters in the URL."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from fastapi.responses import RedirectResponse, Response

from claudomator_py.api.operation import Allowed, UnlistedRoutes
from claudomator_py.api.page.formatting import PART, Cursor, Filters, Text, filter_url, meaning_of
from claudomator_py.api.page.rendering import button, render
from claudomator_py.api.page.rows import RowGroup, grouped, row_of, words_of
from claudomator_py.domain.host import HostView
from claudomator_py.domain.lifecycle import StateName
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.shape import Page
from claudomator_py.domain.units import counted
from claudomator_py.domain.wording import Piece, Sentence, instant_text
from claudomator_py.resources.agents import AgentView
from claudomator_py.resources.agents.page import AgentCard, cards_of, spent_of
from claudomator_py.resources.agents.service import Agents
from claudomator_py.resources.daemon import DrainCalls, HostCalls
from claudomator_py.resources.daemon.service import DaemonService, Hosts
from claudomator_py.resources.overview import FileProblemView, ListName, StatusView
from claudomator_py.resources.overview.service import Overview
from claudomator_py.resources.schedules.page import ScheduleCard
from claudomator_py.resources.schedules.page import cards_of as schedule_cards
from claudomator_py.resources.tasks import TaskView
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.surface import READ
from claudomator_py.surface.table import Link
from claudomator_py.values import dataclass, regex

SHOWN = 20
"""Tasks shown of each list; a page of its own has all of them."""
_FIRST = 5
"""Lines of a list that are visible at once, so that what follows it is near."""
_MIN_FIRST = 2
"""The minimum of these lines, whatever stands before them."""
_INSTANT = regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
STATES: tuple[StateName, ...] = ("NEEDS_INPUT", "RUNNING", "FAILED", "QUEUED", "WAITING", "COMPLETED", "CANCELLED")


routes = UnlistedRoutes()


@routes.get("/", READ)
def front(granted: Allowed, wanted: Filters, cursor: Cursor = None) -> Response:
    is_filtered = wanted != TaskFilter()
    if is_filtered:
        page = granted[Tasks].page(wanted, cursor or None, PART)
        whole = not cursor and page.next_cursor is None
        number = len(page.items) if whole else granted[Tasks].count(wanted)
        model = filtered_front(wanted, page, number, granted[Agents].all())
    else:
        model = front_of(granted[Overview].status(SHOWN))
    values = {"front": model, "wanted": wanted, "states": FILTER_STATES, "is_filtered": is_filtered}
    return render("front.html", values | {"select_url": filter_url("/select", wanted)}, granted)


@routes.get("/next", READ)
def next_task_page(granted: Allowed, after: Text = "") -> Response:
    """Return a redirect to the next task that needs a person."""
    ids = [task.id for task in granted[Overview].status().needs_you]
    at = ids.index(after) + 1 if after in ids else 0
    task_id = (*ids[at:], *ids[:at], None)[0]
    return RedirectResponse("/" if task_id in (None, after) else f"/tasks/{task_id}", 303)


button(routes, "/drain", DrainCalls.drain, DaemonService, "/", stays=True)
button(routes, "/undrain", DrainCalls.undrain, DaemonService, "/", stays=True)
button(routes, "/hosts/{name}/drain", HostCalls.drain_host, Hosts, "/#hosts", stays=True)
button(routes, "/hosts/{name}/undrain", HostCalls.undrain_host, Hosts, "/#hosts", stays=True)


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """Something other than a task that needs a person. place: its folder, if the path is long. release: the agent whose
    holds a button ends.
    """

    id: str
    kind: str
    title: str
    lines: tuple[str, ...]
    place: str | None = None
    remedy: str | None = None
    release: str | None = None


@dataclass(frozen=True, slots=True)
class TaskSection:
    """A list with its heading."""

    id: str
    title: str
    empty: str
    """The text of an empty list."""
    groups: tuple[RowGroup, ...]
    count: int
    """The length of the whole list."""
    first: int | None = None
    """How many lines are visible at first, so that the next list is visible as well; None: all."""
    notices: tuple[AttentionItem, ...] = ()
    """Shown before the tasks."""
    files: tuple[AttentionItem, ...] = ()
    """Shown after the tasks."""
    more: int = 0
    """How many tasks are neither shown nor counted in a group."""
    note: str | None = None
    rest: tuple[Link, ...] = ()
    """Links to them, if there is a page with them."""


@dataclass(frozen=True, slots=True)
class Front:
    """The whole page."""

    sections: tuple[TaskSection, ...]
    agents: tuple[AgentCard, ...]
    summary: str
    """One sentence for screen readers."""
    title: str
    no_tasks: bool
    totals: tuple[tuple[StateName, str, int], ...] = ()
    """States, their labels, and the number of tasks in each."""
    hosts: Sequence[HostView] = ()
    schedules: tuple[ScheduleCard, ...] = ()
    spent: Sentence | None = None
    """What all agents have spent today."""
    standstill: Sentence | None = None
    """Set if no agent can take anything, with the time when one can."""


FILTER_STATES = tuple((state, words_of(state)) for state in STATES)
"""The states to filter by, in words."""


def front_of(status: StatusView) -> Front:
    """Return the page without filters."""
    notices, files = _notices(status), tuple(_refused(file) for file in status.inbox)
    kinds = {
        "task": status.total("needs_you"),
        "agent or daemon problem": len(notices),
        "refused file": status.total("inbox"),
    }
    needs = sum(kinds.values())
    asking = _groups(status.needs_you, status.unlisted)
    every = (Link(f"all {kinds['task']:,} tasks", "/?state=NEEDS_INPUT"),)
    failed, running, waiting = (status.total(name) for name in ("problems", "running", "queued"))
    first = max(_MIN_FIRST, _FIRST - len(notices) - len(files))
    sections = (
        TaskSection(
            "needs-you", "Needs you", "Nothing needs you.", asking, needs, first, notices, files,
            more=needs - sum(group.size for group in asking) - len(notices) - len(files),
            note=_by_kind(kinds), rest=every if kinds["task"] > len(status.needs_you) else (),
        ),
        _section(status, "running", "running", "Running", "Nothing runs.", "RUNNING", first=_FIRST),
        _section(
            status, "problems", "problems", "Problems", "Nothing failed in the last 24 hours.", "FAILED",
            note=_by_reason(status.problem_reasons),
        ),
        _section(
            status, "queued", "queue", "Queued and waiting", "Nothing waits.", "QUEUED", "WAITING",
            report=Link("by reason", "/report#waits-title"),
        ),
        _section(
            status, "recent", "recent", "Recent", "Nothing has ended yet.", "COMPLETED", "CANCELLED", first=_FIRST,
            report=Link("what changed in each repository", "/report#changes-title"),
        ),
    )  # fmt: skip
    parts = [f"{needs} {'needs' if needs == 1 else 'need'} you" if needs else "nothing needs you"]
    counts = ((failed, "failed"), (running, "running"), (waiting, "queued or waiting"))
    parts += [f"{count} {name}" for count, name in counts]
    return Front(
        sections=sections,
        agents=cards_of(status.agents),
        summary=", ".join(parts),
        title=f"({needs}) Claudomator" if needs else "Claudomator",
        no_tasks=not sum(status.counts.values()),
        totals=tuple((state, words_of(state, number := status.counts.get(state, 0)), number) for state in STATES),
        hosts=status.hosts,
        schedules=schedule_cards(status.schedules),
        spent=_spent_today(status),
        standstill=_standstill(status),
    )


def filtered_front(wanted: TaskFilter, page: Page[TaskView], number: int, agents: Sequence[AgentView]) -> Front:
    """Return the page with filters: one list, newest first. number: of all tasks that match; the page has a part of
    them, folded only if their reasons differ."""
    groups, shown = _groups(page.items), len(page.items)
    if len(groups) == 1:  # a single line to open would show nothing of what was asked for
        groups = tuple(RowGroup(row.task.id, (row,)) for row in groups[0].rows)
    rest = () if page.next_cursor is None else (Link("Show more", filter_url("/", wanted, cursor=page.next_cursor)),)
    note = f"{shown} of them shown" if shown < number else None
    section = TaskSection("found", "Found", "No task matches.", groups, number, note=note, rest=rest)
    summary = f"{number:,} found"
    return Front((section,), cards_of(agents), summary, f"{summary} · Claudomator", no_tasks=False)


def _groups(tasks: Sequence[TaskView], unlisted: Mapping[str, int] = MappingProxyType({})) -> tuple[RowGroup, ...]:
    return grouped([row_of(task) for task in tasks], unlisted)


def _section(
    status: StatusView,
    name: ListName,
    section_id: str,
    title: str,
    empty: str,
    *states: StateName,
    note: str | None = None,
    first: int | None = None,
    report: Link | None = None,
) -> TaskSection:
    """states: of the tasks in the list. report: what the report says of them."""
    tasks, count = getattr(status, name), status.total(name)
    counts = [(state, status.counts.get(state, 0)) for state in states]
    rest = [Link(f"all {number:,} {words_of(state)}", f"/?state={state}") for state, number in counts if number]
    rest += [] if report is None else [report]
    groups = _groups(tasks, status.unlisted)
    return TaskSection(
        section_id,
        title,
        empty,
        groups,
        count,
        first,
        more=count - sum(group.size for group in groups),
        note=note,
        rest=tuple(rest) if count > len(tasks) else (),
    )


def _standstill(status: StatusView) -> Sentence | None:
    """Return the sentence that no agent can take anything, which then need not be in every row; None: some can."""
    first = status.first_to_reset
    if first is None:
        return None
    if first.limited_until is None:
        return (Piece(f"{status.standstill}, and start nothing until one is released."),)
    return (
        Piece(f"{status.standstill}. The next to be available is {first.name}, at "),
        Piece(instant=first.limited_until),
    )


def _notices(status: StatusView) -> tuple[AttentionItem, ...]:
    items = [
        AttentionItem(f"check-{check.name}", "daemon", check.name, (_readable(check.detail),), remedy=check.remedy)
        for check in status.trouble
    ]
    for agent in status.agents:
        if agent.limited and agent.limited_until is None:
            # A hold by an operator has no reason code, and so no meaning.
            cause = agent.hold_reason if agent.hold is None else agent.hold.cause
            reason = None if agent.hold is None else agent.hold.reason
            lines = tuple(line for line in (meaning_of(reason), cause) if line)
            remedy = "Fix that, then release the agent; nothing starts on it before."
            if agent.hold is None or agent.hold.reason is None:
                remedy = "Nothing starts on it until it is released."
            items.append(
                AttentionItem(f"held-{agent.name}", "agent held", agent.name, lines, remedy=remedy, release=agent.name)
            )
        if agent.problem is not None:
            items.append(AttentionItem(f"problem-{agent.name}", "agent cannot run", agent.name, (agent.problem,)))
    return tuple(items)


def _readable(detail: str) -> str:
    """Return the text with readable instants, which the page's script converts to the reader's time zone."""
    return _INSTANT.sub(lambda match: instant_text(match[0]), detail)


def _refused(file: FileProblemView) -> AttentionItem:
    """Return a refused file with its first problem; the error file beside it has the others."""
    folder, _, name = file.path.rpartition("/")
    lines = tuple(problem.render() for problem in file.problems[:1])
    if len(file.problems) > 1:
        lines += (f"and {len(file.problems) - 1} more in {name}.error.txt",)
    return AttentionItem(
        f"file-{file.path}", "file refused", name, lines, folder or None, "It is read again when it changes."
    )


def _by_kind(numbers: Mapping[str, int]) -> str | None:
    """Return how many of each kind there are; None if all are tasks, as the number in the heading is theirs."""
    words = [counted(number, kind) for kind, number in numbers.items() if number]
    return ", ".join(words) if sum(numbers.values()) > numbers["task"] else None


def _by_reason(counts: Mapping[str, int]) -> str | None:
    """Return how often each reason occurs; None if that tells nothing."""
    number = sum(counts.values())
    if number < 3 or len(counts) in (1, number):
        return None
    return ", ".join(f"{count} {reason}" for reason, count in Counter(counts).most_common())


def _spent_today(status: StatusView) -> Sentence:
    if (limited := spent_of(status.budget)) is not None:
        return limited
    return (Piece(f"today {status.spent_today.words}"),)
