"""What one thread writes together: one transaction, which it sees itself before anybody else does."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from claudomator_py.domain import crashpoint
from claudomator_py.store.database import Database, StoreUnavailable
from tests.contract.notes import add, ids
from tests.patience import PATIENCE_S


def seen_elsewhere(db: Database) -> list[int]:
    with ThreadPoolExecutor(1) as other:
        return other.submit(ids, db).result(PATIENCE_S)


def broken(connection: Connection) -> int:
    add(100)(connection)
    raise ValueError("not this one")


def test_it_is_one_commit_that_only_its_thread_sees_before(db: Database, commits: list[int]) -> None:
    with db.together():
        first = db.submit(add(1))
        assert ids(db) == [1]
        second = db.submit(add(2), lazily=True)
        assert (ids(db), seen_elsewhere(db)) == ([1, 2], [])
        assert not first.done()
        assert not second.done()
        assert commits == []
    assert (first.result(), second.result(), commits, seen_elsewhere(db)) == (1, 2, [0], [1, 2])


@pytest.mark.parametrize("order", [(broken, add(1), add(2)), (add(1), broken, add(2)), (add(1), add(2), broken)])
def test_one_that_raises_is_undone_alone(db: Database, order: tuple[Callable[[Connection], int], ...]) -> None:
    with db.together():
        futures = {item: db.submit(item) for item in order}
    with pytest.raises(ValueError, match="not this one"):
        futures[broken].result()
    assert ids(db) == [1, 2]


def test_nothing_but_failures_is_no_commit(db: Database, commits: list[int]) -> None:
    with db.together():
        failed = db.submit(broken)
    with pytest.raises(ValueError, match="not this one"):
        failed.result()
    assert (ids(db), commits) == ([], [])


def test_what_is_asked_for_is_durable_with_all_before_it(db: Database, commits: list[int]) -> None:
    with db.together():
        first = db.submit(add(1))
        assert db.write(add(2)) == 2
        assert first.done()
        assert seen_elsewhere(db) == [1, 2]
        third = db.submit(add(3))
        assert third.result() == 3
        assert seen_elsewhere(db) == [1, 2, 3]
        db.submit(add(4))
        db.flush()
        assert seen_elsewhere(db) == [1, 2, 3, 4]
    assert len(commits) == 3


def test_others_wait_for_their_turn(db: Database) -> None:
    with ThreadPoolExecutor(1) as other:
        with db.together():
            db.submit(add(1))
            theirs = other.submit(db.write, lambda connection: (add(2)(connection), ids_in(connection)))
            db.submit(add(3))
        assert theirs.result(PATIENCE_S) == (2, [1, 2, 3])


def ids_in(connection: Connection) -> list[int]:
    return [row[0] for row in connection.exec_driver_sql("SELECT id FROM note ORDER BY id")]


def test_nobody_waits_while_nothing_is_written(db: Database) -> None:
    with ThreadPoolExecutor(1) as other, db.together():
        assert ids(db) == []
        assert other.submit(db.write, add(1)).result(PATIENCE_S) == 1
        assert ids(db) == [1]


@pytest.mark.parametrize("point", ["store-begin", "store-before-commit"])
def test_where_the_transaction_is_lost_so_is_the_rest_of_the_block(db: Database, point: str) -> None:
    lost: list[str] = []

    def fault(name: str) -> None:
        if name == point and not lost:
            lost.append(name)
            raise OSError("out of luck")

    futures = []

    def block() -> None:
        with db.together():
            futures.append(db.submit(add(1)))
            with pytest.raises(StoreUnavailable, match="out of luck"):
                db.flush()
            futures.append(db.submit(add(2)))
            with pytest.raises(StoreUnavailable, match="out of luck"):
                ids(db)
            with pytest.raises(StoreUnavailable, match="out of luck"):
                db.write(add(3))

    crashpoint.install(fault)
    try:
        with pytest.raises(StoreUnavailable, match="out of luck"):
            block()
    finally:
        crashpoint.install(None)
    for future in futures:
        with pytest.raises(StoreUnavailable, match="out of luck"):
            future.result()
    assert db.write(add(4)) == 4
    assert ids(db) == [4]


LOSING = [
    ("sqlite", "ROLLBACK"),
    ("postgresql", "SELECT 1 / 0"),
    ("postgresql", "SELECT pg_terminate_backend(pg_backend_pid())"),
]


@pytest.mark.parametrize(("database_kind", "statement"), LOSING, ids=["sqlite", "error", "connection"])
def test_a_read_with_which_the_transaction_is_lost_loses_what_was_written_before(db: Database, statement: str) -> None:
    """PostgreSQL gives it up after any error, and SQLite after some, such as those of a disk, as by a ROLLBACK."""

    def read(connection: Connection) -> None:
        connection.exec_driver_sql(statement)
        raise OSError("cannot be read")

    def block() -> None:
        with db.together():
            futures.append(db.submit(add(1)))
            with suppress(Exception):
                db.read(read)
            with pytest.raises(StoreUnavailable):
                ids(db)
            futures.append(db.submit(add(2)))

    futures: list[Future[int]] = []
    with pytest.raises(StoreUnavailable):
        block()
    for future in futures:
        with pytest.raises(StoreUnavailable):
            future.result()
    assert db.write(add(3)) == 3
    assert ids(db) == [3]


@pytest.mark.parametrize("read_too", [False, True])
def test_a_write_that_hides_an_error_of_the_database_is_not_confirmed(db: Database, read_too: bool) -> None:
    def hiding(connection: Connection) -> None:
        add(1)(connection)
        with suppress(DBAPIError):
            connection.exec_driver_sql("SELECT nothing FROM nowhere")
        if db.dialect == "sqlite":
            connection.exec_driver_sql("ROLLBACK")

    def block() -> None:
        with db.together():
            futures.append(db.submit(hiding))
            if read_too:
                with suppress(Exception):
                    ids(db)

    futures: list[Future[None]] = []
    with pytest.raises(StoreUnavailable):
        block()
    with pytest.raises(StoreUnavailable):
        futures[0].result()
    assert db.write(add(3)) == 3
    assert ids(db) == [3]


def raising(db: Database, error: BaseException) -> None:
    with db.together():
        db.submit(add(1))
        raise error


def test_what_was_done_before_the_block_raised_stands(db: Database) -> None:
    with pytest.raises(ValueError, match="a fault of the caller"):
        raising(db, ValueError("a fault of the caller"))
    assert ids(db) == [1]


def test_a_process_that_ends_in_the_block_leaves_nothing(db: Database) -> None:
    with pytest.raises(KeyboardInterrupt):
        raising(db, KeyboardInterrupt())
    assert ids(db) == []
    assert db.write(add(2)) == 2


def test_a_write_inside_a_write_is_refused(db: Database) -> None:
    def inside(connection: Connection) -> None:
        add(1)(connection)
        db.write(add(2))

    with db.together():
        refused = db.submit(inside)
        first = db.submit(add(3))
    with pytest.raises(RuntimeError, match="would wait for itself"):
        refused.result()
    assert first.result() == 3
    assert ids(db) == [3]


def test_what_a_write_submits_is_written_after_it(db: Database) -> None:
    later = []
    with db.together():
        db.submit(lambda _: later.append(db.submit(add(1))))
    assert later[0].result(PATIENCE_S) == 1


def test_what_a_listener_submits_is_written(db: Database) -> None:
    event = threading.Event()
    submitted = []

    def listen() -> None:
        if not event.is_set():
            event.set()
            submitted.append(db.submit(add(2)))

    db.on_commit(listen)
    with db.together():
        db.submit(add(1))
    assert submitted[0].result(PATIENCE_S) == 2
    assert ids(db) == [1, 2]


def test_it_can_begin_with_what_others_have_queued_lazily(db: Database) -> None:
    news: list[str] = []
    db.on_commit(lambda: news.append("any"))
    db.on_commit(lambda: news.append("not planned"), planned=False)
    with ThreadPoolExecutor(1) as other:
        [theirs, failed] = other.submit(db.submit_together, [add(1), broken], lazily=True).result(PATIENCE_S)
        with db.together(with_lazy=True):
            assert (ids(db), seen_elsewhere(db)) == ([1], [])
            db.submit(add(2), planned=True)
            db.flush()
            assert seen_elsewhere(db) == [1, 2]
            assert not theirs.done(), "it wakes another thread, which would compete with this one"
        assert theirs.result(PATIENCE_S) == 1
        with pytest.raises(ValueError, match="not this one"):
            failed.result(PATIENCE_S)
    assert news == ["any"], "the block counts as having planned it"


def test_without_being_asked_it_leaves_that_to_the_writer(db: Database) -> None:
    with ThreadPoolExecutor(1) as other:
        theirs = other.submit(db.submit_together, [add(1)], lazily=True).result(PATIENCE_S)
        with db.together():
            assert ids(db) == []
        db.flush()
        assert theirs[0].result(PATIENCE_S) == 1


def test_what_others_queued_is_lost_with_it(db: Database) -> None:
    def fault(name: str) -> None:
        if name == "store-before-commit":
            raise OSError("out of luck")

    with ThreadPoolExecutor(1) as other:
        [theirs] = other.submit(db.submit_together, [add(1)], lazily=True).result(PATIENCE_S)
    crashpoint.install(fault)
    try:
        with pytest.raises(StoreUnavailable, match="out of luck"), db.together(with_lazy=True):
            pass
    finally:
        crashpoint.install(None)
    with pytest.raises(StoreUnavailable, match="out of luck"):
        theirs.result(PATIENCE_S)
    assert ids(db) == []


def test_a_write_knows_whether_what_was_read_is_still_so(db: Database) -> None:
    commits = db.commits

    def is_still_so(_: Connection) -> bool:
        return db.sees_as_of(commits)

    with db.together():
        first, second = db.submit(is_still_so), db.submit(is_still_so)
    assert (first.result(), second.result()) == (True, False), "the first write may have changed what was read"
    with db.together():
        assert db.submit(is_still_so).result() is False
    commits = db.commits
    with ThreadPoolExecutor(1) as other, db.together():
        other.submit(db.write, add(1)).result(PATIENCE_S)
        assert db.submit(is_still_so).result() is False
    commits = db.commits
    assert db.write(is_still_so) is False, "elsewhere, nobody knows"
