"""What an operator does to holds: put one on an agent, and end all that are on what it draws on."""

from sqlalchemy import Connection

from claudomator_py.core.agent import AgentSpec
from claudomator_py.core.errors import Invalid
from claudomator_py.core.limits import Bucket, Hold, in_family
from claudomator_py.core.outcome import Provenance
from claudomator_py.core.problem import Problem
from claudomator_py.core.units import SECOND_MS
from claudomator_py.core.views import HoldRequest, ReleaseRequest
from claudomator_py.store import hold_rows
from claudomator_py.store.events import record


def hold_agent(connection: Connection, agent: AgentSpec, request: HoldRequest, now_ms: int) -> None:
    """Leave the agent alone as asked, or with it all that draw on its account. Raises Invalid."""
    until_ms = None if request.until is None else round(request.until.timestamp() * SECOND_MS)
    family = request.family.lower() if request.family is not None else None
    _refuse(_problems(agent, until_ms, family, now_ms))
    if request.account:
        bucket = Bucket(kind=agent.kind, account=agent.quota_account, family=family)
    else:
        bucket = Bucket(agent=agent.name, family=family)
    hold_rows.add(connection, Hold(bucket, None, until_ms, Provenance.OPERATOR, request.reason or "", now_ms), None)
    told = {"agent": agent.name, "bucket": bucket.label, "until": until_ms, "provenance": Provenance.OPERATOR}
    record(connection, now_ms, "hold", data=told if request.reason is None else {**told, "source": request.reason})


def release_agent(connection: Connection, agent: AgentSpec, request: ReleaseRequest, now_ms: int) -> None:
    """End all holds on what the agent draws on, or those on one family, whoever has put them there."""
    family = request.family.lower() if request.family is not None else None
    released = hold_rows.release(connection, agent.name, agent.kind, agent.quota_account, now_ms, family=family)
    told = {"agent": agent.name, "holds": released}
    record(connection, now_ms, "released", data=told if family is None else {**told, "family": family})


def _problems(agent: AgentSpec, until_ms: int | None, family: str | None, now_ms: int) -> list[Problem]:
    found = []
    if until_ms is not None and until_ms <= now_ms:
        found.append(Problem(field="until", message="is in the past", remedy="name a later time, or leave it out"))
    models = [choice.model for choice in agent.models.values()]
    if family is not None and not any(in_family(model, family) for model in models):
        known = ", ".join(models) or "none"
        message = f"is in the name of no model of {agent.name}"
        found.append(Problem(field="family", message=message, remedy=f"its models are: {known}"))
    return found


def _refuse(problems: list[Problem]) -> None:
    if problems:
        detail = "; ".join(problem.render() for problem in problems)
        raise Invalid(detail, remedy="Mend what is named in problems, and send it again.", problems=problems)
