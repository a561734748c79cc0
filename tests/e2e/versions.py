"""Versions of the program, each in a place of its own, as pip installs a release."""

import re
import shutil
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from claudomator_py.store.migrations import SCHEMA
from tests.e2e.site import REPOSITORY

NEWER = "99.0.0"
NEWER_SCHEMA = "9999_newer"
ADDED = "added_by_newer"
# Adds a column, and changes one, for which SQLite has to build the table anew.
_MIGRATION = f'''
import sqlalchemy as sa
from alembic import op

revision = "{NEWER_SCHEMA}"
down_revision = "{SCHEMA}"


def upgrade() -> None:
    op.add_column("task", sa.Column("{ADDED}", sa.String(), nullable=True))
    with op.batch_alter_table("run", recreate="always") as batch:
        batch.alter_column("model", existing_type=sa.String(), type_=sa.Text())
        batch.add_column(sa.Column("{ADDED}", sa.Integer(), nullable=False, server_default="7"))
'''


@dataclass(frozen=True, slots=True)
class Version:
    """An installed version. place: the folder that it is in, with its command; schema: its newest migration."""

    place: Path
    schema: str

    @property
    def environ(self) -> dict[str, str]:
        """What a process needs to be of this version."""
        return {"PYTHONPATH": str(self.place)}

    def remove(self) -> None:
        """Take it away, as an upgrade in place does. ``put_back`` undoes it."""
        self.place.rename(self.place.with_suffix(".away"))

    def put_back(self) -> None:
        """Install it again, if it was removed."""
        away = self.place.with_suffix(".away")
        if away.exists():
            away.rename(self.place)


def this_version(folder: Path) -> Version:
    """This source and its metadata, where pip would put them, with what was compiled of it.

    What a wheel carries is proven by ``tests/integration/systemd/test_units.py``.
    """
    place = folder / "this"
    shutil.copytree(REPOSITORY / "claudomator_py", place / "claudomator_py")
    (metadata,) = Path(str(distribution("claudomator-py").locate_file(""))).glob("claudomator_py-*.dist-info")
    shutil.copytree(metadata, place / metadata.name)
    return Version(place, SCHEMA)


def newer_version(this: Version, folder: Path) -> Version:
    """One more release: another number, and one more migration, which changes tables that hold rows."""
    place = shutil.copytree(this.place, folder / "newer")
    package = place / "claudomator_py"
    (package / "store" / "migrations" / "versions" / f"{NEWER_SCHEMA}.py").write_text(_MIGRATION)
    _replace(package / "store" / "migrations" / "__init__.py", r'^SCHEMA = ".*"$', f'SCHEMA = "{NEWER_SCHEMA}"')
    _replace(package / "__init__.py", r'^__version__ = ".*"$', f'__version__ = "{NEWER}"')
    (metadata,) = place.glob("claudomator_py-*.dist-info/METADATA")
    _replace(metadata, "^Version: .*$", f"Version: {NEWER}")
    metadata.parent.rename(metadata.parent.with_name(f"claudomator_py-{NEWER}.dist-info"))
    return Version(place, NEWER_SCHEMA)


def _replace(file: Path, pattern: str, line: str) -> None:
    text, count = re.subn(pattern, line, file.read_text(), flags=re.MULTILINE)
    assert count == 1, f"{file} has no line like {pattern}"
    file.write_text(text)
