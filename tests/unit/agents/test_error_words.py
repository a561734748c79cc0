"""The words of errors: each rule of the data files by its own examples."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from claudomator_py.agents import ending
from claudomator_py.domain.outcome import Reason
from claudomator_py.values import toml_data

_PACKAGE = "claudomator_py.agents"


def _rules() -> Iterator[Any]:
    kinds = [folder.name for folder in files(_PACKAGE).iterdir() if folder.joinpath("errors.toml").is_file()]
    for package in (_PACKAGE, *(f"{_PACKAGE}.{kind}" for kind in sorted(kinds))):
        for number, rule in enumerate(toml_data(package, "errors.toml")["rules"]):
            yield pytest.param(package, number, rule["is"], rule["is_not"], id=f"{package.rpartition('.')[2]}-{number}")


@pytest.mark.parametrize(("package", "number", "example", "counterexample"), list(_rules()))
def test_a_rule_matches_its_example_and_not_its_counterexample(
    package: str, number: int, example: str, counterexample: str
) -> None:
    words, _ = ending.rules_of(package)[number]
    assert words.search(example)
    assert not words.search(counterexample)


@pytest.mark.parametrize(
    "message",
    [
        "Límite de uso alcanzado.", "Has alcanzado tu límite de mensajes.", "Limite d'utilisation atteinte.",
        "Limite raggiunto.", "Limite atingido.", "Limiet bereikt.", "Limit został przekroczony.", "Лимит исчерпан.",
        "使用量已达上限。请于 3:00 后重试", "利用上限に達しました。", "사용 한도를 초과했습니다.",
        "Kontingent aufgebraucht",
    ],
)  # fmt: skip
def test_a_used_up_quota_is_recognised_in_other_languages(message: str) -> None:
    assert ending.classify(message, (), 0).reason is Reason.RATE_LIMITED


@pytest.mark.parametrize(
    "message",
    [
        "tool call failed: tests/test_rate_limit.py:12 raised AssertionError",
        "ENOENT: no such file or directory, open '/srv/shop/src/login.ts'",
        "cannot parse src/too_many_requests.go", "Error reading billing/insufficient_quota.json",
        "the patch of network.py does not apply",
    ],
)  # fmt: skip
def test_the_name_of_a_file_that_a_task_is_about_says_nothing_of_the_service(message: str) -> None:
    assert ending.classify(message, (), 0).reason is Reason.AGENT_ERROR


def test_a_file_of_settings_that_is_wrong_is_still_named() -> None:
    assert ending.classify("Error loading config.toml: x", ending.error_rules("codex"), 0).reason is (
        Reason.BAD_INVOCATION
    )
