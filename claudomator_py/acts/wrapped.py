"""Extract commands from their wrappers: ``sudo -u root timeout 5 npm publish``, ``find -exec rm {} +``."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from claudomator_py.acts.catalogue import Catalogue, Wrapper
from claudomator_py.acts.pattern import UNKNOWN

_RUNNING: Final = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
_MAX_KEY: Final = 3
"""Words in a key such as ``docker compose exec``."""
_MAX_GIVEN: Final = 100
"""Words of input that ``xargs`` is taken to append."""


def longest_key(
    program: str, words: Sequence[str], keys: Mapping[str, object] | frozenset[str], known: Catalogue
) -> tuple[str | None, list[str]]:
    """Return the longest key that the command begins with, options skipped, and the words after it. The key is None if
    none matches."""
    best: tuple[str | None, list[str]] = (program if program in keys else None, list(words))
    prefix, valued, is_value = [program], known.values.get(program, frozenset()), False
    for at, word in enumerate(words):
        if is_value or word.startswith("-"):
            is_value = not is_value and word in valued
            continue
        prefix.append(word)
        if (key := " ".join(prefix)) in keys:
            best = key, list(words[at + 1 :])
        if len(prefix) >= _MAX_KEY:
            break
    return best


def inner_words(key: str, wrapper: Wrapper, words: Sequence[str], stdin: str | None) -> list[str]:
    """Return the words of the command that the wrapper runs, the variables that it sets among them. stdin: the input
    of ``xargs``, if known."""
    at, left = 0, wrapper.skip
    given = [wrapper.program] if wrapper.program else []
    if wrapper.dashes and "--" in words:
        return [*given, *after(words, "--")]
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if word.startswith("-") and len(word) > 1:
            option, equals, value = word.partition("=")
            if option in wrapper.env:
                given[:0] = [value] if equals else words[at + 1 : at + 2]
            at += 2 if word in wrapper.values else 1
        elif left:
            left -= 1
            at += 1
        else:
            break
    inner = [*given, *words[at:]]
    if key != "xargs" or stdin is None or UNKNOWN in stdin:
        return inner
    read = stdin.split()[:_MAX_GIVEN]
    marks = [words[n + 1] for n, word in enumerate(words[: at - 1]) if word == "-I"]
    marks += [word[2:] for word in words[:at] if word.startswith("-I") and len(word) > 2]
    return [word.replace(marks[0], " ".join(read)) for word in inner] if marks else [*inner, *read]


def image_of(words: Sequence[str], wrapper: Wrapper) -> str:
    """Return the program that a ``docker run`` image is named after, such as ``aws`` for ``amazon/aws-cli:2``. Empty if
    the image has no namespace: then it is hardly a program's own."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in wrapper.values else 1
    image = words[at] if at < len(words) else ""
    if "/" not in image:
        return ""
    return posixpath.basename(image.partition("@")[0]).partition(":")[0].removesuffix("-cli")


def program_of(package: str) -> str:
    """Return the program that a package of npm is named after, such as ``railway`` for ``@railway/cli@3``, and
    ``firebase`` for ``firebase-tools``."""
    scope, _, name = package.removeprefix("@").rpartition("/")
    name = name.partition("@")[0]
    return scope if scope and name == "cli" else name.removesuffix("-cli").removesuffix("-tools")


def executed(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands that ``find -exec`` and the like run."""
    at = 0
    while at < len(words):
        if words[at] in _RUNNING:
            end = next((n for n in range(at + 1, len(words)) if words[n] in (";", "+")), len(words))
            yield list(words[at + 1 : end])
            at = end
        at += 1


def after(words: Sequence[str], word: str) -> list[str]:
    """Return the words after the first occurrence of ``word``; empty if it does not occur."""
    return list(words[words.index(word) + 1 :]) if word in words else []
