"""The agents that there are: those of the configuration, and those that are found later."""

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.environment.registry import AgentRegistry
from tests.fakes.agents import CLAUDE, CODEX, ScriptedKind


def test_an_agent_that_is_found_later_is_added_and_none_is_replaced_or_lost() -> None:
    registry = AgentRegistry([CLAUDE], {kind: ScriptedKind(kind) for kind in ("claude", "codex")}, "/bin")
    registry.refresh([AgentSpec(name="claude", kind="codex"), CODEX])
    assert list(registry.agents) == [CLAUDE, CODEX]
    assert set(registry.found) == {"claude", "codex"}
    registry.refresh()
    assert list(registry.agents) == [CLAUDE, CODEX]
    registry.replace([CODEX], {})
    registry.refresh()
    assert list(registry.agents) == [CODEX]
