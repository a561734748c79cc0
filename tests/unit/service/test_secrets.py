"""Which values are taken out of what runs wrote."""

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.core.agent import AgentSpec
from claudomator_py.core.redact import MARK
from claudomator_py.service.registry import AgentRegistry
from claudomator_py.service.surroundings.secrets import Secrets


def shown(text: str, environ: dict[str, str], task_env: dict[str, str] | None = None, **agent: object) -> str:
    spec = AgentSpec.model_validate({"name": "it", "kind": "claude", **agent})
    registry = AgentRegistry([spec], AGENT_KINDS, "/bin")
    return Secrets(registry, environ, own=("the-operators-token",)).redactor(task_env or {}).redact(text)


def test_what_is_passed_on_by_name_is_a_secret_whatever_its_name() -> None:
    assert shown("it is passed-on-value.", {"MINE": "passed-on-value"}, pass_env=("MINE",)) == f"it is {MARK}."
    assert shown("it is passed-on-value.", {"MINE": "passed-on-value"}) == "it is passed-on-value."


def test_names_tell_the_secrets_of_daemon_agent_and_task() -> None:
    text = "daemons-key agents-token tasks-password plain-value"
    found = shown(
        text,
        {"GEMINI_API_KEY": "daemons-key"},
        {"DB_PASSWORD": "tasks-password", "X": "plain-value"},
        env={"MY_TOKEN": "agents-token"},
    )
    assert found == f"{MARK} {MARK} {MARK} plain-value"


def test_the_daemons_own_token_is_one() -> None:
    assert shown("the-operators-token", {}) == MARK


def test_paths_numbers_and_bare_addresses_are_none() -> None:
    environ = {
        "A": "/run/user/1000/agent.sock",
        "B": "http://127.0.0.1:8899/v1",
        "C": "123456789",
        "D": "http://u:p@h/",
    }
    text = " ".join(environ.values())
    assert shown(text, environ, pass_env=tuple(environ)) == text.replace("http://u:p@h/", MARK)
