"""What the daemon knows to be secret is taken out, and what a task brings only where that task is concerned."""

from claudomator_py.domain.redaction import MARK
from claudomator_py.environment.secrets import Secrets


def test_what_is_added_later_is_found_and_what_was_known_stays_known() -> None:
    secrets = Secrets(["the-operators-token"])
    secrets.add(["key-of-the-reload"])
    assert secrets.redact("the-operators-token key-of-the-reload") == f"{MARK} {MARK}"
    assert secrets.clean({"a": ["key-of-the-reload"]}) == {"a": [MARK]}


def test_the_variables_of_a_task_are_secrets_of_that_task_alone() -> None:
    secrets = Secrets(["the-operators-token"])
    redactor = secrets.redactor({"DB_PASSWORD": "tasks-password", "COLOUR": "turquoise"})
    assert redactor.redact("tasks-password the-operators-token turquoise") == f"{MARK} {MARK} turquoise"
    assert secrets.redact("tasks-password") == "tasks-password"


def test_the_token_of_a_run_is_known_where_that_run_is_concerned() -> None:
    secrets = Secrets(run_token=lambda run_id: f"token-of-run-{run_id}")
    assert secrets.redactor({}, "r1").redact("token-of-run-r1 token-of-run-r2") == f"{MARK} token-of-run-r2"
    assert secrets.redactor({}).redact("token-of-run-r1") == "token-of-run-r1"


def test_a_redactor_is_made_once_for_what_it_takes_out() -> None:
    secrets = Secrets()
    assert secrets.redactor({"MY_KEY": "one-value"}) is secrets.redactor({"MY_KEY": "one-value", "X": "y"})
    assert secrets.redactor({}) is secrets.redactor({"X": "another-value"})
    before = secrets.redactor({"MY_KEY": "one-value"})
    secrets.add(["of-a-reload"])
    assert secrets.redactor({"MY_KEY": "one-value"}) is not before
    assert secrets.redactor({"MY_KEY": "one-value"}).redact("of-a-reload") == MARK
