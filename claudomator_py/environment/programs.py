"""Determines which programs a command certainly runs: its own, and those behind ``sh -c``, ``env``, ``timeout`` and the
like."""

from collections.abc import Iterator, Sequence

from claudomator_py.acts.catalogue import catalogue
from claudomator_py.acts.shell import parse
from claudomator_py.acts.shell_tree import Pipeline, SimpleCommand, Word
from claudomator_py.acts.wrapped import inner_words
from claudomator_py.domain.command_line import BUILTINS, RESERVED_WORDS, SHELLS
from claudomator_py.values import regex

_MAX_DEPTH = 8
_MAY_BE_PASSED_OVER = regex(r"\|\||\b(?:if|while|until|for|case|function|trap|alias)\b")
"""Shell syntax after which commands may not run, or others may run instead."""
_SETS_UP = frozenset({".", "source", "eval", "exec", "hash", "return", "exit"})
"""After these, PATH may contain anything, or nothing runs at all."""
_NOT_SURE = frozenset(
    {"xargs", "parallel", "entr", "script", "watch", "systemd-run", "nsenter", "unshare", "sudo", "doas"}
)
"""Programs that run others elsewhere, or take them from somewhere other than an argument."""
_OWN = ("-i", "-", "-S", "--split-string", "--ignore-environment", "-C", "--chdir")
"""Options of ``env`` that change where programs are found."""
_NAMED_OPTION = regex(r"[-+][A-Za-z]*[oO]")
_VARIABLE = regex(r"[A-Za-z_]\w*=")


def programs_of(words: Sequence[str], depth: int = 0) -> Iterator[str]:
    """Return the programs that a command with these words runs, as far as its text makes that certain."""
    if not words or depth > _MAX_DEPTH:
        return
    program, behind = words[0], list(words[1:])
    yield program
    name = program.rpartition("/")[2]
    if name in SHELLS:
        if (text := _text_of(behind)) is not None:
            yield from _in_text(text, depth)
    elif name in _NOT_SURE or (name == "env" and any(word.partition("=")[0] in _OWN for word in behind)):
        return
    elif (wrapper := catalogue().wrappers.get(name)) is not None and name not in BUILTINS:
        inner = inner_words(name, wrapper, behind, None)
        while name == "env" and inner and _VARIABLE.match(inner[0]):
            if inner[0].startswith("PATH="):
                return
            inner = inner[1:]
        yield from programs_of(inner, depth + 1)


def _text_of(words: Sequence[str]) -> str | None:
    """The text that a shell with these arguments runs; None for a script or standard input."""
    is_text = is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith(("-", "+")) and word != "-":
            is_text = is_text or (not word.startswith("--") and word.startswith("-") and "c" in word)
            is_value = word in ("--rcfile", "--init-file") or _NAMED_OPTION.fullmatch(word) is not None
        else:
            return word if is_text else None
    return None


def _in_text(text: str, depth: int) -> Iterator[str]:
    if _MAY_BE_PASSED_OVER.search(text):
        return
    moved = False
    for node in parse(text):
        stages = node.stages if isinstance(node, Pipeline) else (node,)
        for stage in stages:
            if not isinstance(stage, SimpleCommand):
                return
            words = [_plain(word) for word in stage.words]
            begins = [str(word[0]) for word in stage.words if word]
            sets_path = any(variable == "PATH" for variable, _ in stage.assignments)
            if sets_path or any(word.startswith("PATH=") for word in begins) or (words and words[0] in _SETS_UP):
                return
            if not words or words[0] is None:
                continue
            moved = moved or words[0] in ("cd", "pushd", "popd")
            if words[0] in BUILTINS | RESERVED_WORDS:
                continue
            known = [word if word is not None else "\0" for word in words]
            for program in programs_of(known, depth + 1):
                if "\0" not in program and not (moved and "/" in program and not program.startswith("/")):
                    yield program


def _plain(word: Word) -> str | None:
    """The word as text; None if its value is known only at run time."""
    return "".join(part for part in word if isinstance(part, str)) if all(isinstance(p, str) for p in word) else None
