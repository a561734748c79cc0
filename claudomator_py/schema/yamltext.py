"""Parses YAML text into plain values, safely: no tags, no bombs, no surprises, and the line of every value.

Events are read one by one and every limit is checked on the way, so hostile text costs no more than honest text. Plain
words mean what YAML 1.1 says, except that times stay text and every JSON number is a number. What YAML 1.1 reads as a
number and people do not, such as ``010`` (8) and ``1:30`` (90), is refused, and so is a tag or an anchor that would
silently disappear from a text.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import field

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from claudomator_py.domain.errors import NUMBER_OR_TEXT, Path, field_name, shown
from claudomator_py.schema.yamlfaults import COMMENT, BadText, SuggestedValue, bad, syntax_fault
from claudomator_py.texts import cut
from claudomator_py.values import dataclass, regex

# YAML 1.1 requires a dot and a sign in a number with an exponent; JSON and YAML 1.2 do not.
_JSON_FLOAT = regex(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE][+-]?[0-9]+")

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]

MAX_BYTES = 2**20
MAX_DEPTH = 40
MAX_VALUES = 20_000
MAX_CHARACTERS = 4 * 2**20
MAX_DOCUMENTS = 500
_MAX_NUMBER = 100
_WHOLE = regex(r"0|[1-9]\d{0,9}", re.ASCII)
_MAX_KEY = 200
_MAX_QUOTED_LENGTH = 400

_DECIMAL = {
    "int": regex(r"[-+]?(?:0|[1-9][0-9]*)"),
    "float": regex(r"[-+]?(?:[0-9]+\.[0-9]*|[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+\.[0-9]*[eE][-+]?[0-9]+)"),
}
"""How people write numbers. YAML 1.1 allows more: base 2, 8, 16 and 60, and ``_`` between digits
(yaml.org/type/int.html and float.html)."""
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(_TAG + name for name in ("str", "timestamp", "value", "merge"))
_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_FORBIDDEN = regex("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
# YAML 1.1 ends a line with each of them, YAML 1.2 and people do not: behind one in a comment or a text, nobody sees the
# next key (yaml.org/spec/1.2.2/ext/changes).
_UNSEEN_LINE_ENDS = regex("[\x85\u2028\u2029]")

_resolve: Callable[[type[yaml.Node], str, tuple[bool, bool]], str] = Resolver().resolve
_constructor = SafeConstructor()


@dataclass(frozen=True, slots=True)
class Document:
    """One document. lines: line number, starting at 1, of each key and list item by path, and of the document itself at
    ``()``."""

    value: Plain
    lines: dict[Path, int]
    comments: dict[Path, str] = field(default_factory=dict)
    """By the path of an unquoted text, the comment after it on the same line, with its ``#``."""
    comment_lines: dict[Path, str] = field(default_factory=dict)
    """By the path of an unquoted text, the comment on the line below it, or between its key and it, if that is indented
    like part of it: deeper than the key."""
    folded: frozenset[Path] = frozenset()
    """Texts that YAML folded into fewer lines than were written."""


def decode(data: bytes) -> str:
    """Return the bytes as text, UTF-8 with or without a byte order mark. Raises BadText."""
    if len(data) > MAX_BYTES:
        message = f"the file is longer than {MAX_BYTES} bytes"
        raise bad(None, message, "put large material into a file that the task reads")
    for mark, name in _MARKS:
        if data.startswith(mark):
            raise bad(None, f"the file is encoded in {name}", "save it as UTF-8")
    if (nul := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise bad(line, "contains a NUL byte, so it is not a text file", "save it as text, in UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # If there is a byte order mark, error.object and error.start both exclude its three bytes.
        before = bytes(error.object[: error.start])
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        message = f"the byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise bad(line, message, "save the file as UTF-8", column) from None


def read_documents(text: str, first_line: int = 1) -> list[Document]:
    """Return every non-empty document in the text. first_line: line of the file on which the text begins. Raises
    BadText."""
    for characters, why, remedy in (
        (_FORBIDDEN, "YAML forbids", "remove it"),
        (_UNSEEN_LINE_ENDS, "ends a line for some YAML programs only", "write an ordinary line end, or a space"),
    ):
        if match := characters.search(text):
            before = text[: match.start()]
            line, column = before.count("\n") + first_line, len(before) - before.rfind("\n")
            raise bad(line, f"contains the character U+{ord(match[0]):04X}, which {why}", remedy, column)
    try:
        return _Builder(first_line).read(text)
    except yaml.MarkedYAMLError as error:
        raise syntax_fault(error, text, first_line) from None
    except yaml.YAMLError as error:
        raise bad(None, f"is not YAML: {shown(str(error))}", "check it with an editor that knows YAML") from None


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been reached, and the counts before it."""

    value: list[Plain] | dict[str, Plain]
    path: Path
    anchor: str | None
    values_before: int
    characters_before: int
    column: int
    """Column of its dashes, or of its latest key."""
    in_brackets: bool
    key: str | None = None


@dataclass(frozen=True, slots=True)
class _Anchored:
    """What an alias refers to, and its size when expanded. values: 0 while it is still open."""

    value: Plain
    values: int
    characters: int


class _Builder:
    """Builds values from events. Aliases count with their expanded size, so nothing can grow unnoticed."""

    def __init__(self, first_line: int) -> None:
        self._first_line = first_line
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._values = 0
        self._characters = 0
        self._root: Plain = None
        self._lines: dict[Path, int] = {}
        self._comments: dict[Path, str] = {}
        self._comment_lines: dict[Path, str] = {}
        self._folded: set[Path] = set()
        self._unused: dict[str, BadText] = {}
        """By the anchors of texts that no alias has referred to yet: the refusal if none ever does."""
        self._text = ""
        self._has_comments = False

    def read(self, text: str) -> list[Document]:
        self._text = text
        self._has_comments = "#" in text
        documents: list[Document] = []
        count = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            line = (event.start_mark.line if event.start_mark else 0) + self._first_line
            match event:
                case yaml.DocumentStartEvent():
                    count += 1
                    if count > MAX_DOCUMENTS:
                        raise bad(line, f"has more than {MAX_DOCUMENTS} documents", "use several files")
                    self._root, self._lines, self._anchors = None, {}, {}
                    self._comments, self._comment_lines, self._folded = {}, {}, set()
                case yaml.DocumentEndEvent():
                    for refusal in self._unused.values():
                        raise refusal
                    if self._root is not None:
                        noted = (self._comments, self._comment_lines, frozenset(self._folded))
                        documents.append(Document(self._root, self._lines, *noted))
                case yaml.ScalarEvent():
                    self._scalar(event, line)
                case yaml.AliasEvent():
                    self._alias(event.anchor or "", line)
                case yaml.MappingStartEvent():
                    self._begin({}, event, line)
                case yaml.SequenceStartEvent():
                    self._begin([], event, line)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._end()
        return documents

    def _place(self) -> Path:
        """Path of the next value."""
        if not self._open:
            return ()
        top = self._open[-1]
        return (*top.path, len(top.value) if isinstance(top.value, list) else str(top.key))

    def _wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _refusal(self, line: int, message: str, remedy: str, path: Path | None = None) -> BadText:
        return bad(line, message, remedy, field=field_name(self._place() if path is None else path))

    def _count(self, values: int, characters: int, line: int) -> None:
        self._values += values
        self._characters += characters
        if self._values > MAX_VALUES or self._characters > MAX_CHARACTERS:
            message = f"is more than {MAX_VALUES} values or {MAX_CHARACTERS} characters, with its aliases written out"
            raise self._refusal(line, message, "make it smaller", ())

    def _put(self, value: Plain, line: int) -> None:
        path = self._place()
        self._lines.setdefault(path, line)
        if not self._open:
            self._root = value
            return
        top = self._open[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        else:
            top.value[str(top.key)] = value
            top.key = None

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._count(1, len(event.value), line)
        tag = event.tag
        if tag is None:
            tag = _resolve(yaml.ScalarNode, event.value, event.implicit)
        if self._wants_key():
            self._key(event.value, tag, line)
            self._open[-1].column = event.start_mark.column if event.start_mark else 0
            return
        if event.implicit[0] and tag == _TAG + "str" and _JSON_FLOAT.fullmatch(event.value):
            tag = _TAG + "float"
        value = self._constructed(event.value, tag, line)
        self._note(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1, len(event.value))
            message = (
                f"`&{shown(event.anchor)}` is an anchor to YAML, which is no part of the text, and nothing uses it"
            )
            remedy = f"put the text in quotes: {quoted(f'&{event.anchor} {event.value}'.strip())}"
            self._unused.setdefault(event.anchor, self._refusal(line, message, remedy))
        self._put(value, line)

    def _note(self, event: yaml.ScalarEvent) -> None:
        """Record what may be missing from the text, or joined in it, without its author's knowledge."""
        begin, end = event.start_mark, event.end_mark
        if begin is None or end is None:
            return
        if self._has_comments and not event.style and (comment := COMMENT.match(self._text, end.index)):
            self._comments[self._place()] = comment[1].rstrip()
        if self._has_comments and self._open and not self._open[-1].in_brackets and event.style not in ("'", '"'):
            is_block = event.style is not None
            beside = _comment_beside(self._text, begin.index, end.index, self._open[-1].column, is_block=is_block)
            if beside is not None:
                self._comment_lines[self._place()] = beside
        if end.line > begin.line and event.style != "|":
            written = sum(bool(line.strip()) for line in self._text[begin.index : end.index].splitlines())
            lines = sum(bool(line.strip()) for line in event.value.splitlines())
            if written - (event.style == ">") > max(1, lines):
                self._folded.add(self._place())

    def _key(self, text: str, tag: str, line: int) -> None:
        top = self._open[-1]
        if tag == _TAG + "merge":
            raise self._refusal(line, "`<<` (merge) is not supported", "write the keys out", top.path)
        # An integer also works as a key's text: exit codes are such keys. The schema decides what is allowed.
        if tag not in _TEXT_TAGS and not (tag == _TAG + "int" and _WHOLE.fullmatch(text)):
            message = f"the key `{shown(text)}` is not text to YAML"
            raise self._refusal(line, message, f'put it in quotes: "{shown(text)}"', top.path)
        if len(text) > _MAX_KEY:
            raise self._refusal(line, f"a key is longer than {_MAX_KEY} characters", "shorten it", top.path)
        path = (*top.path, text)
        if text in top.value:
            raise self._refusal(line, f"is already defined in line {self._lines[path]}", "remove one of them", path)
        top.key = text
        self._lines[path] = line

    def _constructed(self, text: str, tag: str, line: int) -> Plain:
        """The scalar's value. A number that is not finite or exceeds 64 bits is left to the schema's own checks."""
        if tag in _TEXT_TAGS:
            return text
        kind = tag.removeprefix(_TAG)
        node = yaml.ScalarNode(tag, text)
        try:
            match kind:
                case "null" if text == "~":
                    refusal = self._refusal(
                        line, "`~` is an empty value to YAML", 'write "~" for the home, or delete it'
                    )
                    raise refusal.written(self._place(), SuggestedValue(text, quoted(text)))
                case "null":
                    return None
                case "bool":
                    return bool(_constructor.construct_yaml_bool(node))
                case "int" | "float" if len(text) > _MAX_NUMBER:
                    refusal = self._refusal(line, f"is a number of more than {_MAX_NUMBER} characters", NUMBER_OR_TEXT)
                    raise refusal.written(self._place(), SuggestedValue(text, quoted(text)))
                case "int":
                    return self._decimal(text, kind, int(_constructor.construct_yaml_int(node)), line)
                case "float":
                    return self._decimal(text, kind, _finite(float(_constructor.construct_yaml_float(node))), line)
        except (ValueError, KeyError, IndexError, OverflowError):
            noun = "finite number" if kind == "float" else f"valid {kind}"
            refusal = self._refusal(line, f"`{shown(text)}` is not a {noun}", NUMBER_OR_TEXT)
            raise refusal.written(self._place(), SuggestedValue(text, quoted(text))) from None
        raise self._tag_refusal(tag, text, line)

    def _decimal(self, text: str, kind: str, number: float, line: int) -> float:
        """The number; refused if people would read a different one, or none."""
        if _DECIMAL[kind].fullmatch(text):
            return number
        message, text_form = f"`{shown(text)}` is the number {number} to YAML", quoted(text)
        refusal = self._refusal(line, message, f"write {number} for the number, or {text_form} for the text")
        raise refusal.written(self._place(), SuggestedValue(number, str(number)), SuggestedValue(text, text_form))

    def _tag_refusal(self, tag: str, text: str, line: int) -> BadText:
        """The refusal of a tag. text: what follows it; empty for a list or mapping."""
        own = tag.startswith("!") and text
        remedy = f"put the text in quotes: {quoted(f'{tag} {text}')}" if own else "remove the tag"
        return self._refusal(line, f"the tag `{shown(tag)}` is not supported", remedy)

    def _alias(self, anchor: str, line: int) -> None:
        if self._wants_key():
            raise self._refusal(line, "a key cannot be an alias", "write it out", self._open[-1].path)
        known = self._anchors.get(anchor)
        if known is None:
            raise self._refusal(line, f"the alias `*{shown(anchor)}` has no anchor before it", "put the text in quotes")
        if known.values == 0:
            raise self._refusal(line, f"the alias `*{shown(anchor)}` refers to what contains it", "remove it")
        self._count(known.values, known.characters, line)
        self._unused.pop(anchor, None)
        self._put(known.value, line)

    def _begin(
        self, value: list[Plain] | dict[str, Plain], event: yaml.MappingStartEvent | yaml.SequenceStartEvent, line: int
    ) -> None:
        if self._wants_key():
            raise self._refusal(line, "a key must be a text", "put it in quotes", self._open[-1].path)
        standard = _TAG + ("map" if isinstance(value, dict) else "seq")
        if event.tag not in (None, standard):
            raise self._tag_refusal(event.tag, "", line)
        if len(self._open) >= MAX_DEPTH:
            raise self._refusal(line, f"is nested more than {MAX_DEPTH} deep", "flatten it", self._place()[:3])
        path = self._place()
        self._lines.setdefault(path, line)
        column = event.start_mark.column if event.start_mark else 0
        before = (self._values, self._characters)
        self._open.append(_Open(value, path, event.anchor, *before, column, in_brackets=event.flow_style is True))
        self._count(1, 0, line)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 0, 0)

    def _end(self) -> None:
        done = self._open.pop()
        if done.anchor is not None:
            values = self._values - done.values_before
            self._anchors[done.anchor] = _Anchored(done.value, values, self._characters - done.characters_before)
        self._put(done.value, 0)


def quoted(text: str) -> str:
    """Return the text as a quoted YAML value; the end of a long one is replaced by dots."""
    return json.dumps(cut(text, _MAX_QUOTED_LENGTH), ensure_ascii=False)


def _comment_beside(text: str, begin: int, end: int, column: int, *, is_block: bool) -> str | None:
    """Return the comment next to the scalar from begin to end, above or below, if it is indented deeper than the
    scalar's key or dash, which is in that column. is_block: True if the scalar is written under ``|`` or ``>``."""
    first = text.rfind("\n", 0, begin) + 1
    above = below = ""
    while first > 0 and not text[first:begin].strip() and not above.strip():
        begin, first = first, text.rfind("\n", 0, first - 1) + 1
        above = text[first:begin]
    # A block scalar ends at the start of the next line, any other scalar on its own line.
    last = end - 1 if is_block else text.find("\n", end)
    # A comment at the key's own depth may be between the text and a comment that is indented like part of it.
    while last >= 0 and not _is_comment_below(column, below) and below.lstrip()[:1] in ("", "#", "\r"):
        first, last = last + 1, text.find("\n", last + 1)
        below = text[first : last if last >= 0 else None]
    return next((line.strip() for line in (above, below) if _is_comment_below(column, line)), None)


def _is_comment_below(column: int, line: str) -> bool:
    indented = line.lstrip(" ")
    return indented.startswith("#") and len(line) - len(indented) > column


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number
