"""Whether the agents are logged in, as the doctor finds it: a file, a key, and which of them the daemon shares."""

import json
from pathlib import Path

import pytest

from claudomator_py.cli.doctor import Finding, Severity, agents
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.schema.agent_settings import default_agent

FILES = {
    "claude": ".claude/.credentials.json",
    "gemini": ".gemini/oauth_creds.json",
    "codex": ".codex/auth.json",
    "opencode": ".local/share/opencode/auth.json",
    "qwen": ".qwen/oauth_creds.json",
    "copilot": ".copilot/config.json",
}
KEYS = {
    "claude": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "codex": "OPENAI_API_KEY",
    "opencode": "OPENROUTER_API_KEY",
    "qwen": "OPENAI_API_KEY",
    "copilot": "COPILOT_GITHUB_TOKEN",
}


def _login(agent: AgentSpec, home: Path, **environ: str) -> Finding:
    findings = list(agents.login(agent, {"HOME": str(home), **environ}))
    assert len(findings) == 1
    return findings[0]


@pytest.mark.parametrize("kind", FILES)
def test_an_agent_without_login_or_key(tmp_path: Path, kind: str) -> None:
    finding = _login(default_agent(kind), tmp_path)
    assert finding.verdict is Severity.WARN
    assert "pass_env" in str(finding.remedy)


@pytest.mark.parametrize("kind", FILES)
def test_a_login_is_found_where_the_agent_keeps_it(tmp_path: Path, kind: str) -> None:
    file = tmp_path / FILES[kind]
    file.parent.mkdir(parents=True)
    file.write_text('{"token": "never shown"}')
    finding = _login(default_agent(kind), tmp_path, GOOGLE_CLOUD_PROJECT="ours")
    assert finding.verdict is Severity.OK
    assert str(file) in finding.detail
    assert "never shown" not in finding.detail


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_counts_only_if_the_agent_gets_it(tmp_path: Path, kind: str) -> None:
    agent, key = default_agent(kind), KEYS[kind]
    kept_back = _login(agent, tmp_path, **{key: "never shown"})
    assert (kept_back.verdict, f"pass_env: [{key}]" in str(kept_back.remedy)) == (Severity.WARN, True)
    passed = _login(agent.model_copy(update={"pass_env": (key,)}), tmp_path, **{key: "never shown"})
    given = _login(agent.model_copy(update={"env": {key: "never shown"}}), tmp_path)
    for finding in (passed, given):
        assert (finding.verdict, finding.detail) == (Severity.OK, f"it gets {key}; not verified against the service")


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_that_is_named_but_not_set_here_is_to_be_set_not_named_again(tmp_path: Path, kind: str) -> None:
    key = KEYS[kind]
    finding = _login(default_agent(kind).model_copy(update={"pass_env": (key,)}), tmp_path)
    assert (finding.verdict, finding.detail) == (Severity.WARN, f"{key} is not set here, and no login was found")
    assert finding.remedy == f"Set {key} where the daemon is started; one that has it already needs nothing."


def test_settings_of_gemini_that_say_how_to_log_in(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    settings = tmp_path / ".gemini/settings.json"
    settings.write_text(json.dumps({"security": {"auth": {"selectedType": "vertex-ai"}}}))
    assert _login(default_agent("gemini"), tmp_path).verdict is Severity.OK
    settings.write_text("no JSON")
    assert _login(default_agent("gemini"), tmp_path).verdict is Severity.WARN


def test_a_login_of_gemini_that_may_be_an_individual_account_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/oauth_creds.json").write_text("{}")
    finding = _login(default_agent("gemini"), tmp_path)
    assert finding.verdict is Severity.WARN
    assert "2026-06-18" in finding.detail
    assert "paid key" in str(finding.remedy)
    assert _login(default_agent("gemini"), tmp_path, GOOGLE_CLOUD_PROJECT="ours").verdict is Severity.OK
    key = default_agent("gemini").model_copy(update={"env": {"GEMINI_API_KEY": "never shown"}})
    assert _login(key, tmp_path).verdict is Severity.OK


@pytest.mark.parametrize(
    ("kind", "folder", "file", "variable"),
    [
        ("claude", ".claude", ".credentials.json", "CLAUDE_CONFIG_DIR"),
        ("codex", ".codex", "auth.json", "CODEX_HOME"),
    ],
)
def test_a_login_that_the_daemon_shares_is_told(
    tmp_path: Path, kind: str, folder: str, file: str, variable: str
) -> None:
    for place in (folder, "own"):
        (tmp_path / place).mkdir()
        (tmp_path / place / file).write_text("{}")
    shared = _login(default_agent(kind), tmp_path)
    assert (shared.verdict, variable in shared.detail) == (Severity.OK, True)
    own = default_agent(kind).model_copy(update={"env": {variable: str(tmp_path / "own")}})
    assert variable not in _login(own, tmp_path).detail


def test_an_agent_that_needs_no_login(tmp_path: Path) -> None:
    assert list(agents.login(default_agent("simulated"), {"HOME": str(tmp_path)})) == []


# --- the service ------------------------------------------------------------------------------------------------------
