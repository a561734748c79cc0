"""The words of errors: each rule of the data files by its own examples."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from claudomator_py.agents import ending
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
