"""All kinds of agents, by the name that the configuration gives them: what everybody may know of each.

What starts and reads a kind is in ``agents/<kind>/kind.py``, which ``catalogue`` loads: only the daemon needs that.
"""

from collections.abc import Mapping
from types import MappingProxyType

from claudomator_py.agents import a2a, claude, codex, command, gemini, opencode, qwen, simulated
from claudomator_py.domain.kind import KindInfo

# In this order they are looked for, and named to people.
_INFOS = (claude.INFO, gemini.INFO, codex.INFO, opencode.INFO, qwen.INFO, command.INFO, simulated.INFO, a2a.INFO)
KINDS: Mapping[str, KindInfo] = MappingProxyType({info.name: info for info in _INFOS})


def info_of(kind: str) -> KindInfo:
    """What is known of the kind; of one that is none, nothing."""
    return KINDS.get(kind) or KindInfo(kind)
