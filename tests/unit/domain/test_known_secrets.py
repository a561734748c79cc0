"""Which values are taken for secrets, by their names and by what the configuration says of them."""

from pathlib import Path

import pytest

from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.known_secrets import is_secret_name, secrets_in, secrets_of
from claudomator_py.schema.settings import Settings


def settings(document: dict[str, object]) -> Settings:
    parsed = parse_settings(document)
    assert isinstance(parsed, Settings), parsed
    return parsed


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "apiKey", "GITHUB_PAT", "MYSQL_PWD", "DB_PASS", "AUTHORIZATION", "SENTRY_DSN", "X_TOKEN"],
)
def test_names_that_tell_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["GIT_AUTHOR_NAME", "TOKENIZERS_PARALLELISM", "KEYBOARD", "PWD", "PATH", "COMPASS"])
def test_names_that_tell_none(name: str) -> None:
    assert not is_secret_name(name)


def test_places_and_numbers_are_none_and_passwords_in_urls_are(tmp_path: Path) -> None:
    environ = {
        "XAUTHORITY": str(tmp_path),
        "TOKEN_FILE": "/not/there",
        "AUTH_URL": "http://127.0.0.1:8899/v1",
        "MAX_TOKENS": "123456789",
        "DATABASE_URL": "postgresql://me:p%40ss-word@host/db",
        "AWS_SECRET": "/abc+def/0123456789abcdeFG",
    }
    assert secrets_in(environ) == {"p%40ss-word", "p@ss-word", "/abc+def/0123456789abcdeFG"}


def test_the_configuration_tells_what_is_handed_on_and_where_notices_go() -> None:
    environ = {
        "MINE": "passed-on-value",
        "HOOK": "https://hooks.example/services/T0/B0/0123456789",
        "SIGN": "signing-secret",
        "ASKED": "classifiers-key",
        "OTHER": "nobody-has-it",
        "VECTORS": "encoders-key",
        "SPANS": "authorization=Bearer%20collectors-key,x-team=the-shop",
    }
    result = settings(
        {
            "database": "postgresql://me:database-pw@host/db",
            "agents": {
                "claude": {
                    "pass_env": ["MINE"],
                    "env": {"MY_TOKEN": "agents-token", "COLOUR": "turquoise"},
                    "extra_args": ["--api-key=in-an-argument", "--model", "sonnet-of-today"],
                }
            },
            "classifier": {"kind": "openai", "model": "m", "base_url": "http://x", "api_key_env": "ASKED"},
            "routing": {
                "encoder": {"kind": "openai", "base_url": "http://u:encoder-pw@host/v1", "api_key_env": "VECTORS"}
            },
            "telemetry": {"endpoint": "http://127.0.0.1:4318", "headers_env": "SPANS"},
            "notify": {
                "hook": {"url_env": "HOOK", "secret_env": "SIGN"},
                "own": {"url": "https://ntfy.example/my-private-topic"},
                "it": {"kind": "command", "command": ["tell", "--token", "in-a-command"]},
            },
        }
    )
    assert secrets_of(result, result.agents.values(), environ) == {
        "passed-on-value",
        "agents-token",
        "in-an-argument",
        "classifiers-key",
        "https://hooks.example/services/T0/B0/0123456789",
        "services/T0/B0/0123456789",
        "signing-secret",
        "https://ntfy.example/my-private-topic",
        "my-private-topic",
        "in-a-command",
        "database-pw",
        "encoders-key",
        "encoder-pw",
        "authorization=Bearer%20collectors-key,x-team=the-shop",
        "Bearer%20collectors-key",
        "Bearer collectors-key",
        "collectors-key",
        "the-shop",
    }
