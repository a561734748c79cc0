"""How many slots an account has whose login is refreshed by whoever runs on it."""

import pytest

from claudomator_py.domain.agent import AgentSpec

EVERYWHERE = ("local", "cluster")


@pytest.mark.parametrize(
    ("fields", "environ", "slots"),
    [
        ({"kind": "claude", "hosts": EVERYWHERE}, {}, 1),
        ({"kind": "codex", "hosts": ("cluster",)}, {"OPENAI_API_KEY": "a"}, 1),
        ({"kind": "codex", "hosts": ("cluster",), "pass_env": ("OPENAI_API_KEY",)}, {}, 1),
        ({"kind": "codex", "hosts": ("cluster",), "pass_env": ("OPENAI_API_KEY",)}, {"OPENAI_API_KEY": "a"}, 8),
        ({"kind": "claude", "hosts": EVERYWHERE, "env": {"ANTHROPIC_API_KEY": "a"}}, {}, 8),
        ({"kind": "claude"}, {}, 8),
        ({"kind": "command", "hosts": EVERYWHERE, "command": ("true",)}, {}, 8),
    ],
)
def test_a_login_that_several_nodes_would_refresh_has_one(
    fields: dict[str, object], environ: dict[str, str], slots: int
) -> None:
    agent = AgentSpec.model_validate({"name": "one", "max_concurrent": 8, **fields})
    assert agent.limited_by_login(environ).max_concurrent == slots
