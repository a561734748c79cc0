"""The contract on shapes and commands covers every resource: one that it does not name is held to nothing."""

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
    packages = {file.parent.name for file in _ROOT.glob("*/__init__.py")}
    commands = {f"{file.parent.name}.{file.stem}" for file in _ROOT.glob("*/cli_*.py")}
    assert "claudomator_py.resources.*.cli" in named
    assert {f"claudomator_py.resources.{package}" for package in packages | commands} <= named
