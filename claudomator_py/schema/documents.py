"""The documents of a file: YAML, JSON, or Markdown with its fields between two ``---`` lines."""

import re
from collections.abc import Callable
from dataclasses import replace

from claudomator_py.domain.errors import Problem
from claudomator_py.schema.conflict_copies import conflict_problem
from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.schema.yamltext import Document, read_documents

SUFFIXES = (".yaml", ".yml", ".md", ".json")
_FENCE = re.compile(r"(?:---|\.\.\.)[ \t]*\Z")
_ESCAPED = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.IGNORECASE | re.DOTALL)


def is_document(name: str) -> bool:
    """Return whether a file of that name is one: not hidden, no editor's or downloader's temporary, no README."""
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
    """Return the documents; none in an empty file. Raises BadText, also for a copy that a synchroniser has left.

    filename: its suffix says how to read it. body: the field that the text below the front matter of Markdown is.
    noun: what a document describes, for people. read_front_matter: its text, and the line where it begins.
    """
    if problem := conflict_problem(filename):
        raise BadText(problem)
    suffix = filename.rpartition(".")[2].lower()
    if suffix == "md":
        return [_front_matter(text, body, noun, read_front_matter)]
    return read_documents(_ESCAPED.sub(_joined, text) if suffix == "json" else text)


def _joined(match: re.Match[str]) -> str:
    """JSON writes a character beyond U+FFFF as two escapes, YAML as one."""
    if match[1] is None:
        return match[0]
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
