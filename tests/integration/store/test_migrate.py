"""What an operator relies on when a new version meets an old database."""

import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from claudomator_py.store import migrate as migrate_module
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.migrate import alembic_config, is_described, migrate
from claudomator_py.store.tables import Task

PARENT_AND_CHILD = """
    op.create_table("parent", sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String))
    op.create_table(
        "child",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("parent_id", sa.Integer, sa.ForeignKey("parent.id", ondelete="CASCADE")),
    )
"""
REBUILD_PARENT = """
    with op.batch_alter_table("parent") as batch:
        batch.alter_column("name", existing_type=sa.String(), nullable=False)
        batch.add_column(sa.Column("age", sa.Integer()))
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a version of the program whose migrations are these bodies, in order."""

    def installed(*bodies: str) -> None:
        folder = tmp_path / "versions"
        folder.mkdir(exist_ok=True)
        for file in folder.glob("*.py"):
            file.unlink()
        before = None
        for number, body in enumerate(bodies, start=1):
            revision = f"{number:04}_test"
            head = f"import sqlalchemy as sa\nfrom alembic import op\nrevision = {revision!r}\n"
            (folder / f"{revision}.py").write_text(f"{head}down_revision = {before!r}\ndef upgrade():\n{body}\n")
            before = revision

        def config() -> Config:
            config = alembic_config()
            config.set_main_option("version_locations", str(folder))
            return config

        monkeypatch.setattr(migrate_module, "alembic_config", config)

    return installed


@pytest.fixture
def empty(database_url: str, tmp_path: Path) -> Database:
    return Database.open(database_url, state_dir=tmp_path / "state")


def run(*statements: str) -> Callable[[Connection], None]:
    def fn(connection: Connection) -> None:
        for statement in statements:
            connection.execute(text(statement))

    return fn


def tables(database: Database) -> set[str]:
    return database.read(lambda connection: set(inspect(connection).get_table_names()))


def backups(database: Database) -> list[Path]:
    return sorted((database.state_dir / "backups").glob("*"))


def test_the_migrations_lead_to_the_tables_as_they_are(database: Database) -> None:
    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(connection, opts={"include_name": is_described})
        return list(compare_metadata(context, Task.metadata))

    assert database.read(differences) == []


def test_a_new_database_gets_every_table_and_needs_no_backup(empty: Database) -> None:
    with empty:
        report = migrate(empty)
        assert report.before is None
        assert report.after == report.applied[-1]
        assert report.applied[0] == "0023_run_ends"
        assert report.backup is None
        assert backups(empty) == []
        assert set(Task.metadata.tables) <= tables(empty)


def test_a_second_start_changes_nothing(database: Database) -> None:
    report = migrate(database)
    assert (report.before, report.applied, report.backup) == (report.after, (), None)
    assert backups(database) == []


def test_an_old_database_keeps_its_rows_and_is_copied_first(empty: Database, install: Install) -> None:
    with empty:
        install(PARENT_AND_CHILD)
        migrate(empty)
        empty.write(run("INSERT INTO parent VALUES (1, 'Ada')", "INSERT INTO child VALUES (2, 1)"))
        install(PARENT_AND_CHILD, REBUILD_PARENT)
        report = migrate(empty)
        assert (report.before, report.after, report.applied) == ("0001_test", "0002_test", ("0002_test",))
        rows = empty.read(
            lambda connection: connection.execute(
                text("SELECT name, age, child.id FROM parent JOIN child ON parent_id = parent.id")
            ).all()
        )
        assert [tuple(row) for row in rows] == [("Ada", None, 2)]
        empty.write(run("DELETE FROM parent"))
        assert empty.read(lambda connection: connection.execute(text("SELECT * FROM child")).all()) == []
        if empty.dialect == "postgresql":
            assert report.backup is None
            return
        assert report.backup is not None
        assert backups(empty) == [report.backup]
        assert report.backup.name.startswith("claudomator-0001_test-")
        assert stat.S_IMODE(report.backup.stat().st_mode) == 0o600


def test_a_change_that_fails_over_and_over_does_not_fill_the_disk(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(PARENT_AND_CHILD)
    with Database.open("sqlite", state_dir=tmp_path / "state") as database:
        migrate(database)
        kept = tmp_path / "state" / "backups" / "claudomator-20261201T000000000Z.db"
        database.backup(kept)
        install(PARENT_AND_CHILD, '    op.drop_table("none")')
        for second in range(10, 16):
            monkeypatch.setattr(time, "strftime", lambda *_, second=second: f"20261201T0000{second}Z")
            with pytest.raises(StoreUnavailable, match="nothing was changed"):
                migrate(database)
        copies = [f"claudomator-0001_test-20261201T0000{second}Z.db" for second in (13, 14, 15)]
        assert [path.name for path in backups(database)] == [*copies, kept.name]


def test_a_restored_backup_is_the_database_as_it_was(install: Install, tmp_path: Path) -> None:
    install(PARENT_AND_CHILD)
    with Database.open("sqlite", state_dir=tmp_path / "state") as database:
        migrate(database)
        database.write(run("INSERT INTO parent VALUES (1, 'Ada')"))
        install(PARENT_AND_CHILD, REBUILD_PARENT)
        backup = migrate(database).backup
    assert backup is not None
    restored = tmp_path / "restored"
    restored.mkdir()
    backup.rename(restored / "claudomator.db")
    install(PARENT_AND_CHILD)
    with Database.open("sqlite", state_dir=restored) as database:
        assert migrate(database).applied == ()
        assert database.read(lambda connection: connection.execute(text("SELECT name FROM parent")).scalar()) == "Ada"


def test_a_newer_database_is_refused_and_left_alone(empty: Database, install: Install) -> None:
    with empty:
        install(PARENT_AND_CHILD, REBUILD_PARENT)
        migrate(empty)
        install(PARENT_AND_CHILD)
        with pytest.raises(StoreUnavailable) as refusal:
            migrate(empty)
        assert "0002_test, which is newer than this version of Claudomator (0001_test)" in refusal.value.reason
        assert "install the newer version" in refusal.value.remedy
        assert backups(empty) == []
        install(PARENT_AND_CHILD, REBUILD_PARENT)
        assert migrate(empty).applied == ()


@pytest.mark.parametrize("former", ["0001_first", "0022_demands"])
def test_an_older_database_than_the_oldest_that_is_upgraded_is_refused_and_left_alone(
    former: str, database: Database
) -> None:
    database.write(run(f"UPDATE alembic_version SET version_num = '{former}'"))
    before = tables(database)

    with pytest.raises(StoreUnavailable) as refusal:
        migrate(database)

    assert refusal.value.reason == (
        f"the database has schema {former}, from before the first that this version upgrades (0023_run_ends)"
    )
    assert "start a version that knows both schemas once" in refusal.value.remedy
    assert tables(database) == before
    assert backups(database) == []


def test_migrations_apply_together_or_not_at_all(empty: Database, install: Install) -> None:
    with empty:
        install(PARENT_AND_CHILD)
        migrate(empty)
        before = tables(empty)
        install(
            PARENT_AND_CHILD, '    op.create_table("third", sa.Column("id", sa.Integer))', '    op.drop_table("none")'
        )
        with pytest.raises(StoreUnavailable, match="nothing was changed"):
            migrate(empty)
        assert tables(empty) == before
        install(PARENT_AND_CHILD)
        assert migrate(empty).applied == ()


def test_a_migration_that_breaks_a_reference_is_undone(empty: Database, install: Install) -> None:
    with empty:
        install(PARENT_AND_CHILD)
        migrate(empty)
        empty.write(run("INSERT INTO parent VALUES (1, 'Ada')", "INSERT INTO child VALUES (2, 1)"))
        install(PARENT_AND_CHILD, '    op.execute("UPDATE child SET parent_id = 404")')
        with pytest.raises(StoreUnavailable, match="nothing was changed"):
            migrate(empty)
        parent = empty.read(lambda connection: connection.execute(text("SELECT parent_id FROM child")).scalar())
        assert parent == 1


def test_a_database_with_tables_of_another_program_is_refused(empty: Database) -> None:
    with empty:
        empty.write(run("CREATE TABLE task (id INTEGER)"))
        with pytest.raises(StoreUnavailable, match="nothing was changed"):
            migrate(empty)
        assert tables(empty) == {"task"}
