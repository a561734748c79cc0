"""After a limit's reset one run goes first, the probe, and others follow as answers come; so they do where a limit is
tried before that. All is read from rows.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.limits import Bucket, Hold, RanOn, ramp, try_pause_ms
from claudomator_py.store import hold_rows, run_rows
from claudomator_py.store.tables import Run
from claudomator_py.values import dataclass


@dataclass(frozen=True, slots=True)
class Probed:
    """A bucket whose limit is over. allowed: how many runs begun since may live at once; room: how many more."""

    hold: Hold
    allowed: int
    room: int


def ran_on(run: Run) -> RanOn:
    """Return what the run draws on."""
    return RanOn(run.agent, run.kind, run.account, run.model, run.ran_model)


def begun_since(hold: Hold, run: Run) -> bool:
    """Return whether the run began on the hold's bucket after its time was over."""
    return hold.until_ms is not None and run.started_ms >= hold.until_ms and hold.is_on(ran_on(run))


def begun_under(hold: Hold, run: Run) -> bool:
    """Return whether the run began on the hold's bucket although that was held already."""
    return run.started_ms > hold.created_ms and hold.is_on(ran_on(run))


def probed(
    connection: Connection, live: Sequence[Run], now_ms: int, over: Sequence[Hold] | None = None
) -> Sequence[Probed]:
    """Return the buckets that are being used again with care. over: see ``hold_rows.over``; None: they are read
    here."""
    holds = hold_rows.over(connection, now_ms) if over is None else over
    found = []
    for hold in holds:
        since_ms = hold.until_ms if hold.until_ms is not None else now_ms
        answered = [one for one in run_rows.answered_since(connection, since_ms) if hold.is_on(one)]
        allowed = ramp(len(answered))
        # Who went first after an earlier limit, and has not answered, still tries the bucket for all others.
        earlier_ms = hold_rows.first_end_over(connection, hold.bucket, now_ms) or since_ms
        living = sum(
            hold.is_on(ran_on(run)) and (run.started_ms >= since_ms or (_silent(run) and run.started_ms >= earlier_ms))
            for run in live
        )
        found.append(Probed(hold, allowed, max(0, allowed - living)))
    return found


def _silent(run: Run) -> bool:
    """Whether its model was not seen to answer yet."""
    return run.answered_ms is None


def tries(connection: Connection, live: Sequence[Run], in_force: Sequence[Hold], now_ms: int) -> Mapping[Bucket, int]:
    """Return, by bucket that is limited, how many runs may begin on it anyway: one after another, ever less often while
    they meet the limit, and more once one has answered."""
    found = {}
    for hold in in_force:
        met, last_ms = hold_rows.met(connection, hold.bucket, now_ms)
        if not met:
            continue
        answered = sum(1 for one in run_rows.answered_since(connection, last_ms) if hold.is_on(one))
        living = sum(1 for run in live if run.started_ms >= last_ms and hold.is_on(ran_on(run)))
        rests = not answered and now_ms < last_ms + try_pause_ms(met)
        found[hold.bucket] = 0 if rests else max(0, ramp(answered) - living)
    return found


def close_ramped(connection: Connection, agents: Sequence[AgentSpec], now_ms: int) -> None:
    """End the care for buckets on which as many runs may live as the agents that draw on them have slots."""
    for one in probed(connection, (), now_ms):
        bucket = one.hold.bucket
        drawing = (agent for agent in agents if bucket.is_of(agent.name, agent.kind, agent.quota_account))
        if one.allowed >= sum(agent.max_concurrent for agent in drawing):
            hold_rows.close(connection, one.hold, now_ms)


def note_answer(connection: Connection, run: Run, agents: Sequence[AgentSpec], now_ms: int) -> None:
    """Note that the run's model was seen to answer: there is room for more."""
    if run_rows.change(connection, run, answered_ms=now_ms):
        close_ramped(connection, agents, now_ms)
