"""What must hold after any crash: read from the store, the run directories and the ledger of what really ran."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from claudomator_py.domain.outcome import REASON_POLICIES, Outcome, OutcomeStatus, Reason
from claudomator_py.domain.task import OnLost, TaskSpec
from claudomator_py.hosts.shim import record
from claudomator_py.store import run_rows
from claudomator_py.store.database import Database
from claudomator_py.store.tables import RUN, TASK, TASK_DEPENDENCY, TASK_REVISION, Run, Task
from tests.e2e.site import SETTLED, Site


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is known at the end, with no daemon running."""

    site: Site
    tasks: dict[str, Task]
    runs: dict[str, Run]
    specs: dict[tuple[str, int], TaskSpec]
    dependencies: list[tuple[str, str | None]]
    broken_references: int


def hold(
    site: Site,
    *,
    acknowledged: Collection[str] = (),
    file_names: Collection[str] = (),
    keeps_output: bool = True,
) -> Facts:
    """Assert them all. The daemon has drained its tasks and was stopped.

    acknowledged: ids of the tasks that the API said were accepted. file_names: names of the tasks of all valid files.
    keeps_output: whether what ended runs left in their directories is there; it is not flushed before their rows are.
    """
    site.no_processes()
    facts = read_facts(site)
    broken = [
        *_accepted(facts, acknowledged, file_names),
        *_settled(facts),
        *_started_once(facts),
        *_attempts(facts),
        *_endings(facts, keeps_output),
        *_order(facts),
        *_directories(facts),
    ]
    assert not broken, "\n".join([*broken[:20], site.log_text()[-6000:]])
    return facts


def read_facts(site: Site) -> Facts:
    """What store and folders say."""
    with Database.open(site.database, state_dir=site.state) as database:

        def read(connection: Connection) -> Facts:
            tasks = {task.id: task for task in Task.rows(connection, select(TASK))}
            runs = [run_rows.find(connection, row.id) for row in connection.execute(select(RUN.c.id))]
            specs = {
                (row.task_id, row.revision): TaskSpec.model_validate(row.spec)
                for row in connection.execute(select(TASK_REVISION))
            }
            bound = [(row.task_id, row.depends_on_id) for row in connection.execute(select(TASK_DEPENDENCY))]
            broken = 0
            if database.dialect == "sqlite":
                assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
                broken = len(connection.exec_driver_sql("PRAGMA foreign_key_check").all())
            return Facts(site, tasks, {run.id: run for run in runs if run is not None}, specs, bound, broken)

        return database.read(read)


def _accepted(facts: Facts, acknowledged: Collection[str], file_names: Collection[str]) -> Iterator[str]:
    """No accepted task is lost, and no file becomes two."""
    for task_id in acknowledged:
        if task_id not in facts.tasks:
            yield f"task {task_id} was acknowledged and is gone"
    from_files = Counter(task.name for task in facts.tasks.values() if task.source == "file")
    wanted = Counter(list(file_names))
    if from_files != wanted:
        yield f"of files came too many: {dict(from_files - wanted)}, and are missing: {dict(wanted - from_files)}"
    if facts.broken_references:
        yield f"{facts.broken_references} references between rows are broken"


def _settled(facts: Facts) -> Iterator[str]:
    """Nothing is stuck, and no row says that something runs which does not."""
    for task in facts.tasks.values():
        if task.state not in SETTLED:
            yield f"{task.name} is still {task.state} {task.reason}"
        if task.state == "FAILED" and task.reason is None:
            yield f"{task.name} failed without a reason"
        if task.cancel_requested_ms is not None or task.restart_requested is not None:
            yield f"{task.name} is {task.state} and a request for it is still open"
    for run in facts.runs.values():
        if run.live or run.state not in ("ended", "revoked"):
            yield f"run {run.id} of {facts.tasks[run.task_id].name} is still {run.state}"


def _started_once(facts: Facts) -> Iterator[str]:
    """No run starts twice, or without a row, or after it was given up."""
    starts = Counter(entry.run_id for entry in facts.site.ledger.entries() if entry.what == "start")
    for run in facts.runs.values():
        if run.kind == "simulated":
            starts[run.id] = len(_simulated_events(facts, run, "start"))
    for run_id, count in starts.items():
        row = facts.runs.get(run_id)
        if count > 1:
            yield f"run {run_id} was started {count} times"
        if row is None:
            yield f"run {run_id} was started and has no row"
        elif row.state == "revoked" and count:
            yield f"run {run_id} was given up and was started all the same"


def _attempts(facts: Facts) -> Iterator[str]:
    """No more attempts than allowed, and none after a loss that nobody opted to retry."""
    generations: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in sorted(facts.runs.values(), key=lambda run: run.seq):
        if run.state == "ended":
            generations[run.task_id, run.generation].append(run)
    for (task_id, generation), runs in generations.items():
        where = f"{facts.tasks[task_id].name}, generation {generation}"
        spec = facts.specs[task_id, runs[0].revision]
        counted = Counter(run.attempt for run in runs if _counts(run))
        if len(counted) > spec.retry.max_attempts or any(number > 1 for number in counted.values()):
            yield f"{where}: {dict(counted)} attempts where {spec.retry.max_attempts} are allowed"
        for run in runs[:-1]:
            if _outcome(run).status is OutcomeStatus.LOST and spec.on_lost is OnLost.FAIL:
                yield f"{where}: run {run.seq} was lost, and another followed"
            if _outcome(run).status is OutcomeStatus.SUCCEEDED:
                yield f"{where}: run {run.seq} succeeded, and another followed"


def _endings(facts: Facts, keeps_output: bool) -> Iterator[str]:
    """No ending is made up: the row says what the ledger and the exit record say."""
    fields = {entry.run_id: entry.number for entry in facts.site.ledger.entries() if entry.what == "end"}
    checked = {entry.run_id for entry in facts.site.ledger.entries() if (entry.what, entry.number) == ("check", 0)}
    for run in facts.runs.values():
        if run.state != "ended":
            continue
        outcome, name = _outcome(run), facts.tasks[run.task_id].name
        succeeded = outcome.status is OutcomeStatus.SUCCEEDED
        if run.kind == "simulated":
            messages = [event.get("outcome") == "success" for event in _simulated_events(facts, run, "end")]
            if succeeded and messages != [True] and (messages or keeps_output):
                yield f"{name}: run {run.id} succeeded without saying so"
        elif succeeded and fields.get(run.id) != 0:
            yield f"{name}: run {run.id} succeeded; the ledger says {fields.get(run.id)}"
        elif run.exit_code is not None and run.exit_code >= 0 and fields.get(run.id) != run.exit_code:
            yield f"{name}: run {run.id} has the exit code {run.exit_code}; the ledger says {fields.get(run.id)}"
        if succeeded and facts.specs[run.task_id, run.revision].check and run.id not in checked:
            yield f"{name}: run {run.id} succeeded without its check"
        exit_files = [file for root in facts.site.run_roots if (file := root / run.id / record.EXIT).exists()]
        content = exit_files[0].read_bytes() if exit_files else b""
        recorded = json.loads(content)["exit_code"] if content or (exit_files and keeps_output) else None
        if run.exit_code != recorded and (content or keeps_output):
            yield f"{name}: run {run.id} has the exit code {run.exit_code}, recorded is {recorded}"
    for task in facts.tasks.values():
        last = facts.runs.get(task.last_run_id or "")
        if task.state == "COMPLETED" and (last is None or _outcome(last).status is not OutcomeStatus.SUCCEEDED):
            yield f"{task.name} is COMPLETED, and its last run did not succeed"


def _order(facts: Facts) -> Iterator[str]:
    """Nothing starts before what it depends on has succeeded."""
    done: set[str] = set()
    needs = defaultdict(set)
    in_ledger = {run.task_id for run in facts.runs.values() if run.kind == "command"}
    for task_id, dependency in facts.dependencies:
        if dependency in in_ledger:
            needs[task_id].add(dependency)
    for entry in facts.site.ledger.entries():
        run = facts.runs.get(entry.run_id)
        if run is None:
            continue
        if entry.what == "start" and not needs[run.task_id] <= done:
            yield f"{facts.tasks[run.task_id].name} started before what it depends on was done"
        if entry.what == "end" and entry.number == 0:
            done.add(run.task_id)


def _directories(facts: Facts) -> Iterator[str]:
    """Every run directory has its row."""
    for name in facts.site.run_ids():
        if name not in facts.runs:
            yield f"the run directory {name} has no row"


def _outcome(run: Run) -> Outcome:
    assert run.outcome is not None, f"run {run.id} ended without an outcome"
    return Outcome.model_validate(run.outcome)


def _counts(run: Run) -> bool:
    outcome = _outcome(run)
    if outcome.status is OutcomeStatus.LIMITED or (outcome.conversation_lost and run.resumes is not None):
        return False
    return REASON_POLICIES[outcome.reason or Reason.LOST].counts_attempt


def _simulated_events(facts: Facts, run: Run, kind: str) -> list[dict[str, object]]:
    outputs = [output for root in facts.site.run_roots if (output := root / run.id / "stdout.jsonl").exists()]
    lines = [line for output in outputs for line in output.read_bytes().splitlines(keepends=True)]
    events = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [event for event in events if event.get("type") == kind]
