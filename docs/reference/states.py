"""The page of a task's states, found out by asking the table of transitions for every state and event."""

from collections.abc import Iterator
from typing import get_args

from claudomator_py.domain import lifecycle
from claudomator_py.domain.lifecycle import STATE_NAMES, IllegalTransition, InputKind, Phase, QueueReason, WaitReason
from claudomator_py.domain.outcome import Reason
from docs.reference.markdown import code, first_sentence, page, table

_INTRODUCTION = """
A task is in exactly one state. A state carries its data, so a FAILED without a reason cannot be constructed. Only the
transitions in the table are possible; [the architecture](../architecture.md) has a diagram of them.
"""
_MEANINGS = {
    WaitReason: "`reason` of WAITING",
    QueueReason: "`reason` of QUEUED, as stored; on request, the daemon gives the current obstacle",
    Phase: "`phase` of RUNNING",
    InputKind: "`reason` of NEEDS_INPUT",
}
_READY = (lifecycle.Waiting(WaitReason.TIME, 0), lifecycle.Queued(), lifecycle.NeedsInput(InputKind.QUESTION))


def states() -> str:
    """The states, their data, and every transition there is."""
    rows = [
        (code(name), first_sentence(state.__doc__), ", ".join(map(code, _actions(state)))) for state, name in _named()
    ]
    data = [(said, " ".join(code(value.value) for value in kind)) for kind, said in _MEANINGS.items()]
    return page(
        "States",
        _INTRODUCTION,
        table(("state", "meaning", "what you can do"), rows),
        table(("data", "values"), data),
        "The `reason` of FAILED is a [reason code](reason-codes.md); that of WAITING and QUEUED is one word for "
        "[what keeps it from starting](obstacles.md).",
        "## Transitions",
        table(("from", "event", "to"), _transitions()),
    )


def _named() -> list[tuple[type[lifecycle.State], str]]:
    return list(STATE_NAMES.items())


def _actions(state: type[lifecycle.State]) -> tuple[str, ...]:
    found = (action for example in _examples(state) for action in lifecycle.available_actions(example))
    return tuple(dict.fromkeys(found))


def _examples(state: type[lifecycle.State]) -> list[lifecycle.State]:
    if state is lifecycle.Waiting:
        return [lifecycle.Waiting(WaitReason.TIME, 0)]
    if state is lifecycle.NeedsInput:
        return [lifecycle.NeedsInput(kind) for kind in (InputKind.QUESTION, InputKind.APPROVAL)]
    if state is lifecycle.Failed:
        return [lifecycle.Failed(Reason.AGENT_ERROR)]
    return [state()]  # type: ignore[call-arg]  # the others have defaults for all of their data


def _events(event: type[lifecycle.Event]) -> list[lifecycle.Event]:
    """Examples of an event, for each value that the table may tell apart."""
    if event is lifecycle.Deferred:
        return [lifecycle.Deferred(WaitReason.TIME, 0)]
    if event is lifecycle.PhaseReached:
        return [lifecycle.PhaseReached(Phase.RUNNING)]
    if event is lifecycle.Failing:
        return [lifecycle.Failing(reason) for reason in Reason]
    if event is lifecycle.Retrying:
        return [lifecycle.Retrying(0)]
    if event is lifecycle.InputAsked:
        return [lifecycle.InputAsked(InputKind.QUESTION)]
    if event is lifecycle.Renewed:
        return [lifecycle.Renewed(into) for into in _READY]
    if event is lifecycle.Answered:
        return [lifecycle.Answered(into) for into in _READY if isinstance(into, lifecycle.Waiting | lifecycle.Queued)]
    return [event()]  # type: ignore[call-arg]  # the others have no data, or defaults for all of it


def _transitions() -> Iterator[list[str]]:
    for state, name in _named():
        for event in get_args(lifecycle.Event):
            reached: list[str] = []
            why: list[str] = []
            for example in _events(event):
                try:
                    after = lifecycle.transition(_examples(state)[0], example)
                except IllegalTransition:
                    continue
                reached.append(STATE_NAMES[type(after)])
                if isinstance(example, lifecycle.Failing):
                    why.append(example.reason)
            if reached:
                only = f" ({', '.join(map(code, why))})" if 0 < len(why) < len(Reason) else ""
                to = ", ".join(dict.fromkeys(map(code, reached)))
                yield [code(name), first_sentence(event.__doc__) + only, to]
