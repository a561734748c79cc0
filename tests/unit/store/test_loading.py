"""Instances of rows, in a program that has done nothing else yet: a daemon reads the runs that it adopts first."""

import subprocess
import sys

PROGRAM = """
from claudomator_py.store import run_rows
from claudomator_py.store.tables import RUN
values = [column.name for column in RUN.columns]
print(run_rows.run_from(values).task_id)
"""


def test_the_first_row_that_is_read_has_its_attributes() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("task_id\n", "")
