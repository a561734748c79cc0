"""The prompt: what the agent reads."""

from collections.abc import Sequence

from claudomator_py.core.conversation import Exchange
from claudomator_py.core.task import TaskSpec
from claudomator_py.service.briefing.asking import HOW_TO_ASK, told_afresh
from claudomator_py.service.briefing.asking import told as told_of

_GO_ON = (
    "Go on with the task where you left off. You may have been interrupted in the midst of a step: look at what is "
    "there before you repeat or rely on it."
)
_CHANGED = "The task has changed since. It reads now:"
_ADDED = "The operator adds:"
_SAID = "This is the task:"


def compose(
    spec: TaskSpec,
    words: str | None = None,
    handoff: str | None = None,
    *,
    heard: Sequence[Exchange] = (),
    may_ask: bool = False,
) -> str:
    """For a fresh conversation: the task's instructions and what is to be handed back.

    handoff: what the agent left that had the task before. words: what the operator said to a conversation that this one
    begins instead of; heard: what was asked in it, and said to that. may_ask: whether it can ask the operator.
    """
    note = [] if handoff is None else [handoff]
    how_to_ask = [HOW_TO_ASK] if may_ask else []
    return _joined([*_task(spec), *_words(words), *told_afresh(heard), *note, *how_to_ask])


def compose_answer(exchange: Exchange) -> str:
    """For a conversation that goes on with what the operator said to what was asked in it."""
    return _joined(told_of(exchange))


def compose_further(spec: TaskSpec, told: TaskSpec, words: str | None = None) -> str:
    """For a conversation that goes on: to go on, and what is new to it. told: the content that it knows.

    words: what the operator adds.
    """
    changed = _task(spec) != _task(told)
    return _joined([_GO_ON, *([_CHANGED, *_task(spec)] if changed else []), *_words(words)])


def compose_next(spec: TaskSpec, words: str | None = None, *, again: bool = False) -> str:
    """For a task that goes on in the conversation of another one: its own instructions, as a further turn.

    again: a run of it was in there before, and may have heard them.
    """
    return _joined([*([_GO_ON, _SAID] if again else []), *_task(spec), *_words(words)])


def _task(spec: TaskSpec) -> list[str]:
    parts = [spec.instructions.rstrip()]
    if spec.expected_output:
        parts.append(f"Hand back: {spec.expected_output.strip()}")
    return parts


def _words(words: str | None) -> list[str]:
    return [_ADDED, words.strip()] if words is not None and words.strip() else []


def _joined(parts: list[str]) -> str:
    return "\n\n".join(parts) + "\n"
