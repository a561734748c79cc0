"""SQLModel is imported without SQLAlchemy's ORM, where a version of it allows that."""

import subprocess
import sys

_OTHER_VERSION = """
import sys

class Picky:
    def find_spec(self, name, path=None, target=None):
        orm = sys.modules.get("sqlalchemy.orm")
        if name == "sqlmodel.main" and orm is not None and not hasattr(orm, "__file__"):
            raise ImportError(name)

sys.meta_path.insert(0, Picky())
"""
_IMPORT = """
import sys
from claudomator_py.store.tables import TASK, Task
print(TASK.name, Task.table is TASK, [name for name in sys.modules if name.startswith("sqlalchemy.orm")] == [])
from sqlalchemy.orm import Session
print(Session.__module__)
"""


def _output(code: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    ).stdout.splitlines()


def test_tables_need_no_orm_and_whoever_needs_it_gets_it() -> None:
    assert _output(_IMPORT) == ["task True True", "sqlalchemy.orm.session"]


def test_a_version_that_needs_the_orm_gets_it() -> None:
    assert _output(_OTHER_VERSION + _IMPORT) == ["task True False", "sqlalchemy.orm.session"]
