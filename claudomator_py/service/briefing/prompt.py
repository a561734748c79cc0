"""The prompt: what the agent reads."""

from claudomator_py.core.task import TaskSpec

_GO_ON = (
    "Go on with the task where you left off. You may have been interrupted in the midst of a step: look at what is "
    "there before you repeat or rely on it."
)
_CHANGED = "The task has changed since. It reads now:"
_ADDED = "The operator adds:"


def compose(spec: TaskSpec, words: str | None = None, handoff: str | None = None) -> str:
    """For a fresh conversation: the task's instructions and what is to be handed back.

    handoff: what the agent left that had the task before. words: what the operator said to a conversation that this one
    begins instead of.
    """
    return _joined([*_task(spec), *_words(words), *([handoff] if handoff is not None else [])])


def compose_further(spec: TaskSpec, told: TaskSpec, words: str | None = None) -> str:
    """For a conversation that goes on: to go on, and what is new to it. told: the content that it knows.

    words: what the operator adds.
    """
    changed = _task(spec) != _task(told)
    return _joined([_GO_ON, *([_CHANGED, *_task(spec)] if changed else []), *_words(words)])


def _task(spec: TaskSpec) -> list[str]:
    parts = [spec.instructions.rstrip()]
    if spec.expected_output:
        parts.append(f"Hand back: {spec.expected_output.strip()}")
    return parts


def _words(words: str | None) -> list[str]:
    return [_ADDED, words.strip()] if words is not None and words.strip() else []


def _joined(parts: list[str]) -> str:
    return "\n\n".join(parts) + "\n"
