"""A page of the documentation as steps: what its blocks say is to be done, and what is to be seen.

A block that is to be run is fenced as ``console``: lines ``$ command``, each followed by what it prints. ``…`` stands
for any text of a line, or, alone on one, for any number of lines. An HTML comment right above a block says more:

    <!-- file: PATH -->         the block is written to PATH
    <!-- append: PATH -->       the block is appended to PATH
    <!-- daemon -->             its one command goes on in the background, as in a second terminal
    <!-- not run: REASON -->    the block cannot be run in a test, or is another program's

and these stand alone, for what a reader need not see or does by hand:

    <!-- run: COMMAND -->   <!-- start daemon: COMMAND -->   <!-- stop daemon -->
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

Kind = Literal["file", "append", "daemon", "not run", "run", "start daemon", "stop daemon", "console", "example"]

_COMMENT = re.compile(r"^<!-- (file|append|daemon|not run|run|start daemon|stop daemon)(?:: (.+))? -->$")
_FENCE = re.compile(r"^( *)(`{3,})(\S*)(.*)$")
_ALONE = ("run", "start daemon", "stop daemon")


class BadPage(Exception):
    """The page cannot be read as steps; says where."""


@dataclass
class Command:
    """One command and what it prints. line: where it stands, from 1."""

    line: int
    text: str
    expected: list[str] = field(default_factory=list)


@dataclass
class Step:
    """One thing to do. argument: the path, reason or command of its comment. language: of its fence."""

    kind: Kind
    line: int
    argument: str = ""
    language: str = ""
    body: list[str] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)


def steps_of(path: Path) -> list[Step]:
    """The page's steps, in order. Raises BadPage."""
    steps: list[Step] = []
    texts: tuple[Kind, str] | None = None
    lines = iter(enumerate(path.read_text().splitlines(), 1))
    for number, line in lines:
        comment, fence = _COMMENT.match(line), _FENCE.match(line)
        if comment is not None:
            kind, argument = comment[1], comment[2] or ""
            if kind in _ALONE:
                steps.append(Step(_kind(kind), number, argument))
            else:
                texts = (_kind(kind), argument)
        elif fence is not None:
            end = fence[1] + fence[2]
            body = []
            for _, inner in lines:
                if inner == end:
                    break
                body.append(inner.removeprefix(fence[1]))
            else:
                raise BadPage(f"{path.name}:{number}: the block has no end")
            steps.append(_block(path, number, texts, fence[3] + fence[4], body))
            texts = None
        elif line.strip() and texts is not None:
            raise BadPage(f"{path.name}:{number}: the comment <!-- {texts[0]} --> has no block right below it")
    return steps


def _kind(text: str) -> Kind:
    return next(kind for kind in get_args(Kind) if kind == text)


def _block(path: Path, number: int, texts: tuple[Kind, str] | None, language: str, body: list[str]) -> Step:
    if language != "console":
        if any(line.startswith("$ ") for line in body):
            raise BadPage(f"{path.name}:{number}: a block with commands is fenced as console")
        if texts is not None and texts[0] == "daemon":
            raise BadPage(f"{path.name}:{number}: a daemon is a console block")
    kind, argument = texts or ("console" if language == "console" else "example", "")
    step = Step(kind, number, argument, language, body)
    if kind in ("file", "append", "not run") and not argument:
        raise BadPage(f"{path.name}:{number}: the comment above needs a path or reason")
    if kind in ("console", "daemon"):
        step.commands = _commands(path, number, body)
        if kind == "daemon" and len(step.commands) != 1:
            raise BadPage(f"{path.name}:{number}: one command is a daemon")
    return step


def _commands(path: Path, number: int, body: list[str]) -> list[Command]:
    commands: list[Command] = []
    for offset, line in enumerate(body, 1):
        if line.startswith("$ "):
            commands.append(Command(number + offset, line[2:]))
        elif not commands:
            raise BadPage(f"{path.name}:{number}: a console block begins with `$ command`")
        elif commands[-1].text.endswith("\\") and not commands[-1].expected:
            commands[-1].text += f"\n{line}"
        else:
            commands[-1].expected.append(line)
    if not commands:
        raise BadPage(f"{path.name}:{number}: there is no command in this block")
    return commands
