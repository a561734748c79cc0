"""Snapshots for the tests of planning: by hand, and of any kind."""

from typing import Any

from hypothesis import strategies as st

from claudomator_py.domain.agent import ModelChoice, Tier
from claudomator_py.domain.blocked import Blocked
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.scheduler.admission import admit
from claudomator_py.scheduler.lanes import Demand, hint_of
from claudomator_py.scheduler.load import Load, load_of
from claudomator_py.scheduler.plan import StartRun, plan
from claudomator_py.scheduler.records import DecisionRecord
from claudomator_py.scheduler.snapshot import ActiveHold, AgentState, HeldConversation, QueueHead, Snapshot
from tests.fakes.agents import CLAUDE_MODELS, CODEX_MODELS
from tests.fakes.configuration import rules

NOW = 1_790_000_000_000
HOLD = ActiveHold(
    bucket="claude/default",
    reason=Reason.RATE_LIMITED,
    until=NOW + 60_000,
    provenance=Provenance.REPORTED,
    source="five_hour",
    window="five_hour",
)
LOGIN = ActiveHold(
    bucket="gemini/default", reason=Reason.AUTH, until=None, provenance=Provenance.REPORTED, source="please run /login"
)


def agent(name: str, **changes: Any) -> AgentState:
    """An agent that is ready, of the kind of its name. hold: the only one that it has."""
    if (hold := changes.pop("hold", None)) is not None:
        changes["holds"] = (hold,)
    models = CODEX_MODELS if name.startswith("codex") else CLAUDE_MODELS
    usual: dict[str, Any] = {"kind": name, "active": 0, "max_concurrent": 2, "auto_select": True, "models": models}
    return AgentState(name=name, **(usual | changes))


def head(number: int, **changes: Any) -> QueueHead:
    """The task of that number in the queue."""
    usual: dict[str, Any] = {"version": 1, "lane": "", "dir_key": "", "rank": number, "created": number}
    return QueueHead(task_id=f"task-{number:03}", name=f"name-{number}", **(usual | changes))


def demand_of(task: QueueHead) -> Demand:
    """What the task demands, as its row has it."""
    hint = "" if task.conversation is not None else hint_of(task.agent_type, strict=task.strict)
    return Demand(hint, task.constraints.text)


def snapshot(*agents: AgentState, heads: tuple[QueueHead, ...] = (), **changes: Any) -> Snapshot:
    """A snapshot; ``rules`` and its other fields can be changed by name."""
    fields: dict[str, Any] = {"now": NOW, "live": sum(seen.active for seen in agents), "busy": {}}
    fields |= {name: changes.pop(name) for name in list(changes) if name in Snapshot.model_fields}
    return Snapshot(**fields, rules=rules(**changes), agents=agents, heads=heads)


def starts(seen: Snapshot) -> list[StartRun]:
    """The runs that the plan starts."""
    return [action for action in plan(seen) if isinstance(action, StartRun)]


def placed(seen: Snapshot) -> list[tuple[str, str]]:
    """Task and agent of each start."""
    return [(start.head.task_id, start.decision.agent) for start in starts(seen)]


_HOLDS = st.builds(
    ActiveHold,
    bucket=st.sampled_from(["claude/default", "codex/default"]),
    family=st.sampled_from([None, None, "opus", "sol"]),
    reason=st.sampled_from([Reason.RATE_LIMITED, Reason.AUTH, Reason.OVERLOADED]),
    until=st.none() | st.integers(NOW + 1, NOW + 10_000),
    provenance=st.sampled_from(Provenance),
    source=st.text(max_size=5),
)


@st.composite
def _agents(draw: st.DrawFn) -> tuple[AgentState, ...]:
    names = draw(st.lists(st.sampled_from("abcdef"), max_size=5, unique=True))
    agent_states = []
    for name in sorted(names):
        most = draw(st.integers(1, 3))
        agent_states.append(
            AgentState(
                name=name,
                kind=draw(st.sampled_from(["claude", "codex", "command"])),
                active=draw(st.integers(0, most + 1)),
                max_concurrent=most,
                auto_select=draw(st.booleans()),
                near_limit=draw(st.booleans()),
                problem=draw(st.none() | st.just("its program was not found")),
                holds=tuple(draw(st.lists(_HOLDS, max_size=2))),
                models=draw(st.sampled_from([CLAUDE_MODELS, CODEX_MODELS, {Tier.FAST: ModelChoice(model="one")}, {}])),
                default_tier=draw(st.sampled_from(Tier)),
            )
        )
    return tuple(agent_states)


_TALK = HeldConversation(run="run", agent="a", kind="claude")
TALKS = (
    *(_TALK, _TALK.model_copy(update={"agent": "gone"})),
    *(_TALK.model_copy(update=how) for how in ({"optional": True}, {"yields": "unable"}, {"yields": "limited"})),
)
_HEADS = st.lists(
    st.fixed_dictionaries(
        {
            "dir_key": st.sampled_from(["", "", "/x", "/y", "/z"]),
            "agent_type": st.sampled_from([None, None, "a", "b", "claude", "command", "gone"]),
            "tier": st.none() | st.sampled_from(Tier),
            "kept_tier": st.none() | st.sampled_from(Tier),
            "model": st.sampled_from([None, None, "opus", "unheard-of"]),
            "strict": st.booleans(),
            "conversation": st.sampled_from([None, None, *TALKS]),
        }
    ),
    max_size=10,
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Any snapshot that can be observed."""
    agents = draw(_agents())
    live = sum(seen.active for seen in agents)
    heads = []
    for number, fields in enumerate(draw(_HEADS)):
        if fields["agent_type"] is None:
            fields |= {"model": None, "strict": False}
        heads.append(head(number, **fields))
    return snapshot(
        *agents,
        heads=tuple(heads),
        live=live + draw(st.integers(0, 2)),
        busy=draw(st.dictionaries(st.sampled_from(["/x", "/y"]), st.integers(1, 2), max_size=2)),
        disk_low=draw(st.sampled_from([False, False, False, True])),
        total=draw(st.integers(1, 8)),
        per_workdir=draw(st.integers(1, 2)),
        type_hint=draw(st.sampled_from(["prefer", "ignore"])),
        when_all_limited=draw(st.sampled_from(["wait", "try"])),
    )


IDLE = load_of(snapshot())


def decide(task: QueueHead, *agents: AgentState, load: Load = IDLE, **changes: object) -> DecisionRecord:
    """The decision to start it on one of these agents. changes: of the rules."""
    verdict = admit(task, agents, rules(**changes), load)
    assert isinstance(verdict, DecisionRecord), verdict
    return verdict


def waits(task: QueueHead, *agents: AgentState, load: Load = IDLE, **changes: object) -> Blocked:
    """Why it starts on none of them."""
    verdict = admit(task, agents, rules(**changes), load)
    assert isinstance(verdict, Blocked), verdict
    return verdict
