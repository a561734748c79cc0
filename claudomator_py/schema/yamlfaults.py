"""What is wrong with text that is not acceptable YAML, in the words of somebody who writes a task."""

from typing import Final, Self

import yaml

from claudomator_py.domain.errors import Path, Problem, shown
from claudomator_py.values import dataclass, regex

_BEGUN: Final = regex(r"\s*(?:- +)*(?:[^\s:]+: +)?([\[{\"'])")
"""A value that begins with a quote or a bracket, after its key or in a list."""
COMMENT: Final = regex(r"[ \t]+(#[^\r\n]*)")


@dataclass(frozen=True, slots=True)
class SuggestedValue:
    """A possible meaning of a value, and its notation in YAML."""

    value: str | float
    form: str


class BadText(Exception):
    """The text is not acceptable YAML; the problem gives the reason.

    path: of the value refused because of its notation. forms: what it may have been meant to be; which of them its
    field accepts is determined where the field is known, see ``documents.refusal_of``.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.render())
        self.problem = problem
        self.path: Path = ()
        self.forms: tuple[SuggestedValue, ...] = ()

    def written(self, path: Path, *forms: SuggestedValue) -> Self:
        """Return the same exception, with possible meanings of the value at that path."""
        self.path, self.forms = path, forms
        return self


def bad(line: int | None, message: str, remedy: str, column: int | None = None, field: str | None = None) -> BadText:
    """Return the refusal of a text at that place."""
    return BadText(Problem(line=line, column=column, field=field, message=message, remedy=remedy))


_SYNTAX = (
    (
        "mapping values are not allowed",
        "has a `:` where none can be",
        "put a text that contains `: ` in quotes or under `key: |`, and indent keys of one level alike",
    ),
    ("cannot start any token", "a value may not begin with `{}`", "put it in quotes"),
    ("did not find expected node content", "a value may not begin with `{}`", "put it in quotes"),
    ("mapping keys are not allowed", "a value may not begin with `? `", "put it in quotes"),
    (
        "block sequence entries are not allowed",
        "a value may not begin with `- `",
        "put it in quotes, or begin a list in the next line",
    ),
    (
        "scanning a block scalar",
        "a text under `|` or `>` begins in the next line",
        "move it there and indent it, or put it in quotes",
    ),
    (
        "could not find expected ':'",
        "is neither `key: value` nor part of the text above",
        "put a text of several lines under `key: |`, indented",
    ),
)
"""Words in the parser's error, and the message and remedy for somebody who writes a task; ``{}`` is the character
there."""


def syntax_fault(error: yaml.MarkedYAMLError, text: str, first_line: int) -> BadText:
    """Return the parser's error in the words of somebody who writes a task."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return bad(None, f"is not YAML: {error.problem}", "check quotes, brackets and indentation")
    source = text.splitlines()
    written = source[mark.line] if mark.line < len(source) else ""
    line, column = mark.line + first_line, mark.column + 1
    problem = error.problem or ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return bad(line, "is indented with a tab, which YAML forbids", "use spaces")
    if error.context in ("while scanning an alias", "while scanning an anchor") and error.context_mark is not None:
        sign = "*" if "alias" in error.context else "&"
        message = f"a value that begins with `{sign}` is an {error.context.rpartition(' ')[2]} to YAML"
        return bad(line, message, "put it in quotes", error.context_mark.column + 1)
    opened = _BEGUN.match(written)
    if opened is not None and mark.column >= opened.end() and (error.context or "").startswith("while parsing a block"):
        ends = "the closing quote" if opened[1] in "'\"" else f"what a `{opened[1]}` begins"
        return bad(line, f"has text after {ends}", "put the whole text in quotes, or under `key: |`", column)
    char = shown(written[mark.column : mark.column + 1])
    for pattern, message, remedy in _SYNTAX:
        if pattern in f"{error.context}: {problem}" and (char or "{}" not in message):
            return bad(line, message.format(char), remedy, column)
    if "end of stream" in problem and error.context_mark is not None and "quoted" in (error.context or ""):
        begun = error.context_mark
        message = "a quote is opened here and never closed"
        return bad(begun.line + first_line, message, "close it", begun.column + 1)
    above = source[mark.line - 1] if mark.line else ""
    if not above.lstrip().startswith("#") and COMMENT.search(above):
        message = "is text behind a comment, as ` #` in the line above begins one"
        return bad(line, message, "put the whole text in quotes, or under `key: |`", column)
    parts = [part for part in (error.context, problem) if part]
    return bad(line, f"is not YAML: {', '.join(parts)}", "check quotes, brackets and indentation", column)
