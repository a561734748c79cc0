"""The documents of a file: YAML, JSON, or Markdown with its fields between two ``---`` lines.

Also detects texts that YAML reads differently than intended: cut off by a comment, or several commands joined into one;
and names that synchronisers and merge tools give to a second version of a file, which must not run in addition to the
first. Names that people also choose are not among them: ``plan (1)``, ``plan 2``, ``plan - copy`` and ``plan-HOST``, as
used by Google Drive, iCloud and OneDrive, do not imply a conflict, unless the host name was made up by Windows; and
``db.backup`` may be a task.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, reduce
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from claudomator_py.domain.errors import Lines, Path, Problem, located, shown
from claudomator_py.domain.fields import TextUse
from claudomator_py.schema.validation import marks_at, problem_at, remedy_among
from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.schema.yamltext import Document, quoted, read_documents
from claudomator_py.values import dataclass, regex, toml_data


@dataclass(frozen=True, slots=True)
class ConflictName:
    """How some programs name a second version.

    program: name for people. pattern: what is added to the name, searched for in the name without its suffix. example:
    such a name, without suffix. other: a similar name that does not match.
    """

    program: str
    pattern: re.Pattern[str]
    example: str
    other: str


@cache
def conflict_names() -> tuple[ConflictName, ...]:
    """Return the names of ``conflict_copies.toml``, in the order in which they are tried."""
    data = toml_data("claudomator_py.schema", "conflict_copies.toml")
    parts = {f"{{{name}}}": unicodedata.normalize("NFKC", part) for name, part in data["parts"].items()}
    return tuple(_conflict_name(entry, parts) for entry in data["names"])


def _conflict_name(entry: Mapping[str, Any], parts: Mapping[str, str]) -> ConflictName:
    pattern = reduce(lambda text, part: text.replace(*part), parts.items(), entry["pattern"])
    compiled = re.compile(pattern, re.IGNORECASE if entry.get("ignore_case") else 0)
    return ConflictName(entry["program"], compiled, entry["example"], entry["other"])


@cache
def _any_conflict() -> re.Pattern[str]:
    """What finds all that one of them finds, in one go, as nearly no file is named like these."""
    return re.compile("|".join(f"(?:{name.pattern.pattern})" for name in conflict_names()), re.IGNORECASE)


def conflict_problem(filename: str) -> Problem | None:
    """Return the refusal of a file whose name marks it as a second version; None for any other. filename: without
    folders."""
    # Full-width brackets, and letters written in composed or decomposed form, count as the usual ones.
    stem, dot, suffix = unicodedata.normalize("NFKC", filename).rpartition(".")
    if _any_conflict().search(stem) is None:
        return None
    for name in conflict_names():
        if match := name.pattern.search(stem):
            original = f"{stem[: match.start()]}{stem[match.end() :]}".removesuffix(dot + suffix) + dot + suffix
            message = f"is named like a second version of `{shown(original)}` that {name.program} left"
            remedy = (
                "keep the right one under its own name and delete the other, or rename this to have it read as well"
            )
            return Problem(message=message, remedy=remedy)
    return None


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ParsedFile(Generic[T]):
    """The contents of a file: its tasks or cards, or its problems. A file is accepted whole or not at all."""

    items: tuple[T, ...]
    problems: tuple[Problem, ...]
    lines: tuple[Lines, ...] = ()
    """For each item, the lines of its fields."""
    names: tuple[str, ...] = ()
    """The names that its documents give, even if the file has problems."""

    def located(self, item: T, problem: Problem) -> Problem:
        """Return a problem of that item which was found later, with its line and the number of its document."""
        if item not in self.items or not self.lines:
            return problem
        place = self.items.index(item)
        return located(problem, self.lines[place], place + 1 if len(self.items) > 1 else None)


def parsed_file(
    documents: Sequence[Document], parse: Callable[[Document], T | list[Problem]], known: Sequence[Problem] = ()
) -> ParsedFile[T]:
    """Return what the documents describe, or all problems in the order of their lines. known: further problems."""
    items, problems = list[T](), list(known)
    values = (document.value for document in documents)
    given = (value.get("name") for value in values if isinstance(value, dict))
    names = tuple(name for name in given if isinstance(name, str))
    for number, document in enumerate(documents, 1):
        parsed = parse(document)
        if isinstance(parsed, list):
            place = number if len(documents) > 1 else None
            problems += [problem.model_copy(update={"document": place}) for problem in parsed]
        else:
            items.append(parsed)
    if problems:
        return ParsedFile((), tuple(sorted(problems, key=lambda problem: problem.line or 0)), names=names)
    return ParsedFile(tuple(items), (), tuple(document.lines for document in documents), names)


EVERY_USE = frozenset(TextUse)


def misread(
    model: type[BaseModel],
    document: Document,
    *,
    prefix: Path = (),
    aliases: Mapping[str, str] | None = None,
    uses: Collection[TextUse] = EVERY_USE,
) -> list[Problem]:
    """Return a problem for each text in the document that YAML silently cut off or joined, in any order.

    model: of the mapping at ``prefix``. aliases: alternative names of its keys. uses: the uses of text to check. After
    prose, any comment is refused; after a label, only one that looks like part of it, such as ``#42``.
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
            value: Any = document.value
            for part in path:
                value = value[part]
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
    """Return what is wrong with a text that is not valid YAML. If a value is refused because of its notation, the
    remedy names the notations that its field accepts, and none that would be refused again.

    model, prefix, aliases: as for ``misread``.
    """
    if not bad.forms or bad.path[: len(prefix)] != prefix:
        return bad.problem
    below = bad.path[len(prefix) :]
    if aliases and below:
        below = (aliases.get(str(below[0]), below[0]), *below[1:])
    remedy = remedy_among(model, below, [(form.value, form.form) for form in bad.forms])
    return bad.problem if remedy is None else bad.problem.model_copy(update={"remedy": remedy})


def beside(cut: Sequence[Problem], parsed: T | list[Problem]) -> T | list[Problem]:
    """Return the parsed document, or its problems: those found by ``misread``, plus those of other fields."""
    if not cut:
        return parsed
    fields = {problem.field for problem in cut}
    others = [problem for problem in parsed if problem.field not in fields] if isinstance(parsed, list) else []
    return sorted([*cut, *others], key=lambda problem: problem.line or 0)


def _is_part(comment: str) -> bool:
    """True if the comment looks like part of the preceding text: its sign is followed by a letter or digit, or by
    nothing."""
    return comment == "#" or comment[1:2].isalnum()


SUFFIXES = (".yaml", ".yml", ".md", ".json")
_FENCE = regex(r"(?:---|\.\.\.)[ \t]*\Z")
_UNLIKE_YAML = regex(
    r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)|[\x85\u2028\u2029]", re.IGNORECASE | re.DOTALL
)


def is_document(name: str) -> bool:
    """Return whether a file with that name is a document: not hidden, not an editor's or downloader's temporary file,
    not a README."""
    stem, dot, suffix = name.rpartition(".")
    if not dot or f".{suffix.lower()}" not in SUFFIXES:
        return False
    return not stem.startswith((".", "#", "~")) and stem.upper() != "README" and stem != ""


def documents_of(
    text: str,
    filename: str,
    *,
    body: str,
    noun: str,
    read_front_matter: Callable[[str, int], list[Document]] = read_documents,
) -> list[Document]:
    """Return the documents; none for an empty file. Raises BadText, also for a synchroniser's conflict copy.

    filename: its suffix determines the format. body: the field that holds the text below Markdown front matter. noun:
    what a document describes, for people. read_front_matter: takes the front matter and its first line number.
    """
    if problem := conflict_problem(filename):
        raise BadText(problem)
    suffix = filename.rpartition(".")[2].lower()
    if suffix == "md":
        return [_front_matter(text, body, noun, read_front_matter)]
    return read_documents(_UNLIKE_YAML.sub(_as_yaml, text) if suffix == "json" else text)


def _as_yaml(match: re.Match[str]) -> str:
    """JSON writes a character beyond U+FFFF as two escapes, YAML as one. Three that JSON allows in a text end a line in
    YAML."""
    if match[1] is None:
        return match[0] if match[0].startswith("\\") else f"\\u{ord(match[0]):04x}"
    code = 0x10000 + ((int(match[1], 16) - 0xD800) << 10) + (int(match[2], 16) - 0xDC00)
    return f"\\U{code:08x}"


def _front_matter(text: str, body: str, noun: str, read: Callable[[str, int], list[Document]]) -> Document:
    lines = text.split("\n")
    if not _FENCE.match(lines[0].rstrip("\r")) or lines[0].startswith("."):
        message = f"a Markdown {noun} begins with a `---` line, its fields and another `---` line"
        raise BadText(Problem(line=1, message=message, remedy="add them above the text (`---` twice is enough)"))
    end = next((index for index, line in enumerate(lines[1:], 1) if _FENCE.match(line.rstrip("\r"))), None)
    if end is None:
        raise BadText(Problem(line=1, message="the `---` of the first line has no second", remedy="add a `---` line"))
    documents = read("\n".join(lines[1:end]), 2)
    head = documents[0] if documents else Document({}, {(): 1})
    first = next((index for index, line in enumerate(lines[end + 1 :], end + 1) if line.strip()), None)
    if not isinstance(head.value, dict) or (first is None and body in head.value):
        return head
    if first is None:
        message, remedy = "there is no text below the front matter", "write there what to do"
        raise BadText(Problem(line=end + 1, field=body, message=message, remedy=remedy))
    if body in head.value:
        line, message = head.lines[(body,)], f"appears twice: here, and as the text from line {first + 1}"
        raise BadText(Problem(line=line, field=body, message=message, remedy="remove one of them"))
    below = "\n".join(line.rstrip("\r") for line in lines[first:]).rstrip()
    return replace(head, value={**head.value, body: below}, lines={**head.lines, (body,): first + 1})
