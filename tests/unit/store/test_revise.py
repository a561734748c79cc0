"""What a developer is given as the next migration."""

import shutil
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Integer, MetaData, Table

from claudomator_py.store.migrate import alembic_config
from claudomator_py.store.migrations import SCHEMA, revise
from claudomator_py.store.stored_json import ShownJson, ShownText, StoredJson
from claudomator_py.store.tables import Task


def test_the_next_one_is_numbered_behind_the_newest_and_names_plain_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, versions = alembic_config(), tmp_path / "versions"
    shutil.copytree(ScriptDirectory.from_config(config).versions, versions)
    config.set_main_option("version_locations", str(versions))
    monkeypatch.setattr(revise, "alembic_config", lambda: config)
    tables = MetaData(naming_convention=Task.metadata.naming_convention)
    for table in Task.metadata.tables.values():
        table.to_metadata(tables)
    texts = (Column("said", ShownText, nullable=False), Column("found", ShownJson), Column("kept", StoredJson))
    Table("note", tables, Column("id", Integer, primary_key=True), *texts)
    monkeypatch.setattr(Task, "metadata", tables)

    file = revise.revise("Notes of a task")

    text = file.read_text()
    assert file.name == f"{int(SCHEMA[:4]) + 1:04}_notes_of_a_task.py"
    assert file.parent == versions
    assert 'sa.Column("said", sa.String(), nullable=False)' in text
    assert text.count("sa.JSON()") == 2
    assert "claudomator_py" not in text
