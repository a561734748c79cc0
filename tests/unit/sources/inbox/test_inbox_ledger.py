from dataclasses import replace
from pathlib import Path

from claudomator_py.domain.errors import Problem
from claudomator_py.sources.inbox.ledger import QUIET_S, RACY_S, TOGETHER_S, FileLedger, FileStamp, RefusedFile

OLD = FileStamp(1, 10, 100)
NEW = FileStamp(2, 10, 100)
WRONG = (Problem(message="wrong"),)


def test_a_file_is_settled_by_the_stamp_it_was_accepted_with() -> None:
    ledger = FileLedger()
    ledger.remember({"a": OLD})
    assert ledger.is_settled("a", OLD, 0)
    assert not ledger.is_settled("a", NEW, 0)


def test_a_file_is_at_rest_once_it_was_accepted_as_it_is_and_nothing_else_is_pending(tmp_path: Path) -> None:
    status = tmp_path.stat()
    stamp = FileStamp.of(status)
    ledger = FileLedger()
    assert not ledger.is_at_rest("a", status)
    ledger.compare_later("a", stamp, b"digest", 5)
    ledger.accept("a", stamp)
    assert not ledger.is_at_rest("a", status)
    assert ledger.is_unchanged("a", stamp, b"digest")
    assert ledger.is_at_rest("a", status)
    ledger.wait("a", stamp, "why", 10, quiet=True)
    assert not ledger.is_at_rest("a", status)
    ledger.accept("a", stamp)
    ledger.refuse("a", RefusedFile(stamp, WRONG))
    assert not ledger.is_at_rest("a", status)
    ledger.clear_refusal("a")
    ledger.set_aside()
    assert not ledger.is_at_rest("a", status)
    for other in (replace(stamp, mtime_ns=1), replace(stamp, size=stamp.size + 1), replace(stamp, inode=1)):
        ledger.accept("a", other)
        assert not ledger.is_at_rest("a", status)


def test_a_refusal_by_content_lasts_and_one_by_circumstance_does_not() -> None:
    ledger = FileLedger()
    ledger.refuse("a", RefusedFile(OLD, WRONG, lasting=True))
    ledger.refuse("b", RefusedFile(OLD, WRONG))
    assert ledger.is_settled("a", OLD, 0)
    assert not ledger.is_settled("b", OLD, 0)


def test_a_file_put_back_as_it_was_accepted_is_settled_although_a_later_state_was_refused() -> None:
    ledger = FileLedger()
    ledger.accept("a", OLD)
    ledger.refuse("a", RefusedFile(NEW, WRONG, lasting=True))
    assert ledger.is_settled("a", OLD, 0)


def test_quiet_counts_from_the_last_change() -> None:
    ledger = FileLedger()
    ledger.wait("a", OLD, "why", 10, quiet=True)
    ledger.wait("a", NEW, "why", 10.5, quiet=True)
    assert ledger.due() == {"a": 10.5 + QUIET_S}
    assert not ledger.is_quiet("a", NEW, 11)
    assert not ledger.is_quiet("a", OLD, 20)
    assert ledger.is_quiet("a", NEW, 10.5 + QUIET_S)


def test_a_busy_file_is_looked_at_ever_less_often() -> None:
    ledger = FileLedger()
    pauses = []
    for now in (0.0, 0.4, 1.0, 60.0):
        ledger.wait("a", OLD, "why", now, quiet=False)
        pauses.append(ledger.due()["a"] - now)
    assert pauses == sorted(pauses)
    assert 0 < pauses[0] < 0.1
    assert pauses[-1] <= 0.5


def test_bytes_are_compared_once_more_after_a_fresh_change() -> None:
    ledger = FileLedger()
    ledger.compare_later("a", OLD, b"digest", 5)
    ledger.accept("a", OLD)
    assert ledger.is_settled("a", OLD, 5 + RACY_S - 0.1)
    assert not ledger.is_settled("a", OLD, 5 + RACY_S + TOGETHER_S)
    assert ledger.is_unchanged("a", OLD, b"digest")
    assert ledger.is_settled("a", OLD, 100)
    assert ledger.due() == {}


def test_files_that_came_one_after_the_other_are_compared_together() -> None:
    ledger = FileLedger()
    for number in range(100):
        ledger.compare_later(f"{number}", OLD, b"digest", 5 + number / 1_000)
    due = ledger.due().values()
    assert len(set(due)) <= 2
    assert min(due) >= 5 + RACY_S
    assert max(due) <= 5.1 + RACY_S + TOGETHER_S


def test_other_bytes_under_the_same_stamp_are_a_change() -> None:
    ledger = FileLedger()
    ledger.compare_later("a", OLD, b"digest", 5)
    ledger.accept("a", OLD)
    assert not ledger.is_unchanged("a", OLD, b"other")


def test_what_lay_on_another_file_system_is_not_missing_and_comes_back_settled() -> None:
    ledger = FileLedger()
    ledger.remember({"a": OLD, "b": OLD})
    ledger.set_aside()
    assert ledger.names() == set()
    ledger.remember({"a": OLD, "b": OLD})
    assert ledger.names() == set()
    assert ledger.is_settled("a", OLD, 0)
    assert not ledger.is_settled("b", NEW, 0)
    assert ledger.accepted == {"a": OLD}


def test_nothing_is_due_for_what_is_not_there() -> None:
    ledger = FileLedger()
    ledger.compare_later("a", OLD, b"digest", 5)
    ledger.wait("a", OLD, "why", 5, quiet=False)
    ledger.record_absence("a", 6)
    assert ledger.due() == {}
