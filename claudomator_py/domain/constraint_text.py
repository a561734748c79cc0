"""What rules leave open for a task, in sentences."""

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.routing import Constraints, ToolLimits


def constraint_sentences(left: Constraints) -> list[str]:
    """What is not open to the task, each as a sentence; none where everything is."""
    found = [f"Only on {' or '.join(listed)}." for listed in left.one_of]
    if left.excluded_agents:
        found.append(f"Not on {', '.join(left.excluded_agents)}.")
    if left.tier_floor is not None or left.tier_ceiling is not None:
        found.append(f"Tier from {left.tier_floor or Tier.FAST} to {left.tier_ceiling or Tier.POWERFUL}.")
    if left.tools is not None:
        found.append(f"Tools: {_tools(left.tools)}.")
    if left.isolated:
        found.append("In a work tree of its own.")
    found += [f"At most {cap.most} at a time by rule {cap.rule}." for cap in left.caps]
    return found


def _tools(limits: ToolLimits) -> str:
    parts = [] if limits.mode is None else [f"mode {limits.mode} at most"]
    if limits.allowed_tools is not None:
        parts.append(f"only {', '.join(limits.allowed_tools) or 'none'} without asking")
    if limits.disallowed_tools:
        parts.append(f"not {', '.join(limits.disallowed_tools)}")
    return "; ".join(parts)
