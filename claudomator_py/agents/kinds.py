"""All kinds of agents, by the name that the configuration gives them: what everybody may know of each.

What starts and reads a kind is in ``agents/<kind>/kind.py``, which ``catalogue`` loads: only the daemon needs that.
"""

from collections.abc import Mapping
from types import MappingProxyType

from claudomator_py.agents import a2a, acp, claude, codex, command, copilot, gemini, hub, opencode, qwen, simulated
from claudomator_py.domain.kind import KindInfo

# In this order they are looked for, and named to people.
_KINDS = (claude, gemini, codex, opencode, qwen, copilot, acp, command, simulated, a2a, hub)
KINDS: Mapping[str, KindInfo] = MappingProxyType({kind.INFO.name: kind.INFO for kind in _KINDS})


def info_of(kind: str) -> KindInfo:
    """Return what is known of the kind; of one that is none, nothing."""
    return KINDS.get(kind) or KindInfo(kind)
