"""What doctor says of the logins of agents over ACP."""

from pathlib import Path

import pytest

from claudomator_py.cli.doctor import Finding, Severity, agents
from claudomator_py.domain.agent import AgentSpec


def _login(agent: AgentSpec, home: Path) -> Finding:
    (finding,) = agents.login(agent, {"HOME": str(home)})
    return finding


@pytest.mark.parametrize(
    ("program", "file", "key"),
    [
        ("gemini", ".gemini/oauth_creds.json", "GEMINI_API_KEY"),
        ("claude-agent-acp", ".claude/.credentials.json", "ANTHROPIC_API_KEY"),
        ("codex-acp", ".codex/auth.json", "OPENAI_API_KEY"),
        ("copilot", ".copilot/config.json", "GH_TOKEN"),
        ("vibe-acp", ".vibe/.env", "MISTRAL_API_KEY"),
        ("cline", ".cline/data/settings/providers.json", None),
    ],
)
def test_an_agent_over_acp_is_looked_at_by_what_its_program_is(
    tmp_path: Path, program: str, file: str, key: str | None
) -> None:
    agent = AgentSpec(name="mine", kind="acp", command=(program,))
    without = _login(agent, tmp_path)
    assert without.verdict is Severity.WARN
    assert (agent.info.login.command if agent.info.login else "") in (without.remedy or "")
    if key is not None:
        assert _login(agent.model_copy(update={"env": {key: "k"}}), tmp_path).verdict is Severity.OK
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("{}")
    assert _login(agent, tmp_path).verdict is Severity.OK


def test_of_an_agent_that_nothing_is_known_of_nothing_is_said(tmp_path: Path) -> None:
    assert not list(agents.login(AgentSpec(name="mine", kind="acp", command=("mine",)), {"HOME": str(tmp_path)}))
    finding = _login(AgentSpec(name="goose", kind="acp", command=("goose", "acp")), tmp_path)
    assert (finding.verdict, finding.remedy) == (Severity.OK, None)
    assert "goose configure" in finding.detail
