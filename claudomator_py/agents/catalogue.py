"""The adapter of each kind of agent, by the kind's name in the configuration."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from claudomator_py.agents.kinds import KINDS
from claudomator_py.ports import AgentKind


class _Kinds(Mapping[str, AgentKind]):
    """All kinds, each imported on first use: most daemons need one or two."""

    def __getitem__(self, name: str) -> AgentKind:
        if name not in KINDS:
            raise KeyError(name)
        return _imported(name)

    def __contains__(self, name: object) -> bool:
        return name in KINDS

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)


@cache
def _imported(name: str) -> AgentKind:
    kind: AgentKind = import_module(f"claudomator_py.agents.{name}.kind").KIND
    return kind


AGENT_KINDS: Mapping[str, AgentKind] = _Kinds()
