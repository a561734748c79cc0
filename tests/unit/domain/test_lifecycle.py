"""The table of states: every arrow that the design names, and no other."""

import itertools
from collections.abc import Iterable
from typing import cast

import pytest
from hypothesis import given

from claudomator_py.domain.lifecycle import (
    STATE_NAMES,
    BecameReady,
    Cancelled,
    Cancelling,
    Completed,
    Deferred,
    Event,
    Failed,
    Failing,
    IllegalTransition,
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
    available_actions,
    transition,
)
from claudomator_py.domain.outcome import Reason
from tests.unit.domain.states import EVENTS, STATES

TERMINAL = (Completed, Failed, Cancelled)
# The table of states, as (state, event) -> the states that it may lead to. A Failing is listed with its reasons.
ANY_REASON = frozenset(Reason)
ARROWS: dict[tuple[type[State], type[Event]], type[State] | None] = {
    (Waiting, BecameReady): Queued,
    (Waiting, Deferred): Waiting,
    (Waiting, InputAsked): NeedsInput,
    (Waiting, Cancelling): Cancelled,
    (Queued, Deferred): Waiting,
    (Queued, Started): Running,
    (Queued, InputAsked): NeedsInput,
    (Queued, Cancelling): Cancelled,
    (Running, PhaseReached): Running,
    (Running, Succeeded): Completed,
    (Running, Retrying): Waiting,
    (Running, Requeued): Queued,
    (Running, InputAsked): NeedsInput,
    (Running, Cancelling): Cancelled,
    (NeedsInput, Cancelling): Cancelled,
}
FAILS_BY: dict[type[State], frozenset[Reason]] = {
    Waiting: frozenset({Reason.DEPENDENCY_FAILED, Reason.EXPIRED}),
    Queued: frozenset({Reason.REJECTED}),
    NeedsInput: frozenset({Reason.REJECTED, Reason.EXPIRED}),
    Running: ANY_REASON,
}
RENEWABLE = (Waiting, Queued, NeedsInput, Completed, Failed, Cancelled)


def expected(state: State, event: Event) -> State | None:
    """The state that the table says, built from the event's own data; None: no such arrow."""
    match event:
        case Renewed(into):
            return into if type(state) in RENEWABLE else None
        case Failing(reason):
            return Failed(reason) if reason in FAILS_BY.get(type(state), ()) else None
    if (type(state), type(event)) not in ARROWS:
        return None
    match event:
        case BecameReady():
            return Queued(QueueReason.READY, None)
        case Deferred(wait, until):
            return Waiting(wait, until)
        case Started():
            return Running(Phase.STARTING)
        case PhaseReached(phase):
            return Running(phase)
        case Succeeded():
            return Completed()
        case Retrying(until):
            return Waiting(WaitReason.BACKOFF, until)
        case Requeued(queue, until):
            return Queued(queue, until)
        case InputAsked(kind):
            return NeedsInput(kind)
        case Cancelling():
            return Cancelled()
    raise AssertionError(event)


@given(STATES, EVENTS)
def test_every_pair_is_an_arrow_of_the_table_or_refused(state: State, event: Event) -> None:
    wanted = expected(state, event)
    if wanted is not None:
        assert transition(state, event) == wanted
        return
    with pytest.raises(IllegalTransition) as refused:
        transition(state, event)
    assert (refused.value.state, refused.value.event) == (state, event)
    assert STATE_NAMES[type(state)] in str(refused.value)


def test_every_arrow_of_the_table_exists_with_every_reason() -> None:
    for state_type, reasons in FAILS_BY.items():
        state = example(state_type)
        for reason in Reason:
            if reason in reasons:
                assert transition(state, Failing(reason)) == Failed(reason)
            else:
                with pytest.raises(IllegalTransition):
                    transition(state, Failing(reason))


def test_an_end_is_left_by_renewal_only() -> None:
    events: Iterable[Event] = [
        *(BecameReady(), Started(), Succeeded(), Cancelling(), Retrying(1), Requeued()),
        *(Deferred(WaitReason.TIME, 1), PhaseReached(Phase.RUNNING), InputAsked(InputKind.LOGIN)),
        *(Failing(reason) for reason in Reason),
    ]
    for state_type, event in itertools.product(TERMINAL, events):
        with pytest.raises(IllegalTransition):
            transition(example(cast(type[State], state_type)), event)


def test_a_running_task_is_not_renewed_under_its_run() -> None:
    with pytest.raises(IllegalTransition):
        transition(Running(Phase.RUNNING), Renewed(Queued()))


def test_a_failure_without_a_reason_cannot_be_built() -> None:
    with pytest.raises(TypeError):
        Failed()  # type: ignore[call-arg]  # which is what is tried
    with pytest.raises(TypeError):
        Failing()  # type: ignore[call-arg]  # likewise


@given(STATES)
def test_actions_are_those_that_the_table_allows(state: State) -> None:
    actions = available_actions(state)
    revived_by_others = state == Failed(Reason.DEPENDENCY_FAILED)
    assert ("restart" in actions) == (type(state) not in (Queued, Running) and not revived_by_others)
    assert ("restart_force" in actions) == (type(state) is Running)
    assert ("cancel" in actions) == (not isinstance(state, TERMINAL))


def example(state_type: type[State]) -> State:
    """A state of that type."""
    if state_type is Waiting:
        return Waiting(WaitReason.TIME, 1)
    if state_type is NeedsInput:
        return NeedsInput(InputKind.QUESTION)
    if state_type is Failed:
        return Failed(Reason.TIMEOUT)
    return state_type()  # type: ignore[call-arg]  # the others have defaults for all of their data


@pytest.mark.parametrize("begun", [True, False])
def test_only_a_run_that_asks_for_leave_can_be_answered(begun: bool) -> None:
    actions = available_actions(NeedsInput(InputKind.APPROVAL), begun=begun)
    assert {"approve", "reject", "cancel", "restart"} == set(actions) - {"answer"}
    assert ("answer" in actions) is begun
