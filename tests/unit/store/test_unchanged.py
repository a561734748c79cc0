"""What was read is at hand until something is written."""

from claudomator_py.store.database import Unchanged


def test_it_is_read_once_for_each_key_until_something_is_written() -> None:
    kept, reads = Unchanged(), iter(range(10))

    def read(commits: int, key: str) -> int:
        return kept.read(commits, key, lambda: next(reads))

    assert [read(1, "a"), read(1, "a"), read(1, "b"), read(1, "a")] == [0, 0, 1, 0]
    assert [read(2, "a"), read(2, "b"), read(2, "a")] == [2, 3, 2]


def test_what_an_earlier_snapshot_says_is_not_told_to_a_later_one() -> None:
    """The one who reads is late: somebody else has read what was written meanwhile."""
    kept = Unchanged()

    def late() -> str:
        assert kept.read(2, "a", lambda: "new") == "new"
        return "old"

    assert kept.read(1, "a", late) == "old"
    assert kept.read(2, "a", lambda: "new") == "new"


def test_so_many_are_kept() -> None:
    kept, asked = Unchanged(most=3), []
    for number in (1, 2, 3, 4, 1):
        kept.read(1, number, lambda number=number: asked.append(number))  # type: ignore[misc]
    assert asked == [1, 2, 3, 4, 1]


def test_nothing_is_kept_of_what_could_not_be_read() -> None:
    kept = Unchanged()

    def fails() -> str:
        raise LookupError

    try:
        kept.read(1, "a", fails)
    except LookupError:
        pass
    assert kept.read(1, "a", lambda: "read") == "read"
