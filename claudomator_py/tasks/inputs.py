"""A person's reaction to a task that needs input, inside one transaction: an answer, an approval or a rejection."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from claudomator_py.acts import digest_in
from claudomator_py.domain.errors import (
    LIST_OF_SPECIALISTS,
    Conflict,
    Forbidden,
    Problem,
    name_suggestion,
    refuse,
    shown,
)
from claudomator_py.domain.inputs import InputRequest, ToolGrant, call_text, grant_text
from claudomator_py.domain.lifecycle import Failing, InputKind
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.principal import OPERATOR, Principal, Role, creator_of
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.run import Exchange, ResumedConversation
from claudomator_py.domain.task import TaskSpec
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.prompts.conversations import columns_of, conversation_of, record_fresh_start
from claudomator_py.scheduler.records import PolicyRecord, PolicyVerdict
from claudomator_py.store import run_rows, specialist_rows, task_rows
from claudomator_py.store.events import record
from claudomator_py.store.stored_json import cleaned
from claudomator_py.store.tables import Run, Task
from claudomator_py.store.task_rows import resumption_of
from claudomator_py.tasks.accept import NewTask, replace_content
from claudomator_py.tasks.decisions import approved_rules, record_policy
from claudomator_py.tasks.readiness import go_on, ready_dependents
from claudomator_py.tasks.specialists import missing
from claudomator_py.texts import cut_line

GO_ON_YOURSELF = "The task stays with you. Do as much of it as you can yourself, and do not hand it on."
_MAX_EVENT_TEXT_CHARS = 300
_MAX_EXCHANGES = 20
_AS_SHOWN = "name a call as `claudomator show` does, or none to allow all that it shows"
_LOOK = "`claudomator status` lists the tasks that need you."
_ASKED_FOR = {
    InputKind.QUESTION: "an answer",
    InputKind.CLARIFICATION: "an answer",
    InputKind.APPROVAL: "approval",
    InputKind.LOGIN: "a login",
}


def current_request(task: Task) -> InputRequest | None:
    """Return the task's current or latest request to a person."""
    return None if task.asks is None else InputRequest.model_validate(task.asks)


def specialist_meant(task: Task) -> str | None:
    """Return the specialist that a person named, when asked which is meant or when approving the task before its
    first run."""
    request = current_request(task)
    return None if request is None else request.answer


def specialist_approved(task: Task) -> str | None:
    """Return the specialist with which a person approved the task before its first run."""
    request = current_request(task)
    return None if request is None or task.approved_ms is None else request.specialist


def with_granted_tools(task: Task, spec: TaskSpec, kind: str) -> TaskSpec:
    """Return the content plus the tools that a person granted, for an agent of that kind."""
    grant = _grant(task)
    return spec if grant is None else grant.granted(spec, kind)


def granted_acts(task: Task, kind: str) -> tuple[str, ...]:
    """Return the digests of calls beyond the task's reach that a person allowed, for an agent of that kind."""
    grant = _grant(task)
    return () if grant is None else grant.acts(kind)


def granted_commands(task: Task) -> tuple[str, ...]:
    """Return the commands beyond the task's reach that a person allowed before its first run."""
    grant = _grant(task)
    return () if grant is None else grant.commands


def _grant(task: Task) -> ToolGrant | None:
    """Return what a person has allowed the task, if anything."""
    return None if task.granted_tools is None else ToolGrant.model_validate(task.granted_tools)


def request_of_older_version(task: Task) -> InputRequest:
    """Return a request for a task that began to wait under an older version, which did not store one."""
    text = "asks a question; see what it said last"
    kind = InputKind(str(task.reason))
    return InputRequest(kind=kind, text=text, since_ms=task.updated_ms, run_id=task.last_run_id)


def answer(
    connection: Connection, task: Task, text: str, registry: AgentRegistry, now_ms: int, *, by: Principal = OPERATOR
) -> None:
    """Let the agent continue with the answer in the conversation in which it asked; if no agent has the task yet,
    have the task routed by the answer. by: who answers. Raises Conflict or Invalid."""
    request = _pending(task, "answered")
    if request.kind is InputKind.LOGIN:
        raise Conflict(f"{task.name} needs a login, not an answer.", remedy=_remedy(task, request))
    if request.kind is InputKind.CLARIFICATION and request.run_id is None:
        _route_by(connection, task, request, text.strip(), by, now_ms)
        return
    if request.run_id is None:
        remedy = f"Approve it with `claudomator approve {task.name}`, or reject it."
        raise Conflict(f"{task.name} {request.words}: there is no agent to answer.", remedy=remedy)
    data = {"answer": _event_text(text)}
    record(connection, now_ms, "answered", task_id=task.id, run_id=request.run_id, data=data)
    # An answer to a refused handoff grants no tools.
    kind = InputKind.QUESTION if request.asks_to_continue else request.kind
    exchange = Exchange(kind=kind, asked=request.words, answer=text)
    run = run_rows.get(connection, request.run_id)
    _continue_conversation(connection, task, run, exchange, registry, now_ms)


def _route_by(connection: Connection, task: Task, request: InputRequest, text: str, by: Principal, now_ms: int) -> None:
    """Give the task to the specialist that the text names. Text of more than one word is appended to the
    instructions instead, so that policy, routing and agent see it like the rest."""
    named, visible = specialists_for(connection, task, by)
    if text not in named and len(text.split()) == 1:
        remedy = f"say more about the task, or {name_suggestion(text, sorted(visible), LIST_OF_SPECIALISTS)}"
        refuse([Problem(field="text", message=f"there is no specialist `{shown(text)}`", remedy=remedy)])
    answered = {"meant": text} if text in named else {"answer": _event_text(text)}
    record(connection, now_ms, "answered", task_id=task.id, data=answered)
    if text in named:
        go_on(connection, task, now_ms, asks=request.model_copy(update={"answer": text}).model_dump(mode="json"))
        return
    content = task_rows.revision_of(connection, task.id, task.revision)
    spec = TaskSpec.model_validate(content.spec)
    replace_content(connection, task, NewTask(spec.extended(text), content.dir_key, task.source), now_ms)


def specialists_for(connection: Connection, task: Task, by: Principal) -> tuple[set[str], set[str]]:
    """Return the specialists that the principal may give the task, all of which accept work of the task's creator;
    and all specialists that the principal sees."""
    visible = set(specialist_rows.ids_seen(connection, by))
    return visible.intersection(specialist_rows.assignable_ids(connection, creator_of(task))), visible


def approve(
    connection: Connection,
    task: Task,
    tools: Sequence[str],
    registry: AgentRegistry,
    now_ms: int,
    *,
    by: Principal = OPERATOR,
    why: str | None = None,
    specialist: str | None = None,
) -> None:
    """Allow what it asks for, for this content and generation. tools: what to allow instead of what each denied call
    needs. by: who says so; why: what they say; specialist: who is to do it, so that nobody has to be asked that as
    well. Raises Conflict, Forbidden or Invalid."""
    request = _pending(task, "approved")
    if request.kind is not InputKind.APPROVAL:
        raise Conflict(f"{task.name} needs {_ASKED_FOR[request.kind]}, not approval.", remedy=_remedy(task, request))
    if request.run_id is None:
        if tools:
            message = "were not requested: it needs approval before its first run"
            refuse([Problem(field="tools", message=message, remedy="leave them out")])
        refuse_others(request.approvers, by)
        _approve_content(connection, task, request, now_ms, by, why, specialist)
        return
    if specialist is not None:
        message = "cannot be chosen any more: the task has begun"
        refuse([Problem(field="specialist", message=message, remedy="leave it out")])
    run = run_rows.get(connection, request.run_id)
    if request.asks_to_continue:
        _continue_itself(connection, task, request, run, tools, registry, now_ms)
        return
    _approve_calls(connection, task, request, run, tools, registry, now_ms, why)


def _approve_content(
    connection: Connection,
    task: Task,
    request: InputRequest,
    now_ms: int,
    by: Principal,
    why: str | None,
    specialist: str | None,
) -> None:
    """Let the task begin: its policy rules or commands are approved before its first run."""
    changes: dict[str, Any] = {}
    if specialist is None and request.unclear is not None:
        refuse([Problem(field="specialist", message=f"is needed: {request.unclear.text}", remedy="name one")])
    if specialist is not None:
        named, visible = specialists_for(connection, task, by)
        if specialist not in named:
            refuse([missing(connection, specialist, "specialist", by, sorted(visible))])
        changes["asks"] = request.model_copy(update={"answer": specialist}).model_dump(mode="json")
    data = _event_data(why, rules=list(request.rules), commands=list(request.commands))
    data |= {} if specialist is None else {"meant": specialist}
    if request.commands:
        changes["granted_tools"] = ToolGrant(kind="", tools=(), commands=request.commands).stored
    record(connection, now_ms, "approved", task_id=task.id, data=data)
    if request.rules:
        reason = rationale(RationaleCode.APPROVED, principal=by.id, rules=request.rules, text=why)
        met_rules = tuple(sorted(approved_rules(connection, task) | set(request.rules)))
        decided = PolicyRecord(
            reason=reason,
            verdict=PolicyVerdict.APPROVED,
            rules=request.rules,
            approved=met_rules,
            approved_by=by.id,
            said=why,
        )
        record_policy(connection, task, decided, now_ms)
    go_on(connection, task, now_ms, approved_ms=now_ms, **changes)


def _approve_calls(
    connection: Connection,
    task: Task,
    request: InputRequest,
    run: Run,
    tools: Sequence[str],
    registry: AgentRegistry,
    now_ms: int,
    why: str | None,
) -> None:
    """Allow the tools that the run was denied, and continue its conversation."""
    allowed = _named_rules(tools, request) or _rules(task, request)
    before = _grant(task) or ToolGrant(kind=run.kind, tools=())
    grant = ToolGrant(kind=run.kind, tools=tuple(dict.fromkeys((*before.tools, *allowed))), commands=before.commands)
    spec = task_rows.spec_of(connection, task.id, task.revision)
    refuse(_lacking(grant, spec, run, registry))
    data = _event_data(why, tools=list(allowed))
    record(connection, now_ms, "approved", task_id=task.id, run_id=request.run_id, data=data)
    exchange = Exchange(kind=request.kind, asked=request.words, allowed=allowed)
    _continue_conversation(connection, task, run, exchange, registry, now_ms, granted_tools=grant.stored)


def _continue_itself(
    connection: Connection,
    task: Task,
    request: InputRequest,
    run: Run,
    tools: Sequence[str],
    registry: AgentRegistry,
    now_ms: int,
) -> None:
    """Have the specialist that asked for a handoff continue with the task itself. Raises Invalid."""
    if tools:
        message = "were not requested: it asks whether to continue the task itself"
        refuse([Problem(field="tools", message=message, remedy="leave them out")])
    record(connection, now_ms, "approved", task_id=task.id, run_id=run.id)
    exchange = Exchange(kind=InputKind.QUESTION, asked=request.words, answer=GO_ON_YOURSELF)
    _continue_conversation(connection, task, run, exchange, registry, now_ms)


def reject(connection: Connection, task: Task, reason: str | None, now_ms: int) -> None:
    """End the task, as a person does not want it to continue. Raises Conflict."""
    request = _pending(task, "rejected")
    data = {} if reason is None else {"reason": reason}
    record(connection, now_ms, "rejected", task_id=task.id, run_id=request.run_id, data=data)
    rejected = request.model_copy(update={"rejected": reason})
    event, why = Failing(Reason.REJECTED), {} if reason is None else {"why": reason}
    task = task_rows.advance(connection, task, event, now_ms, data=why, asks=rejected.model_dump(mode="json"))
    ready_dependents(connection, task, now_ms)


def may_approve(request: InputRequest, by: Principal) -> bool:
    """Return whether every approver list names the principal or its role."""
    return all(_is_one_of(listed, by) for listed in request.approvers)


def _is_one_of(listed: Sequence[str], by: Principal) -> bool:
    return by.id in listed or any(by.role.permits(role) for role in Role if role in listed)


def refuse_others(approvers: Sequence[Sequence[str]], by: Principal) -> None:
    """Refuse a principal whom one of the rules names neither by id nor by role. approvers: by rule. Raises
    Forbidden."""
    for listed in approvers:
        if not _is_one_of(listed, by):
            raise Forbidden(
                f"The policy requires approval by {' or '.join(listed)}, and {by.id} is {by.role}.",
                remedy="Have one of them approve it.",
            )


def _event_data(why: str | None, **data: list[str]) -> dict[str, Any]:
    """The data of an event, without empty values."""
    return {name: value for name, value in {"why": why, **data}.items() if value}


def expire(connection: Connection, task: Task, now_ms: int) -> None:
    """End the task, as nobody gave the needed input by its deadline."""
    request = current_request(task)
    asks = None if request is None else request.model_dump(mode="json")
    task = task_rows.advance(connection, task, Failing(Reason.EXPIRED), now_ms, asks=asks)
    ready_dependents(connection, task, now_ms)


def _pending(task: Task, participle: str) -> InputRequest:
    """The open request. participle: the attempted action, for the message of the Conflict raised if nothing is open."""
    if task.state != "NEEDS_INPUT":
        raise Conflict(f"{task.name} is {task.state}: nothing waits to be {participle}.", remedy=_LOOK)
    return current_request(task) or request_of_older_version(task)


def _remedy(task: Task, request: InputRequest) -> str:
    if request.kind is InputKind.LOGIN:
        return f"Log in, then: claudomator release {request.agent or 'AGENT'}"
    return f"Answer it with `claudomator answer {task.name} TEXT`."


def _continue_conversation(
    connection: Connection,
    task: Task,
    run: Run,
    exchange: Exchange,
    registry: AgentRegistry,
    now_ms: int,
    **changes: Any,
) -> None:
    """Have the next run continue the conversation of the run that asked, with the exchange; if that conversation is
    gone, a fresh one is told everything. changes: of the task's columns."""
    spec = task_rows.spec_of(connection, task.id, task.revision)
    resumption = ResumedConversation(
        run_id=run.id, agent=run.agent, kind=run.kind, tier=run.tier, revision=run.revision
    )
    earlier = resumption_of(task) or resumption
    agent = registry.find(run.agent)
    why = None
    if conversation_of(run) is None:
        why = f"{run.agent} left none behind"
    elif agent is None or agent.kind != run.kind:
        why = f"{run.agent}, which has it, is no longer configured"
    resumption = resumption.model_copy(
        update={
            "words": earlier.words,
            "follows": earlier.follows,
            "confirms": earlier.confirms,
            "heard": (*earlier.heard, exchange)[-_MAX_EXCHANGES:],
            "answering": why is None,
            "given_up": why is not None,
        }
    )
    if why is not None:
        record_fresh_start(connection, task, None, run.id, why, now_ms)
    changes |= columns_of(resumption, spec)
    if resumption.holder is None:
        changes["kept_until_ms"] = None
    go_on(connection, task, now_ms, **changes)


def _rules(task: Task, request: InputRequest) -> tuple[str, ...]:
    """The rules that allow the denied calls. Raises Conflict if a call has no rule as narrow as the call itself."""
    rules: dict[str, None] = {}
    for call in request.tools:
        if call.rule is None:
            detail = f"What {task.name} was denied cannot be allowed on its own: {call.tool} has no rule that narrow."
            remedy = f"Name what to allow, such as `--tool {call.tool}`, or answer the agent."
            raise Conflict(detail, remedy=remedy)
        rules[call.rule] = None
    return tuple(rules)


def _named_rules(tools: Sequence[str], request: InputRequest) -> tuple[str, ...]:
    """The rules that a person names; a call beyond the reach may be named the way it is shown. Raises Invalid for a
    name that allows none of the denied calls, if all of them went beyond the reach, or for a call that was not
    denied."""
    fenced = {call.rule: call for call in request.tools if call.rule is not None and call.beyond is not None}
    by_name = {
        name: rule
        for rule, call in fenced.items()
        for name in (rule, rule.partition(" ")[0], grant_text(rule), call_text(call))
    }
    rules, problems = dict[str, None](), list[Problem]()
    for tool in tools:
        if (rule := by_name.get(tool)) is not None:
            rules[rule] = None
        elif digest_in(tool) is not None:
            problems.append(Problem(field="tools", message="is no call that it was denied", remedy=_AS_SHOWN))
        elif len(fenced) == len(request.tools) > 0:
            message = f"`{shown(tool)}` allows none of what it was denied, which went beyond its reach"
            problems.append(Problem(field="tools", message=message, remedy=_AS_SHOWN))
        else:
            rules[tool] = None
    refuse(problems)
    return tuple(rules)


def _lacking(grant: ToolGrant, spec: TaskSpec, run: Run, registry: AgentRegistry) -> list[Problem]:
    """Problems for what the run's agent has no means to allow."""
    agent = registry.find(run.agent)
    if agent is None:
        return []
    lacking_anyway = registry.unsupported(spec, agent)
    lacking = [
        sentence
        for sentence in registry.unsupported(grant.granted(spec, agent.kind), agent)
        if sentence not in lacking_anyway
    ]
    return [
        Problem(field="tools", message=sentence, remedy="name different tools, or answer the agent")
        for sentence in lacking
    ]


def _event_text(text: str) -> str:
    return cut_line(cleaned(text), _MAX_EVENT_TEXT_CHARS)  # in this order: a part of a secret would stay
