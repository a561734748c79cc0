"""The static facts about each kind of agent, by the kind's name in the configuration.

``agents/<kind>/kind.py`` starts and reads a kind; ``catalogue`` loads it, as only the daemon needs it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from claudomator_py.agents import a2a, acp, claude, codex, command, copilot, gemini, hub, opencode, qwen, simulated
from claudomator_py.domain.kind import KindInfo

# The order in which they are detected and listed.
_KINDS = (claude, gemini, codex, opencode, qwen, copilot, acp, command, simulated, a2a, hub)
KINDS: Mapping[str, KindInfo] = MappingProxyType({kind.INFO.name: kind.INFO for kind in _KINDS})


def info_of(kind: str) -> KindInfo:
    """Return the facts about the kind; the defaults for an unknown one."""
    return KINDS.get(kind) or KindInfo(kind)
