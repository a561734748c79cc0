"""Find the commands that program code starts, and known library calls, by expressions that fit many languages."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from claudomator_py.acts.catalogue import ActKind
from claudomator_py.values import regex

MAX_CODE: Final = 200_000
"""Characters of code that are read; the rest is ignored."""
# `subprocess.run(`, `os.system(`, `execSync(`, `system(`, `Popen(`, `%x(`, `child_process.spawn(` ...
_START = regex(
    r"\b(?:system|popen\d?|Popen|run|call|check_call|check_output|getoutput|getstatusoutput|exec(?:Sync|File|FileSync|vp?e?|lp?e?|a)?"
    r"|spawn(?:Sync|vp?e?|lp?e?)?|fork|shell_exec|passthru|proc_open|sh|shell|bash|cmd|command|Command|startProcess|create_subprocess_shell"
    r"|create_subprocess_exec|capture2e?|capture3|pcntl_exec|local|execute|execa|execaCommand|zx|\$)\s*\(?\s*(?=[\[(]|[rbfuRBFU]{0,2}[\"'`])"
)
_START_NAMED = regex(
    r"\b(?:system|popen\d?|Popen|run|call|check_call|check_output|getoutput|getstatusoutput|exec(?:Sync|File|FileSync)?"
    r"|spawn(?:Sync)?|shell_exec|passthru|proc_open|create_subprocess_(?:shell|exec)|execa|execaCommand)\s*\(\s*\*?"
    r"([A-Za-z_]\w*)\s*[,)]"
)
"""The same calls with a variable as the argument."""
_MAX_WORDS = 60
_BACKTICKS = regex(r"`([^`\n]{2,500})`|%x[\[({]([^\])}]{2,500})|\bqx[\[({/]([^\])}/]{2,500})")
_STRING = regex(
    r"""[rbfu]{0,2}(?:\"\"\"(.*?)\"\"\"|'''(.*?)'''|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`)""",
    re.DOTALL,
)
_BETWEEN = regex(r"[\s,\[\]{]*(?:args\s*[=:]\s*)?[\s,\[\]]*")


def does(text: str, known: Sequence[tuple[re.Pattern[str], ActKind]]) -> Iterator[tuple[ActKind, str]]:
    """Yield each kind of act among the known calls in the code, with the line of its first occurrence."""
    text = text[:MAX_CODE]
    for expression, kind in known:
        if match := expression.search(text):
            begin = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            yield kind, text[begin : len(text) if end < 0 else end].strip()


def commands(text: str) -> Iterator[str | tuple[str, ...]]:
    """Yield the commands that the code starts: a string is shell text, a tuple is an argv."""
    text = text[:MAX_CODE]
    for start in _START.finditer(text):
        yield from _command_at(text, start.end())
    for start in _START_NAMED.finditer(text):
        for given in re.finditer(rf"\b{re.escape(start[1])}\s*=\s*(?=[\[\"'`(])", text):
            yield from _command_at(text, given.end())
    for match in _BACKTICKS.finditer(text):
        yield next(group for group in match.groups() if group is not None)


def _command_at(text: str, at: int) -> Iterator[str | tuple[str, ...]]:
    """Yield the command written as a literal at this position. ``spawn("npm", ["publish"])`` is an argv, too."""
    words: list[str] = []
    in_list = text[at : at + 1] in "[("
    while len(words) <= _MAX_WORDS and (gap := _BETWEEN.match(text, at)):
        string = _STRING.match(text, gap.end())
        if string is None:
            break
        words.append(_unescaped(next((group for group in string.groups() if group is not None), "")))
        at = string.end()
    if len(words) > 1:
        yield tuple(words)
    if len(words) > 2 and words[0] == words[1]:
        yield tuple(words[1:])  # `execvp("npm", ["npm", "publish"])`
    if words and not (in_list and len(words) > 1):
        yield words[0]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text)
