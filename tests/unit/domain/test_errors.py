"""What an error says of a word that is none of those that could be meant, and where it says that it is."""

import pytest

from claudomator_py.domain.errors import Problem, clause, field_name, located, name_suggestion, sentence, suggestion


def test_the_nearest_word_is_suggested_in_any_case() -> None:
    assert suggestion("Priorty", ["priority", "prices"]) == "did you mean `priority`?"


def test_where_none_is_near_all_are_named_in_order() -> None:
    assert suggestion("zzz", ["b", "a"]) == "write one of a, b"
    assert suggestion("zzz", []) == "remove it"


def test_of_a_great_many_the_first_are_named() -> None:
    text = suggestion("zzz", [f"task-{number:04}" for number in range(1_050)])
    assert text.startswith("write one of task-0000, task-0001, ")
    assert text.endswith("task-0049, or one of 1,000 more")


def test_of_names_without_number_only_a_few_are_named_however_near_one_is() -> None:
    names = ["wd", *(f"task-{number}" for number in range(20))]
    text = name_suggestion("w", names, "claudomator list")
    assert text.startswith("the names nearest to it are wd, ")
    assert text.endswith("; `claudomator list` lists them all")
    assert text.count(",") == 4
    assert name_suggestion("task-01", names, "claudomator list") == "did you mean `task-1`?"


@pytest.mark.parametrize(
    ("path", "line"),
    [((), 1), (("agent", "type"), 3), (("add_dirs", 1), 6), (("add_dirs", 2), 4), (("check", 0, 1), 7)],
)
def test_a_problem_that_is_found_in_a_value_has_the_line_of_its_field(path: tuple[str | int, ...], line: int) -> None:
    lines = {
        (): 1,
        ("agent",): 2,
        ("agent", "type"): 3,
        ("add_dirs",): 4,
        ("add_dirs", 0): 5,
        ("add_dirs", 1): 6,
        ("check",): 7,
    }
    problem = located(Problem(field=field_name(path), message="is wrong"), lines, 2)
    assert (problem.line, problem.document) == (line, 2)


def test_a_word_that_may_mean_something_else_is_told_all_that_it_could_be() -> None:
    keys = ["approve", "deny", "isolation", "name", "tier", "when"]
    assert suggestion("aprove", keys) == "did you mean `approve`?"
    assert suggestion("action", keys) == f"did you mean `isolation`? Else write one of {', '.join(keys)}"
    assert suggestion("nme", keys) == "did you mean `name`?"
    assert suggestion("xyz", keys) == f"write one of {', '.join(keys)}"


def test_a_sentence_is_a_clause_of_another_one() -> None:
    assert clause("Edit the file, or remove it.") == "edit the file, or remove it"
    assert sentence(clause("Edit the file.")) == "Edit the file."
