"""All kinds of agents, by the name that the configuration gives them."""

from collections.abc import Mapping
from types import MappingProxyType

from claudomator_py.agents.claude import Claude
from claudomator_py.agents.codex import Codex
from claudomator_py.agents.command import Command
from claudomator_py.agents.gemini import Gemini
from claudomator_py.agents.opencode import Opencode
from claudomator_py.agents.simulated import Simulated

AnyKind = Claude | Codex | Command | Gemini | Opencode | Simulated

_KINDS: tuple[AnyKind, ...] = (Claude(), Gemini(), Codex(), Opencode(), Command(), Simulated())
AGENT_KINDS: Mapping[str, AnyKind] = MappingProxyType({kind.kind: kind for kind in _KINDS})
