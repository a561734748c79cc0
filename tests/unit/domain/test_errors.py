"""What an error says of a word that is none of those that could be meant."""

from claudomator_py.domain.errors import suggestion


def test_the_nearest_word_is_suggested_in_any_case() -> None:
    assert suggestion("Priorty", ["priority", "prices"]) == "did you mean `priority`?"


def test_where_none_is_near_all_are_named_in_order() -> None:
    assert suggestion("zzz", ["b", "a"]) == "write one of a, b"
    assert suggestion("zzz", []) == "remove it"


def test_of_a_great_many_the_first_are_named() -> None:
    said = suggestion("zzz", [f"task-{number:04}" for number in range(1_050)])
    assert said.startswith("write one of task-0000, task-0001, ")
    assert said.endswith("task-0049, or one of 1,000 more")
