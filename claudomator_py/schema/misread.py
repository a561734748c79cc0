"""Texts that YAML reads otherwise than they were meant: cut off by a comment, or several commands joined to one."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from claudomator_py.domain.errors import Path, Problem, shown
from claudomator_py.domain.fields import TextUse
from claudomator_py.schema.validation import marks_at, problem_at, remedy_among
from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.schema.yamltext import Document, Plain, quoted

EVERY_USE = frozenset(TextUse)

T = TypeVar("T", bound=BaseModel)


def misread(
    model: type[BaseModel],
    document: Document,
    *,
    prefix: Path = (),
    aliases: Mapping[str, str] | None = None,
    uses: Collection[TextUse] = EVERY_USE,
) -> list[Problem]:
    """Return a problem for each text of the document that YAML cut off or joined without a trace, in any order.

    model: of the mapping at ``prefix``. aliases: what else its keys may be called. uses: the texts to look at.

    Behind prose, a comment is refused; behind a label, only one that looks like a part of it, such as ``#42``.
    """
    problems = []
    for path in dict.fromkeys([*document.comments, *document.comment_lines, *document.folded]):
        if path[: len(prefix)] != prefix:
            continue
        below = path[len(prefix) :]
        if aliases and below:
            below = (aliases.get(str(below[0]), below[0]), *below[1:])
        use = next((mark for mark in marks_at(model, below) if isinstance(mark, TextUse) and mark in uses), None)
        if use is None:
            continue
        comment = document.comments.get(path)
        if comment is not None and (use.is_prose or _is_part(comment)):
            value = _value_at(document.value, path)
            text = quoted(f"{'' if value is None else value} {comment}".strip())
            message = f"`{shown(comment)}` is a comment to YAML, and no part of the text"
            remedy = f"put the text in quotes: {text}; write a comment in a line of its own"
            problems.append(problem_at(document.lines, path, message, remedy))
        elif path in document.comment_lines and use is TextUse.PROSE:
            message = f"`{shown(document.comment_lines[path])}` is a comment to YAML, and no part of the text"
            remedy = (
                "write `|` behind the key and the whole text below it, indented alike, to keep it, or put the comment "
                "above the key"
            )
            problems.append(problem_at(document.lines, path, message, remedy))
        elif path in document.folded and use is TextUse.CHECK:
            message = "is written in several lines, which YAML joins to one command"
            remedy = "write `|` before them for one command a line, or the command in one line"
            problems.append(problem_at(document.lines, path, message, remedy))
    return problems


def refusal_of(
    bad: BadText, model: type[BaseModel], *, prefix: Path = (), aliases: Mapping[str, str] | None = None
) -> Problem:
    """Return what is wrong with a text that is no YAML. Where a value is refused for how it is written, the remedy
    names the forms that its field takes, and none that would be refused again.

    model, prefix, aliases: as for ``misread``.
    """
    if not bad.forms or bad.path[: len(prefix)] != prefix:
        return bad.problem
    below = bad.path[len(prefix) :]
    if aliases and below:
        below = (aliases.get(str(below[0]), below[0]), *below[1:])
    remedy = remedy_among(model, below, [(one.value, one.form) for one in bad.forms])
    return bad.problem if remedy is None else bad.problem.model_copy(update={"remedy": remedy})


def beside(cut: Sequence[Problem], parsed: T | list[Problem]) -> T | list[Problem]:
    """Return what the document is, or its problems: those that ``misread`` found, and those of other fields."""
    if not cut:
        return parsed
    fields = {problem.field for problem in cut}
    others = [problem for problem in parsed if problem.field not in fields] if isinstance(parsed, list) else []
    return sorted([*cut, *others], key=lambda problem: problem.line or 0)


def _is_part(comment: str) -> bool:
    """Whether the comment looks like a part of the text before it: no blank follows its sign, or nothing at all."""
    return comment == "#" or comment[1:2].isalnum()


def _value_at(value: Any, path: Path) -> Plain:
    for part in path:
        value = value[part]
    return cast("Plain", value)
