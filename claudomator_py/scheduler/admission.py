"""Decides whether a task may start now, and on which agent: hints, holds and slots around the balancer's choice."""

from collections.abc import Sequence, Set

from claudomator_py.domain.agent import BY_NAME_KINDS, Tier
from claudomator_py.domain.blocked import BlockCode, Blocked, blocked, on_hold
from claudomator_py.domain.decision import Classification, Fallback, Versions
from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.rationale import Rationale, RationaleCode, rationale
from claudomator_py.domain.wording import ConversationRef
from claudomator_py.scheduler.lanes import hint_of, is_balanced, is_by_name_only, named_by, visible_to
from claudomator_py.scheduler.load import Load, all_closed
from claudomator_py.scheduler.records import Candidate, DecisionRecord, OverriddenHint
from claudomator_py.scheduler.snapshot import ActiveHold, AgentState, HeldConversation, QueueHead, Rules
from claudomator_py.scheduler.tiers import TierPending, lost_to, pick_agent, tier_for
from claudomator_py.values import dataclass

_LEAST_ACTIVE = rationale(RationaleCode.LEAST_ACTIVE)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The chosen agent. pool: names of the agents that the balancer chose from."""

    agent: AgentState
    pool: frozenset[str]
    why: Rationale
    overridden: OverriddenHint | None
    fallback: Fallback | None


def hinted_by(head: QueueHead, agents: Sequence[AgentState]) -> tuple[AgentState, ...]:
    """Return the agents that the task's hint refers to; empty without a hint."""
    return named_by(head.agent_type, agents) if head.agent_type else ()


def exhausted_hints(agents: Sequence[AgentState], rules: Rules) -> frozenset[str]:
    """Return the agent hints under which no task can start now: every agent they match is full, limited on all its
    models or unable to run, and no fallback is allowed. In the format of ``scheduler.lanes.hint``."""
    if not any(is_exhausted(agent, rules) for agent in agents):
        return frozenset()
    hints = set()
    for name in {name for agent in agents for name in (agent.name, agent.kind)}:
        meant = named_by(name, agents)
        if all(is_exhausted(agent, rules) for agent in meant):
            hints.add(hint_of(name, strict=True))
            if not any(agent.auto_select for agent in meant):
                hints.add(hint_of(name, strict=False))
    return frozenset(hints)


def is_exhausted(agent: AgentState, rules: Rules) -> bool:
    """Return whether no task can start on the agent. Ignores what tasks demand, which could only rule out more."""
    tried = rules.when_all_limited == "try" and agent.triable
    return agent.problem is not None or not agent.free or (agent.limited and not tried)


def admit(head: QueueHead, agents: Sequence[AgentState], rules: Rules, load: Load) -> DecisionRecord | Blocked:
    """Return the decision to start the task, or what blocks it."""
    seen = load.seen_by(head.tenant, visible_to(head.constraints, agents), rules)
    return load.obstacle(head, rules, seen) or decide(head, seen, rules, load.now)


def decide(head: QueueHead, agents: Sequence[AgentState], rules: Rules, now_ms: int) -> DecisionRecord | Blocked:
    """Return where the task would start if it were its turn and its directory were free, or why it cannot start
    anywhere.

    The result is the same for all tasks of a lane, except those waiting for a tier, as each has its own deadline.
    """
    known = visible_to(head.constraints, agents)
    if head.asks or (rules.routing and not head.routed and (rules.policed or not _takes_no_role(head, known))):
        return blocked(BlockCode.ROUTING)
    agents = tuple(_for_task(head, known, agent, rules, now_ms) for agent in known)
    head = _with_choice(head, agents)
    choice = _choose(head, agents, rules, now_ms)
    if isinstance(choice, Blocked):
        return choice
    decided = tier_for(head, hinted_by(head, agents), choice.agent, classifier=rules.classifier, now_ms=now_ms)
    if isinstance(decided, TierPending):
        return blocked(BlockCode.CLASSIFYING, until=decided.until)
    return _record(head, agents, choice, rules, *decided)


def _takes_no_role(head: QueueHead, agents: Sequence[AgentState]) -> bool:
    """True if the task is for an agent that does what it is configured to do and takes no specialist's role."""
    if head.agent_type is None or head.names_specialist:
        return False
    kinds = {agent.kind for agent in hinted_by(head, agents)} or {head.agent_type}
    return kinds <= set(BY_NAME_KINDS)


def _for_task(
    head: QueueHead, agents: Sequence[AgentState], agent: AgentState, rules: Rules, now_ms: int
) -> AgentState:
    """The agent as this task sees it: unable if it cannot enforce the task's demands, and with only those holds that
    apply to the model the task would get there.

    While that model is undecided, holds on a single model family are ignored; once it is decided, the agent is chosen
    again.
    """
    sentence = head.cannot.get(agent.name)
    if not head.constraints.admits(agent.name, agent.kind):
        agent = agent.model_copy(update={"problem": "not for this task", "barred": True})
    elif sentence is not None:
        agent = agent.model_copy(update={"problem": sentence, "unfit": True})
    if agent.fallback_model is None and not agent.holds:
        return agent  # whatever the model
    hinted = hinted_by(head, agents)
    decided = tier_for(head, hinted, agent, classifier=rules.classifier, now_ms=now_ms)
    if isinstance(decided, TierPending):
        return agent.with_model(None)
    tier = decided[0]
    if not _pinned_on(head, hinted, agent):
        after = head.failed_for if head.failed_on == agent.name else None
        agent = agent.falling_back(tier, _model(head, hinted, agent, tier), after)
    return agent.with_model(_model(head, hinted, agent, tier) or agent.default_model)


def _with_choice(head: QueueHead, agents: Sequence[AgentState]) -> QueueHead:
    """The task, without its conversation if it will not continue there. An optional or yielding conversation is kept
    only while its agent is available."""
    conversation = head.conversation
    if conversation is None or not (conversation.optional or conversation.yields):
        return head
    holders = _holders(conversation, agents)
    stays = any(
        agent.problem is None
        and not (agent.limited and (conversation.optional or conversation.yields == "limited"))
        and (agent.free or not conversation.optional)
        for agent in holders
    )
    return head if stays else head.model_copy(update={"conversation": None})


def _holders(conversation: HeldConversation, agents: Sequence[AgentState]) -> tuple[AgentState, ...]:
    """The agent that has the conversation, if it still exists."""
    return tuple(agent for agent in agents if (agent.name, agent.kind) == (conversation.agent, conversation.kind))


def _model(head: QueueHead, hinted: Sequence[AgentState], agent: AgentState, tier: Tier) -> str | None:
    """The name of the model: the task's pinned model on an agent that its hint refers to, otherwise the tier's
    model."""
    if _pinned_on(head, hinted, agent):
        return head.model
    mapped = agent.models.get(tier)
    return mapped.model if mapped is not None else None


def _pinned_on(head: QueueHead, hinted: Sequence[AgentState], agent: AgentState) -> bool:
    """True if the task gets its pinned model on this agent."""
    return _pins_one_of(head, hinted, agent) and _may_have_pinned(head, agent)


def _pins_one_of(head: QueueHead, hinted: Sequence[AgentState], agent: AgentState) -> bool:
    return head.model is not None and any(meant.name == agent.name for meant in hinted)


def _may_have_pinned(head: QueueHead, agent: AgentState) -> bool:
    """True if the constraints allow the pinned model. A model that belongs to no tier cannot be checked against
    bounds."""
    tiers = (tier for tier, choice in agent.models.items() if choice.model == head.model)
    return not head.constraints.bounds_tiers or any(head.constraints.allows(tier) for tier in tiers)


def _choose(head: QueueHead, agents: Sequence[AgentState], rules: Rules, now_ms: int) -> _Choice | Blocked:
    if head.conversation is not None:
        return _go_on(head.conversation, agents, rules)
    hinted = hinted_by(head, agents)
    if head.agent_type and (head.strict or is_by_name_only(head.agent_type, hinted)):
        if not hinted:
            return blocked(BlockCode.REQUIRED_AGENT, agent=head.agent_type)
        return _balance(hinted, rules, why=rationale(RationaleCode.REQUIRED, agent=head.agent_type))
    open_agents = tuple(agent for agent in agents if is_balanced(agent, head.constraints))
    if not head.agent_type or rules.type_hint == "ignore":
        return _balance(open_agents, rules, why=_LEAST_ACTIVE)
    ready = tuple(agent for agent in hinted if agent.problem is None and not agent.limited and agent.free)
    if ready:
        return _balance(ready, rules, why=rationale(RationaleCode.PREFERRED, agent=head.agent_type))
    full = [agent for agent in hinted if agent.problem is None and not agent.limited]
    if full and now_ms < head.queued + rules.prefer_wait:
        until = head.queued + rules.prefer_wait
        return blocked(BlockCode.PREFERRED_FULL, agents=tuple(map(_no_slot, full)), until=until)
    if hinted:
        because = tuple(item for agent in hinted if (item := _rejection(agent)) is not None)
    else:
        because = (blocked(BlockCode.NOT_CONFIGURED, agent=head.agent_type),)
    override = OverriddenHint(agent=head.agent_type, because=because)
    return _balance(open_agents, rules, why=_LEAST_ACTIVE, overridden=override)


def _go_on(conversation: HeldConversation, agents: Sequence[AgentState], rules: Rules) -> _Choice | Blocked:
    """Only the agent that has the conversation can continue it."""
    resumed = ConversationRef(run=conversation.run, agent=conversation.agent, task=conversation.of)
    holders = _holders(conversation, agents)
    if not holders:
        return blocked(BlockCode.CONVERSATION_AGENT, conversation=resumed)
    verdict = _balance(holders, rules, why=rationale(RationaleCode.RESUMED, conversation=resumed))
    return verdict.having(conversation=resumed) if isinstance(verdict, Blocked) else verdict


def _balance(
    agents: Sequence[AgentState], rules: Rules, *, why: Rationale, overridden: OverriddenHint | None = None
) -> _Choice | Blocked:
    usable = tuple(agent for agent in agents if agent.problem is None)
    if not usable:
        return _nothing_usable(agents)
    pick = pick_agent((agent for agent in usable if agent.free), rules.near_limit)
    unlimited_exists = any(not agent.limited for agent in usable)
    if pick is None or (pick.all_limited and unlimited_exists):
        full = [agent for agent in usable if not agent.limited] or usable
        closed = None if any(agent.full for agent in full) else all_closed(full)
        return closed or blocked(BlockCode.AGENTS_FULL, agents=(*map(_no_slot, full), *_held(usable)))
    if pick.all_limited:
        triable = tuple(agent for agent in usable if agent.triable) if rules.when_all_limited == "try" else ()
        pick = pick_agent((agent for agent in triable if agent.free), rules.near_limit)
        if pick is None:
            return _all_limited(usable)
    fallback = Fallback.ALL_LIMITED if pick.all_limited else None
    return _Choice(pick.agent, frozenset(agent.name for agent in agents), why, overridden, fallback)


def _nothing_usable(agents: Sequence[AgentState]) -> Blocked:
    if not agents:
        return blocked(BlockCode.NO_AGENT)
    rejected = tuple(rejection for agent in agents if (rejection := _rejection(agent)) is not None)
    return blocked(BlockCode.AGENTS_UNABLE, agents=rejected)


def _all_limited(agents: Sequence[AgentState]) -> Blocked:
    spent = all(agent.hold is not None and agent.hold.reason is Reason.BUDGET for agent in agents)
    return blocked(BlockCode.AGENTS_SPENT if spent else BlockCode.AGENTS_LIMITED, agents=_held(agents))


def _held(agents: Sequence[AgentState]) -> tuple[Blocked, ...]:
    """For each limited agent, its hold."""
    return tuple(_on_hold(agent.name, agent.hold) for agent in agents if agent.hold is not None)


def _on_hold(agent: str, hold: ActiveHold) -> Blocked:
    if hold.share is not None:
        share = {"window": hold.window, "used": hold.used, "share": hold.share, "reserved": hold.reserved}
        return blocked(BlockCode.WINDOW_BUDGET, agent=agent, until=hold.until, **share)
    if hold.reason is Reason.BUDGET:
        return blocked(BlockCode.BUDGET, agent=agent, figures=hold.figures, until=hold.until)
    return on_hold(
        agent,
        bucket=hold.bucket,
        reason=hold.reason,
        until=hold.until,
        provenance=hold.provenance,
        source=hold.source,
        window=hold.window,
        room=hold.room,
    )


def _no_slot(agent: AgentState) -> Blocked:
    if agent.closed is not None and not agent.full:
        closed = agent.closed.params
        return blocked(BlockCode.NO_SLOT, agent=agent.name, active=closed.active, slots=closed.slots)
    return blocked(BlockCode.FULL, agent=agent.name, active=agent.active, slots=agent.max_concurrent)


def _rejection(agent: AgentState) -> Blocked | None:
    """Why the agent cannot take a task now; None if it can."""
    if agent.barred:
        return blocked(BlockCode.NOT_ALLOWED, agent=agent.name)
    if agent.problem is not None:
        code = BlockCode.UNFIT if agent.unfit else BlockCode.PROBLEM
        return blocked(code, agent=agent.name, text=agent.problem)
    if agent.hold is not None:
        return _on_hold(agent.name, agent.hold)
    return None if agent.free else _no_slot(agent)


def _record(
    head: QueueHead,
    agents: Sequence[AgentState],
    choice: _Choice,
    rules: Rules,
    tier: Tier,
    classification: Classification,
) -> DecisionRecord:
    agent, overridden = choice.agent, choice.overridden
    mapped = agent.models.get(tier)
    hinted = hinted_by(head, agents)
    pinned_here = _pinned_on(head, hinted, agent)
    open_or_meant = (*(agent for agent in agents if is_balanced(agent, head.constraints)), *hinted)
    considered = choice.pool.union(agent.name for agent in open_or_meant)
    elsewhere = BlockCode.NOT_MEANT if head.conversation is None else BlockCode.NO_CONVERSATION
    candidates = tuple(_candidate(agent, choice, considered, elsewhere, rules) for agent in agents)
    return DecisionRecord(
        agent=agent.name,
        tier=tier,
        model=_model(head, hinted, agent, tier),
        effort=mapped.effort if mapped and not pinned_here else None,
        reason=choice.why,
        fallback=choice.fallback,
        stands_in=agent.stands_in,
        classification=classification,
        candidates=candidates,
        overridden=overridden,
        overridden_model=head.model if _pins_one_of(head, hinted, agent) and not pinned_here else None,
        specialist=head.specialist,
        skill=head.skill,
        constraints=head.constraints,
        unfenced=None if head.constraints.default_reach is None else agent.unfenced,
        versions=Versions(configuration=rules.settings_hash or None),
    )


def _candidate(
    agent: AgentState, choice: _Choice, considered: Set[str], elsewhere: BlockCode, rules: Rules
) -> Candidate:
    """elsewhere: the reason for an agent outside the balancer's pool."""
    eligible = agent.name in considered
    rejected = None
    if not eligible:
        rejected = blocked(BlockCode.NOT_SELECTABLE, agent=agent.name)
    elif choice.overridden is None and agent.name not in choice.pool:
        rejected = blocked(elsewhere, agent=agent.name)
    elif agent.name != choice.agent.name:
        rejected = _rejection(agent) or lost_to(agent, choice.agent, rules.near_limit)
    return Candidate(
        agent=agent.name,
        active=agent.active,
        max_concurrent=agent.max_concurrent,
        limited=agent.limited,
        limited_until=agent.hold.until if agent.hold is not None and not agent.hold.tried else None,
        eligible=eligible,
        rejected=rejected,
    )
