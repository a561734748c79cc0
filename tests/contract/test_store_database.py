"""What every caller of the database relies on, the same on SQLite and PostgreSQL."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from claudomator_py.domain import crashpoint
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.writer import MAX_BATCH
from tests.contract.notes import add, answer, ids, note
from tests.patience import PATIENCE_S


class Gate:
    """A write that keeps the writer busy until it is opened, so that what is queued behind it becomes one group."""

    def __init__(self, db: Database) -> None:
        self._open = threading.Event()
        entered = threading.Event()

        def wait(_connection: Connection) -> None:
            entered.set()
            assert self._open.wait(PATIENCE_S)

        self.future = db.submit(wait)
        assert entered.wait(PATIENCE_S)

    def open(self) -> None:
        self._open.set()


def test_a_write_returns_its_value_and_is_seen_by_the_next_read(db: Database) -> None:
    assert db.write(add(7)) == 7
    assert ids(db) == [7]


def test_what_was_written_is_there_after_the_next_open(db: Database, database_url: str, tmp_path: Path) -> None:
    db.write(add(1))
    db.close()
    with Database.open(database_url, state_dir=tmp_path / "state") as again:
        assert ids(again) == [1]


def test_what_is_queued_shares_one_commit(db: Database, commits: list[int]) -> None:
    gate = Gate(db)
    futures = [db.submit(add(number)) for number in range(100)]
    gate.open()
    assert [future.result(30) for future in futures] == list(range(100))
    db.close()
    assert len(commits) == 2


def test_a_group_is_bounded(db: Database, commits: list[int]) -> None:
    gate = Gate(db)
    futures = [db.submit(add(number)) for number in range(2 * MAX_BATCH + 1)]
    gate.open()
    for future in futures:
        future.result(30)
    db.close()
    assert len(commits) == 1 + 3


def test_what_is_submitted_together_is_committed_together(db: Database, commits: list[int]) -> None:
    """Whether the writer is idle or not: nobody sees the first of them without the others."""
    for future in db.submit_together([add(number) for number in range(100)]):
        future.result(30)
    db.close()
    assert len(commits) == 1


def test_what_is_queued_lazily_is_written_with_what_comes_next(db: Database, commits: list[int]) -> None:
    lazy = db.submit(add(1), lazily=True)
    assert not lazy.done()
    assert db.write(add(2)) == 2
    assert lazy.result(30) == 1
    db.close()
    assert len(commits) == 1


def test_what_is_queued_lazily_is_written_at_last(db: Database, commits: list[int]) -> None:
    lazy = db.submit(add(1), lazily=True)
    db.flush()
    assert lazy.result(30) == 1
    lazy = db.submit(add(2), lazily=True)
    db.close()
    assert lazy.result(30) == 2
    assert len(commits) == 2


def test_an_item_that_raises_is_undone_alone(db: Database, commits: list[int]) -> None:
    def half(connection: Connection) -> None:
        add(2)(connection)
        raise KeyError("changed my mind")

    gate = Gate(db)
    first, broken, twice, last = db.submit(add(1)), db.submit(half), db.submit(add(1)), db.submit(add(3))
    gate.open()
    assert first.result(30) == 1
    assert last.result(30) == 3
    with pytest.raises(KeyError, match="changed my mind"):
        broken.result(30)
    with pytest.raises(IntegrityError):
        twice.result(30)
    assert ids(db) == [1, 3]
    db.close()
    assert len(commits) == 2


def test_no_future_resolves_before_the_commit(db: Database) -> None:
    gate = Gate(db)
    first, done_before_commit = db.submit(add(1)), list[bool]()
    second = db.submit(lambda _: done_before_commit.append(first.done()))
    gate.open()
    second.result(30)
    assert done_before_commit == [False]


def test_a_commit_that_fails_is_told_to_everyone_in_it(db: Database) -> None:
    def dangling(connection: Connection) -> None:
        connection.execute(insert(answer).values(id=1, note_id=404))

    gate = Gate(db)
    innocent, guilty = db.submit(add(1)), db.submit(dangling)
    gate.open()
    for future in (innocent, guilty):
        with pytest.raises(StoreUnavailable) as refusal:
            future.result(30)
        assert refusal.value.remedy
        assert isinstance(refusal.value.__cause__, IntegrityError)
    assert ids(db) == []
    assert db.write(add(2)) == 2


@pytest.mark.parametrize("point", ["store-begin", "store-before-commit"])
def test_a_fault_before_the_commit_keeps_nothing_and_the_writer_goes_on(db: Database, point: str) -> None:
    def fault(name: str) -> None:
        if name == point:
            raise OSError("out of luck")

    crashpoint.install(fault)
    try:
        with pytest.raises(StoreUnavailable, match="out of luck"):
            db.write(add(1))
    finally:
        crashpoint.install(None)
    assert db.write(add(2)) == 2
    assert ids(db) == [2]


@pytest.mark.parametrize("end", [Connection.commit, Connection.rollback])
def test_an_item_cannot_end_the_transaction_of_the_others(db: Database, end: Callable[[Connection], None]) -> None:
    def rude(connection: Connection) -> None:
        add(2)(connection)
        end(connection)

    gate = Gate(db)
    futures: list[Future[object]] = [db.submit(add(1)), db.submit(rude), db.submit(add(3))]
    gate.open()
    for future in futures:
        with pytest.raises(StoreUnavailable, match="only the writer"):
            future.result(30)
    assert ids(db) == []
    assert db.write(add(4)) == 4


def test_a_session_on_the_connection_is_part_of_its_item(db: Database) -> None:
    def by_session(connection: Connection) -> None:
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            session.connection().execute(insert(note).values(id=1, body="kept"))
            session.commit()
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            session.connection().execute(insert(note).values(id=2, body="not kept"))

    db.write(by_session)
    assert ids(db) == [1]


def test_futures_resolve_in_the_order_of_submission(db: Database) -> None:
    order: list[int] = []

    def noted(number: int, _future: Future[int]) -> None:
        order.append(number)

    gate = Gate(db)
    futures = [db.submit(add(number)) for number in range(50)]
    for number, future in enumerate(futures):
        future.add_done_callback(partial(noted, number))
    gate.open()
    db.close()
    assert order == list(range(50))


def test_a_thousand_writers_at_once(db: Database) -> None:
    start = threading.Barrier(20)

    def fifty(worker: int) -> list[int]:
        start.wait(PATIENCE_S)
        return [db.write(add(worker * 50 + number)) for number in range(50)]

    with ThreadPoolExecutor(20) as pool:
        written = [number for numbers in pool.map(fifty, range(20)) for number in numbers]
    assert written == list(range(1000))
    assert ids(db) == written


def test_a_write_cancelled_while_queued_never_runs(db: Database) -> None:
    gate = Gate(db)
    cancelled, kept = db.submit(add(1)), db.submit(add(2))
    assert cancelled.cancel()
    gate.open()
    assert kept.result(30) == 2
    assert ids(db) == [2]


def test_a_write_inside_a_write_is_refused_rather_than_waiting_for_itself(db: Database) -> None:
    with pytest.raises(RuntimeError, match="submit"):
        db.write(lambda _: db.write(add(1)))


def test_a_read_sees_one_snapshot_whatever_is_written_meanwhile(db: Database) -> None:
    db.write(add(1))

    def twice(connection: Connection) -> tuple[int | None, int | None]:
        count = select(func.count()).select_from(note)
        before = connection.scalar(count)
        db.write(add(2))
        return before, connection.scalar(count)

    assert db.read(twice) == (1, 1)
    assert ids(db) == [1, 2]


def test_readers_beside_a_busy_writer_never_see_half_a_write(db: Database) -> None:
    db.write(lambda connection: connection.execute(insert(note), [{"id": 1, "body": "0"}, {"id": 2, "body": "0"}]))
    stop = threading.Event()

    def bodies(connection: Connection) -> tuple[str | None, str | None]:
        first, second = (connection.scalar(select(note.c.body).where(note.c.id == number)) for number in (1, 2))
        return first, second

    def read_on() -> list[tuple[str | None, str | None]]:
        seen = [db.read(bodies)]
        while not stop.is_set():
            seen.append(db.read(bodies))
        return seen

    def both(value: int) -> Callable[[Connection], None]:
        def fn(connection: Connection) -> None:
            for number in (1, 2):
                connection.execute(update(note).where(note.c.id == number).values(body=str(value)))

        return fn

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read_on) for _ in range(3)]
        try:
            for value in range(1, 41):
                db.write(both(value))
        finally:
            stop.set()
        seen = [pair for reader in readers for pair in reader.result(30)]
    assert [pair for pair in seen if pair[0] != pair[1]] == []


def test_a_read_cannot_write(db: Database) -> None:
    with pytest.raises(StoreUnavailable, match="read-only"):
        db.read(add(1))
    assert ids(db) == []


def test_more_readers_than_connections_wait_their_turn(db: Database) -> None:
    db.write(add(1))
    with ThreadPoolExecutor(40) as pool:
        assert list(pool.map(lambda _: ids(db), range(200))) == [[1]] * 200


def test_a_commit_listener_finds_what_was_committed(db: Database) -> None:
    results: list[list[int]] = []
    db.on_commit(lambda: results.append(ids(db)))
    db.write(add(1))
    db.close()
    assert results == [[1]]


def test_a_listener_that_fails_harms_neither_the_others_nor_the_writer(db: Database) -> None:
    def fail() -> None:
        raise ValueError("a bad listener")

    heard: list[str] = []
    db.on_commit(fail)
    db.on_commit(lambda: heard.append("heard"))
    db.write(add(1))
    db.write(add(2))
    db.close()
    assert heard == ["heard", "heard"]


def test_nobody_is_told_of_a_commit_when_nothing_was_kept(db: Database, commits: list[int]) -> None:
    with pytest.raises(ZeroDivisionError):
        db.write(lambda _: 1 // 0)
    db.close()
    assert commits == []


def test_close_finishes_what_is_queued_and_refuses_what_comes_later(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    gate = Gate(db)
    futures = [db.submit(add(number)) for number in range(100)]
    closing = threading.Thread(target=db.close)
    closing.start()
    gate.open()
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
    assert all(future.done() for future in futures)
    with pytest.raises(StoreUnavailable, match="closed"):
        db.submit(add(100))
    with Database.open(database_url, state_dir=tmp_path / "state") as again:
        assert ids(again) == list(range(100))
