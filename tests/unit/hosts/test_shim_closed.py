"""The shim is closed: it needs nothing but the standard library, and loads nothing once it runs."""

import subprocess
import sys
from pathlib import Path

import pytest

INSTALLATION = Path(__file__).parents[3]
LIST = """
import sys
sys.path.append(sys.argv[1])
import claudomator_py.hosts.shim.{module}
print(*sorted(sys.modules))
"""


@pytest.mark.parametrize("module", ["main", "forkserver"])
def test_it_imports_nothing_of_ours_outside_itself(module: str) -> None:
    command = [sys.executable, "-I", "-S", "-c", LIST.format(module=module), str(INSTALLATION)]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    ours = {name for name in loaded if name.startswith("claudomator_py")}
    shim = "claudomator_py.hosts.shim"
    assert {name for name in ours if not name.startswith(shim)} == {"claudomator_py", "claudomator_py.hosts"}
    others = {name.partition(".")[0] for name in loaded} - {"claudomator_py", "__main__", "sys"}
    assert others - sys.stdlib_module_names == set()


SLOW = "collections dataclasses enum functools inspect json logging pathlib re signal subprocess threading typing"


@pytest.mark.parametrize("slow", SLOW.split())
def test_it_leaves_out_what_is_slow_to_import(slow: str) -> None:
    command = [sys.executable, "-I", "-S", "-c", LIST.format(module="main"), str(INSTALLATION)]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert slow not in loaded
