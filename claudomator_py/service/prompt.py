"""The prompt: what the agent reads."""

from claudomator_py.core.task import TaskSpec


def compose(spec: TaskSpec) -> str:
    """The task's instructions and what is to be handed back."""
    parts = [spec.instructions.rstrip()]
    if spec.expected_output:
        parts.append(f"Hand back: {spec.expected_output.strip()}")
    return "\n\n".join(parts) + "\n"
