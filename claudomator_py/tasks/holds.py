"""Changes to holds, by an operator or after the classifier met a limit, and to the drain, which holds everything."""

from sqlalchemy import Connection

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import Problem, refuse
from claudomator_py.domain.health import CheckView, DrainView
from claudomator_py.domain.limits import Bucket, Hold, hold_after, in_family
from claudomator_py.domain.outcome import Outcome, Provenance
from claudomator_py.domain.requests import HoldRequest, ReleaseRequest
from claudomator_py.domain.units import SECOND_MS, format_instant
from claudomator_py.domain.wording import instant_text
from claudomator_py.store import hold_rows, run_rows
from claudomator_py.store.events import record


def hold_account(connection: Connection, bucket: Bucket, task_id: str, outcome: Outcome, now_ms: int) -> None:
    """Hold the account as the classifier's outcome for that task demands."""
    hold = hold_after(outcome, bucket, hold_rows.latest(connection, bucket), now_ms)
    if hold is not None:
        hold_rows.add(connection, hold, None)
        record(connection, now_ms, "hold", task_id=task_id, data=hold.event_data)


def hold_agent(connection: Connection, agent: AgentSpec, request: HoldRequest, now_ms: int) -> None:
    """Hold the agent as requested, or everything that draws on its account. Raises Invalid."""
    until_ms = None if request.until is None else round(request.until.timestamp() * SECOND_MS)
    family = request.family.lower() if request.family is not None else None
    refuse(_problems(agent, until_ms, family, now_ms))
    if request.account:
        bucket = Bucket(kind=agent.kind, account=agent.quota_account, family=family)
    else:
        bucket = Bucket(agent=agent.name, family=family)
    hold = Hold(bucket, None, until_ms, Provenance.OPERATOR, request.reason or "", now_ms)
    hold_rows.add(connection, hold, None)
    data = {"agent": agent.name, **hold.event_data}
    record(connection, now_ms, "hold", data=data if request.reason is None else {**data, "source": request.reason})


def release_agent(connection: Connection, agent: AgentSpec, request: ReleaseRequest, now_ms: int) -> None:
    """End all holds on what the agent draws on, or those on one model family, whoever placed them."""
    family = request.family.lower() if request.family is not None else None
    released = hold_rows.release(connection, agent.name, agent.kind, agent.quota_account, now_ms, family=family)
    data = {"agent": agent.name, "holds": released}
    record(connection, now_ms, "released", data=data if family is None else {**data, "family": family})


def _problems(agent: AgentSpec, until_ms: int | None, family: str | None, now_ms: int) -> list[Problem]:
    problems = []
    if until_ms is not None and until_ms <= now_ms:
        problems.append(Problem(field="until", message="is in the past", remedy="choose a later time, or omit it"))
    models = [choice.model for choice in agent.models.values()]
    if family is not None and not any(in_family(model, family) for model in models):
        models_text = ", ".join(models) or "none"
        message = f"matches no model of {agent.name}"
        problems.append(Problem(field="family", message=message, remedy=f"its models are: {models_text}"))
    return problems


def drain(connection: Connection, reason: str | None, now_ms: int, *, host: str | None = None) -> None:
    """Start nothing more, or nothing more on that host. Harmless when repeated: the first time and reason are kept."""
    if hold_rows.turn_on(connection, host_switch(host), reason, now_ms):
        data = {"reason": reason, "host": host}
        record(connection, now_ms, "drained", data={name: value for name, value in data.items() if value is not None})


def undrain(connection: Connection, now_ms: int, *, host: str | None = None) -> None:
    """Start runs again, everywhere or on that host. Harmless when repeated."""
    if hold_rows.turn_off(connection, host_switch(host)):
        record(connection, now_ms, "undrained", data={} if host is None else {"host": host})


def host_switch(host: str | None) -> str:
    """Return the name of the switch that drains the host; None: the switch that drains everything."""
    return hold_rows.DRAIN if host is None else f"{hold_rows.OF_HOST}{host}"


def drain_view(connection: Connection) -> DrainView:
    """Return whether the daemon is drained, and how many runs are live."""
    switch = hold_rows.find_switch(connection, hold_rows.DRAIN)
    running = len(run_rows.live(connection))
    if switch is None:
        return DrainView(drained=False, running=running)
    return DrainView(drained=True, since=format_instant(switch.since_ms), reason=switch.reason, running=running)


def drain_check(state: DrainView) -> CheckView:
    """Return the drain's state as a readiness check."""
    if not state.drained:
        return CheckView(name="drain", ok=True, detail="tasks are started")
    why = f" ({state.reason})" if state.reason else ""
    since = instant_text(state.since or "")
    detail = f"drained since {since}{why}: nothing is started; live runs: {state.running}"
    return CheckView(name="drain", ok=False, detail=detail, remedy="to start tasks again: claudomator undrain")
