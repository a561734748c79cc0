"""The contract on shapes and commands covers every module of commands: one that it does not name is held to nothing."""

import tomllib
from pathlib import Path

import claudomator_py.resources

_ROOT = Path(claudomator_py.resources.__file__).parent


def test_each_resource_is_named_with_its_shapes_and_commands() -> None:
    project = tomllib.loads((_ROOT.parents[1] / "pyproject.toml").read_text())
    (contract,) = (
        contract for contract in project["tool"]["importlinter"]["contracts"] if contract["id"] == "resources-by-shape"
    )
    named = set(contract["source_modules"])
    commands = {f"{file.parent.name}.{file.stem}" for file in _ROOT.glob("*/cli_*.py")}
    assert {f"claudomator_py.resources.{module}" for module in ("*", "*.cli", *commands)} <= named
