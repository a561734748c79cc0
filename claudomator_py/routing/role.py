"""A specialist and its task: who was named for it, and which name takes precedence; what the card adds to the content,
and what it allows. Pure."""

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.card import Card, Transport
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.domain.routing import Constraints, tool_name, tools_in_both
from claudomator_py.domain.task import PermissionMode, Permissions, TaskSpec
from claudomator_py.domain.worktree import Isolation
from claudomator_py.routing.ranking import Needs, RoutingRules, to
from claudomator_py.scheduler.records import HandoffRecord, Route, SpecialistRecord
from claudomator_py.values import dataclass

_FREEDOM = (PermissionMode.PLAN, PermissionMode.ACCEPT_EDITS, PermissionMode.BYPASS)


_ANYTHING = Constraints()
_BY_NAME = frozenset({RationaleCode.NAMED, RationaleCode.BY_HAND, RationaleCode.GIVEN_BY_RULE, RationaleCode.HANDED_ON})
_BY_MENTION = frozenset({RationaleCode.MENTIONED, RationaleCode.CONTINUED})


def done_by(spec: TaskSpec, card: Card | None, constraints: Constraints = _ANYTHING) -> TaskSpec:
    """Return the task as given to the specialist: within the permissions of the card and the policy, and with the
    expected output. card: None if no specialist does it."""
    spec = _as_specialist(spec, card, adds=constraints.role_adds)
    if constraints.isolated and spec.working_dir is not None and spec.isolation is not Isolation.WORKTREE:
        spec = spec.model_copy(update={"isolation": Isolation.WORKTREE})
    return constraints.limited(spec)


def _as_specialist(spec: TaskSpec, card: Card | None, *, adds: bool) -> TaskSpec:
    """adds: True if the card forbids nothing."""
    if card is None or card.transport is not Transport.LOCAL:
        return spec  # remote specialists have roles and permissions of their own
    changes: dict[str, object] = {}
    if card.permissions is not None:
        permissions = _added if adds else _within
        changes["permissions"] = permissions(spec.permissions, card.permissions)
    if spec.expected_output is None and card.expected_output is not None:
        changes["expected_output"] = card.expected_output
    return spec.model_copy(update=changes) if changes else spec


def _within(asked: Permissions, allowed: Permissions) -> Permissions:
    """The permissions a task asks for, as far as the card allows them; the card fills in what the task leaves out.

    The mode ``default`` and an empty list of allowed tools count as left out, on either side. The stricter of two modes
    applies, the intersection of two tool lists, and anything that either side forbids is forbidden. A tool that the
    agent does not have is not allowed either.
    """
    modes = [role.mode for role in (asked, allowed) if role.mode is not PermissionMode.DEFAULT]
    mode = min(modes, key=_FREEDOM.index, default=PermissionMode.DEFAULT)
    granted = asked.allowed_tools or allowed.allowed_tools
    if asked.allowed_tools and allowed.allowed_tools:
        granted = tuple(tool for tool in asked.allowed_tools if tool in allowed.allowed_tools)
    tools = asked.tools if allowed.tools is None else allowed.tools
    if asked.tools is not None and allowed.tools is not None:
        tools = tools_in_both(asked.tools, allowed.tools)
    if tools is not None:
        granted = tools_in_both(granted, tools)
    forbidden = tuple(dict.fromkeys((*allowed.disallowed_tools, *asked.disallowed_tools)))
    return Permissions(mode=mode, tools=tools, allowed_tools=granted, disallowed_tools=forbidden)


def _added(asked: Permissions, card: Permissions) -> Permissions:
    """The permissions a task asks for, with those of the card where the task leaves them out.

    As the card forbids nothing here, it grants only what it grants without exceptions: no tool of which it forbids any
    use, and no mode that allows everything. A task that names the specialist would otherwise get less.
    """
    silent = asked.mode is PermissionMode.DEFAULT and card.mode is not PermissionMode.PLAN
    if card.mode is PermissionMode.BYPASS and (card.disallowed_tools or card.tools is not None):
        silent = False
    limited = {tool_name(tool) for tool in card.disallowed_tools}
    granted = tuple(tool for tool in card.allowed_tools if tool_name(tool) not in limited)
    if card.tools is not None:
        granted = tools_in_both(granted, card.tools)
    allowed = asked.allowed_tools or tuple(tool for tool in granted if tool not in asked.disallowed_tools)
    if asked.tools is not None:
        allowed = tools_in_both(allowed, asked.tools)
    return asked.model_copy(update={"mode": card.mode if silent else asked.mode, "allowed_tools": allowed})


def is_named(code: RationaleCode) -> bool:
    """Return whether somebody or something has named the specialist, for that reason of the decision."""
    return code in _BY_NAME or code in _BY_MENTION


def only_adds(code: RationaleCode, card: Card) -> bool:
    """Return whether a card forbids nothing of a task that its specialist got for that reason: nobody has named the
    specialist, nor addressed it if the card says that this is enough."""
    return not (code in _BY_NAME or (card.restricts and code in _BY_MENTION))


def escalation_of(card: Card | None) -> tuple[str, ...]:
    """Return where a task goes if its run cannot do it, in order: the specialists that the card names, then a
    person."""
    named = () if card is None else (card.fallback, card.escalation)
    return tuple(dict.fromkeys((*(name for name in named if name is not None), Route.HUMAN_REVIEW.value)))


def constraints_of(card: Card) -> Constraints:
    """Return the card's constraints on agents and tiers."""
    agents = card.allowed_agents if card.transport is Transport.LOCAL else (agent_name(card),)
    return Constraints(default_tier=card.default_tier, agents=agents)


def agent_name(card: Card) -> str:
    """Return the agent name of a remote specialist."""
    return f"{card.transport.value}:{card.id}"


def agent_of(card: Card) -> AgentSpec:
    """Return the agent for a remote specialist: chosen only for tasks routed to that specialist, and given no variable
    except the one that holds its secret. Raises ValueError if it is not remote."""
    name, most = agent_name(card), card.max_concurrent
    if card.transport is Transport.HUB:
        return AgentSpec(
            name=name, kind="hub", auto_select=False, max_concurrent=most, specialist=card.id, fee_usd=card.fee_usd
        )
    secret = card.authentication.secret
    return AgentSpec(
        name=name,
        kind="a2a",
        remote=card.remote(),
        auto_select=False,
        max_concurrent=most,
        pass_env=() if secret is None else (secret,),
        specialist=card.id,
        fee_usd=card.fee_usd,
    )


@dataclass(frozen=True, slots=True)
class Assignments:
    """The specialist to which a task was assigned, by source; None if by none of that kind. The first one that is set
    counts."""

    by_rule: str | None = None
    rule: str = ""
    """The policy rule that assigns it."""
    by_hand: str | None = None
    """The answer of a person who was asked which specialist is meant, or approved the task for one."""
    handed: HandoffRecord | None = None
    """The latest handoff in this generation."""
    named: str | None = None
    """Named in the task file."""
    addressed: str | None = None
    """Addressed in the text, with ``@``."""
    before: str | None = None
    """The specialist of the task that this one continues."""

    @property
    def specialist(self) -> str | None:
        """Who was named before anybody worked on it, by whatever source counts first."""
        named = (self.by_rule, self.by_hand, self.named, self.addressed, self.before)
        return next((value for value in named if value is not None), None)


def explicit_choice(
    claims: Assignments, seen: frozenset[str], needs: Needs, rules: RoutingRules, skill: str | None
) -> SpecialistRecord | None:
    """Return who does the task; a person is asked if that specialist is gone or excluded. None if none was named. seen:
    the specialists visible to the task's creator. skill: the one that the task asks for."""
    record = _given(claims, seen, needs, rules, skill)
    if record is None or record.specialist not in needs.excluded:
        return record
    return _asking(RationaleCode.EXCLUDED, record.specialist, rules)


def _given(
    claims: Assignments, seen: frozenset[str], needs: Needs, rules: RoutingRules, skill: str | None
) -> SpecialistRecord | None:
    versions = rules.versions
    if claims.by_rule is not None:
        if claims.by_rule not in seen:
            return _asking(RationaleCode.GONE, claims.by_rule, rules)
        why = rationale(RationaleCode.GIVEN_BY_RULE, rule=claims.rule, specialist=claims.by_rule)
        return SpecialistRecord(
            reason=why, route=Route.SPECIALIST, specialist=claims.by_rule, skill=None, versions=versions
        )
    if claims.by_hand is not None and claims.by_hand.strip() in seen:
        return to(RationaleCode.BY_HAND, claims.by_hand.strip(), versions, skill)
    if claims.handed is not None:
        return _handed_on(claims.handed, seen, needs, rules)
    if claims.named is not None:
        if claims.named not in seen:
            return _asking(RationaleCode.NAMED_GONE, claims.named, rules)
        return to(RationaleCode.NAMED, claims.named, versions, skill)
    if claims.addressed is not None:
        return to(RationaleCode.MENTIONED, claims.addressed, versions, skill)
    if claims.before in seen:
        return to(RationaleCode.CONTINUED, claims.before, versions, skill)
    return None


def as_approved(
    approved: str, record: SpecialistRecord, seen: frozenset[str], needs: Needs, rules: RoutingRules, skill: str | None
) -> SpecialistRecord:
    """Return the decision by comparison for a task that a person approved with that specialist: whatever cards have
    changed since, that one does it, or a person is asked again. Other parameters: see ``explicit_choice``."""
    if record.specialist == approved:
        return record
    if approved not in seen or approved in needs.excluded:
        code = RationaleCode.EXCLUDED if approved in seen else RationaleCode.GONE
        return _asking(code, approved, rules)
    return to(RationaleCode.AS_APPROVED, approved, rules.versions, skill)


def _handed_on(handed: HandoffRecord, seen: frozenset[str], needs: Needs, rules: RoutingRules) -> SpecialistRecord:
    """The specialist that continues a task that was handed off, unless it has since gone. For the default route this is
    the default specialist; none if there is none or it is the one that failed."""
    route, who = Route.SPECIALIST, handed.specialist
    if who is None:
        default, open_ = rules.default, seen - needs.excluded
        route, who = Route.DEFAULT, default if default != handed.by and default in open_ else None
    elif who not in seen:
        return _asking(RationaleCode.GONE, who, rules)
    return SpecialistRecord(
        reason=handed.reason, risk=handed.risk, route=route, specialist=who, versions=rules.versions
    )


def _asking(code: RationaleCode, specialist: str | None, rules: RoutingRules) -> SpecialistRecord:
    """The decision to ask a person. code: the reason, which names the specialist."""
    why = rationale(code, specialist=specialist)
    return SpecialistRecord(reason=why, route=Route.CLARIFY, specialist=None, versions=rules.versions)
