"""Lanes: what a task shares with every task that the same agents can take, and that waits for the same of them."""

import json

from claudomator_py.core.conversation import Resumption
from claudomator_py.core.demands import demands
from claudomator_py.core.task import OnLimit, TaskSpec
from claudomator_py.planning.snapshot import HeldBy


def eligibility(spec: TaskSpec, resumption: Resumption | None = None) -> str:
    """What decides which agents and models are eligible for the task, as far as that is known when it is queued.

    Not where it works: that keeps it apart from others, whoever runs them. resumption: the conversation in which it
    goes on, if it does. With the tier that was kept or found, and what the last run did not get, it is the task's lane;
    see ``store.tables.Task``.
    """
    hint = spec.agent
    parts: list[object] = [hint.type, hint.strict, hint.tier, hint.model]
    if demanded := demands(spec):
        parts.append(demanded)
    held = held_by(resumption, spec)
    if held is not None:
        parts.append({"conversation": [held.agent, held.kind, held.optional, held.yields]})
    return json.dumps(parts, separators=(",", ":"))


def held_by(resumption: Resumption | None, spec: TaskSpec) -> HeldBy | None:
    """The conversation that the task goes on in, as planning sees it; None: a fresh one."""
    if resumption is None or resumption.given_up:
        return None
    held = HeldBy(run=resumption.run_id, agent=resumption.agent, kind=resumption.kind, optional=resumption.optional)
    if resumption.follows is None:
        return held
    of = spec.continues if resumption.run_id == resumption.follows else None
    yields = "limited" if spec.on_limit is OnLimit.FAILOVER else "unable"
    return held.model_copy(update={"of": of, "yields": yields})
