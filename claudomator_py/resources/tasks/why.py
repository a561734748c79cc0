"""Why a task is where it is, in words, with the decisions and events behind them."""

from sqlalchemy import Connection

from claudomator_py.dispatch.observe import Observer
from claudomator_py.domain.principal import Principal
from claudomator_py.ports import RunHost
from claudomator_py.queries.concealment import concealed, unnamed
from claudomator_py.queries.explain import (
    backlog_sentences,
    cancelled_sentences,
    check_waits_sentence,
    conversation_sentences,
    discarded_sentences,
    thread_sentences,
    tree_sentences,
)
from claudomator_py.queries.history import history_sentences, schedule_sentences
from claudomator_py.queries.inputs import input_sentences
from claudomator_py.queries.task_views import spec_shown
from claudomator_py.resources.agents.ask import budget_sentences, hold_sentences
from claudomator_py.resources.decisions.ask import placements_of
from claudomator_py.resources.events.ask import event_views
from claudomator_py.resources.routing.ask import known_to, routing_of
from claudomator_py.resources.tasks.shape import TaskView, WhyView
from claudomator_py.scheduler.decision import DecisionKind
from claudomator_py.store import decision_rows, events, run_rows, specialist_rows
from claudomator_py.store.tables import Event, Run, Task


def why_view(
    connection: Connection, task: Task, view: TaskView, by: Principal, now_ms: int, observer: Observer, host: RunHost
) -> WhyView:
    """Return why the task is where it is. view: of the task."""
    decided = decision_rows.of_task(connection, task.id)
    routing = routing_of(task, decided, known_to(connection, decided, by))
    runs = unnamed(connection, run_rows.of_task(connection, task.id), by)
    told = unnamed(connection, events.of_task(connection, task.id), by)
    specialists = observer.routes and bool(specialist_rows.ids_seen(connection, by))
    by_run = {str(one.run_id): one for one in decided if one.kind == DecisionKind.PLACEMENT}
    sentences = [
        _headline(view),
        *(f"Warning: {warning}" for warning in view.warnings),
        *_live_sentences(runs, observer, host),
        *hold_sentences(view.holds),
        *input_sentences(task, told, now_ms, specialists=specialists),
        *_event_sentences(connection, task, view, told),
        *(() if routing is None else routing.sentences),
        *history_sentences(runs, by_run, told, now_ms),
    ]
    shape = WhyView(
        task=view,
        sentences=tuple(sentences),
        routing=routing,
        decisions=placements_of(connection, task, decided, by),
        events=event_views(connection, told, by),
    )
    return concealed(connection, [shape], by)[0]


def _live_sentences(runs: list[Run], observer: Observer, host: RunHost) -> list[str]:
    """Of the run that lives, if one does: what its check waits for, or what of its output is still to be read."""
    live = next((run.id for run in runs if run.live), None)
    waits = None if live is None else observer.check_waits(live)
    return (
        backlog_sentences(None if live is None else host.backlog(live))
        if waits is None
        else [check_waits_sentence(waits)]
    )


def _event_sentences(connection: Connection, task: Task, view: TaskView, told: list[Event]) -> list[str]:
    spec = spec_shown(connection, task)
    return [
        *thread_sentences(view),
        *conversation_sentences(task, told),
        *tree_sentences(told),
        *cancelled_sentences(task, told),
        *discarded_sentences(told),
        *schedule_sentences(connection, task),
        *budget_sentences(connection, task, spec),
        *(() if view.reach_origin is None else (view.reach_origin.sentence,)),
    ]


def _headline(view: TaskView) -> str:
    tail = f": {view.reason_text}" if view.reason_text else ""
    where = f" on {view.agent}" if view.state == "RUNNING" and view.agent else ""
    said = f"{view.name} is {view.state}{where}{tail}"
    return said if said.endswith(("?", "!")) else f"{said.rstrip('.')}."
