"""What starts and reads each kind of agent, by the name that the configuration gives it."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Protocol

from claudomator_py.agents.kinds import KINDS
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.ports import AgentKind, OutputReader


class AnyKind(AgentKind, Protocol):
    """A kind that can read a saved output of which nothing more is known, too."""

    def reader(self, request: LaunchRequest | None = None) -> OutputReader:
        """A reader for one run of it."""


def _load(name: str) -> AnyKind:
    kind: AnyKind = import_module(f"claudomator_py.agents.{name}.kind").KIND
    return kind


AGENT_KINDS: Mapping[str, AnyKind] = MappingProxyType({name: _load(name) for name in KINDS})
