"""What becomes of a task that the policy stops: it is refused, or a person is asked to approve it."""

from sqlalchemy import Connection

from claudomator_py.dispatch.policing import Judged
from claudomator_py.domain.card import Card
from claudomator_py.domain.inputs import ASKS_FIRST, InputRequest
from claudomator_py.domain.lifecycle import Failing, InputKind
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.routing import HARM
from claudomator_py.policy.rule import BEFORE_FIRST_RUN
from claudomator_py.policy.verdict import Demanded, Verdict
from claudomator_py.scheduler.records import PolicyRecord, Route, SpecialistRecord
from claudomator_py.store import task_rows
from claudomator_py.store.tables import Task
from claudomator_py.tasks.decisions import record_policy
from claudomator_py.tasks.inputs import specialist_meant
from claudomator_py.tasks.readiness import ask, ready_dependents


def stop(
    connection: Connection,
    task: Task,
    judged: Judged,
    record: PolicyRecord,
    now_ms: int,
    by_ms: int | None = None,
    who: SpecialistRecord | None = None,
    card: Card | None = None,
) -> None:
    """Refuse the task, or ask a person to approve it.

    by_ms: default deadline of the approval in epoch milliseconds; None for no deadline. who: the decision on who does
    the task once it is approved; None if no specialist does. card: that specialist's; the approval covers a risk above
    its ceiling. Raises VersionConflict.
    """
    verdict = judged.verdict
    if verdict.denied_by is not None:
        why = verdict.refusal.text
        asked = InputRequest(kind=InputKind.APPROVAL, text=why, since_ms=now_ms, rejected=why)
        event, data = Failing(Reason.REJECTED), {"why": why, "rule": verdict.denied_by}
        asks = asked.model_dump(mode="json")
        task = task_rows.advance(connection, task, event, now_ms, data=data, asks=asks, risk=verdict.risk.value)
        record_policy(connection, task, record, now_ms)
        ready_dependents(connection, task, now_ms)
        return
    if (demanded := verdict.demanded) is None:
        raise ValueError("the verdict does not stop the task")
    until_ms = by_ms if demanded.within_ms is None else now_ms + demanded.within_ms
    request = InputRequest(
        kind=InputKind.APPROVAL,
        text=f"{_approval_text(verdict, demanded)}{_ceiling_text(verdict, card)}",
        unclear=who.reason if who is not None and who.route is Route.CLARIFY else None,
        candidates=() if who is None or who.specialist is None else (who.specialist,),
        since_ms=now_ms,
        rules=demanded.rules,
        approvers=demanded.by,
        until_ms=until_ms,
        answer=specialist_meant(task),
    )
    task = ask(connection, task, request, now_ms)
    record_policy(connection, task, record, now_ms)


def _ceiling_text(verdict: Verdict, named: Card | None) -> str:
    """Return a note if the risk exceeds the specialist's ceiling, else an empty text."""
    if named is None or HARM[verdict.risk] <= HARM[named.risk_ceiling]:
        return ""
    return f"; {named.id} takes tasks up to {named.risk_ceiling} risk, and this one has {verdict.risk} risk"


def _approval_text(verdict: Verdict, demanded: Demanded) -> str:
    """Return the request for approval, with the rules that require it, each with its detail."""
    details = {check.rule: check.detail for check in verdict.checks if check.detail}
    rules = [rule for rule in demanded.rules if rule != BEFORE_FIRST_RUN]
    rule_text = "; ".join(f"{rule}: {details[rule]}" if rule in details else rule for rule in rules)
    if not rules:
        return ASKS_FIRST
    if len(rules) < len(demanded.rules):
        return f"{ASKS_FIRST}, and needs it by policy ({rule_text})"
    return f"needs approval by policy ({rule_text})"
