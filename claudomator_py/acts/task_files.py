"""What the names of tasks run that a project defines: tox, nox, rake, invoke, and tables in TOML and JSON files."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from claudomator_py.acts.pattern import Call
from claudomator_py.acts.recipes import Read
from claudomator_py.values import dataclass, regex

_MAX_TEXTS = 60
"""Commands followed for one name."""


@dataclass(frozen=True, slots=True)
class TaskFile:
    """Where programs find the definition of a task name: a ``[[task_files]]`` entry of the data."""

    programs: frozenset[str]
    runs: frozenset[str]
    files: tuple[str, ...]
    options: tuple[str, ...] = ()
    """Options that take the names. Without any, the next word is the name."""
    tables: tuple[str, ...] = ()
    before: str = ""
    prefix: str = ""

    @classmethod
    def read(cls, entry: Mapping[str, str | list[str]]) -> "TaskFile":
        """Build the value from parsed TOML."""

        def split(key: str) -> tuple[str, ...]:
            value = entry.get(key, "")
            return tuple(value.split() if isinstance(value, str) else value)

        return cls(
            frozenset(split("programs")),
            frozenset(split("runs")),
            split("files"),
            split("option"),
            split("tables"),
            str(entry.get("before", "")),
            str(entry.get("prefix", "")),
        )


def defined(program: str, call: Call, known: Sequence[TaskFile], read: Read) -> Iterator[tuple[str, str, bool]]:
    """Yield the text that each name given to the command runs, a label, and whether the text is program code."""
    for task_file in known:
        if program in task_file.programs:
            for name in _names(call, task_file):
                for file in task_file.files:
                    text = read(file)
                    if text is not None:
                        matches = (
                            _in_tables(text, file, name, task_file)
                            if task_file.tables
                            else _in_block(text, file, name, task_file)
                        )
                        yield from ((code, f"{program} {name}", is_code) for code, is_code in matches)


def _names(call: Call, task_file: TaskFile) -> list[str]:
    if task_file.options:
        return [
            name for option in task_file.options for value in call.values(option) for name in value.split(",") if name
        ]
    words = [word.partition("[")[0] for word in call.positionals]
    return words if not task_file.runs else words[1:2] if words[:1] and words[0] in task_file.runs else words[:1]


def _in_tables(text: str, file: str, name: str, task_file: TaskFile) -> Iterator[tuple[str, bool]]:
    try:
        document = json.loads(_COMMENT.sub("", text)) if file.endswith((".json", ".jsonc")) else tomllib.loads(text)
    except ValueError:
        return
    for table in task_file.tables:
        for tasks in _tables(document, table.split(".")):
            wanted, done = [name], set[str]()
            while wanted and len(done) < _MAX_TEXTS:
                key = wanted.pop(0)
                if key not in tasks or key in done:
                    continue
                done.add(key)
                for line in _strings(tasks[key]):
                    wanted.append(line)
                    yield task_file.prefix + line, False


_COMMENT = regex(r"^\s*//.*$", re.MULTILINE)


def _tables(document: object, keys: Sequence[str]) -> Iterator[Mapping[str, object]]:
    if not isinstance(document, dict):
        return
    if not keys:
        yield document
        return
    for key, value in document.items():
        if fnmatchcase(key, keys[0]):
            yield from _tables(value, keys[1:])


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)


def _in_block(text: str, file: str, name: str, task_file: TaskFile) -> Iterator[tuple[str, bool]]:
    """Yield the lines of the name's block, up to the next line that is indented no deeper than its header."""
    like = re.escape(name.rpartition(".")[2].rpartition(":")[2] if "def" in task_file.before else name).replace(
        r"\-", "[-_]"
    )
    header = re.search(rf"^([ \t]*){task_file.before.replace('%s', like)}.*$", text, re.MULTILINE)
    if header is None:
        return
    lines = [header[0][header[0].find(name) + len(name) :]] if file.lower().startswith("rakefile") else []
    for line in text[header.end() :].lstrip("\n").split("\n"):
        if line.strip() and len(line) - len(line.lstrip()) <= len(header[1]) and not _GOES_ON.match(line):
            break
        lines.append(line)
    if not file.endswith(".ini"):
        yield "\n".join(lines), True
        return
    yield "\n".join(_SETTING.sub("", line).strip().removeprefix("-") for line in lines), False


_GOES_ON = regex(r"\s*(?:[\w-]+\s*=|[)\]}])")
_SETTING = regex(r"^\s*(?:commands(?:_pre|_post)?\s*=|(?!commands)[\w-]+\s*=.*$)")
