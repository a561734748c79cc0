"""Any state and any event, for property tests."""

from hypothesis import strategies as st

from claudomator_py.domain.lifecycle import (
    BecameReady,
    Cancelled,
    Cancelling,
    Completed,
    Deferred,
    Event,
    Failed,
    Failing,
    InputAsked,
    InputKind,
    NeedsInput,
    Phase,
    PhaseReached,
    Queued,
    QueueReason,
    Renewed,
    Requeued,
    Retrying,
    Running,
    Started,
    State,
    Succeeded,
    Waiting,
    WaitReason,
)
from claudomator_py.domain.outcome import Reason

TIMES = st.none() | st.integers(0, 2**53)
READY: st.SearchStrategy[Waiting | Queued | NeedsInput] = (
    st.builds(Waiting, st.sampled_from(WaitReason), TIMES)
    | st.builds(Queued, st.sampled_from(QueueReason), TIMES)
    | st.builds(NeedsInput, st.sampled_from(InputKind))
)
STATES: st.SearchStrategy[State] = (
    READY
    | st.builds(Running, st.sampled_from(Phase))
    | st.builds(Failed, st.sampled_from(Reason))
    | st.sampled_from([Completed(), Cancelled()])
)
EVENTS: st.SearchStrategy[Event] = (
    st.builds(BecameReady)
    | st.builds(Started)
    | st.builds(Succeeded)
    | st.builds(Cancelling)
    | st.builds(Deferred, st.sampled_from(WaitReason), TIMES)
    | st.builds(PhaseReached, st.sampled_from(Phase))
    | st.builds(Failing, st.sampled_from(Reason))
    | st.builds(Retrying, st.integers(0, 2**53))
    | st.builds(Requeued, st.sampled_from(QueueReason), TIMES)
    | st.builds(InputAsked, st.sampled_from(InputKind))
    | st.builds(Renewed, READY)
)
