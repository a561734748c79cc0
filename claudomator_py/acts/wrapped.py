"""Takes commands out of those that run them: ``sudo -u root timeout 5 npm publish``, ``find -exec rm {} +``."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from claudomator_py.acts.catalogue import Catalogue, Wrapper
from claudomator_py.acts.pattern import UNKNOWN

_RUNNING: Final = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
_MAX_KEY: Final = 3
"""Words of a key such as ``docker compose exec``."""
_MAX_GIVEN: Final = 100
"""Words that ``xargs`` is seen to add."""


def longest_key(
    program: str, words: Sequence[str], keys: Mapping[str, object] | frozenset[str], known: Catalogue
) -> tuple[str | None, list[str]]:
    """Return the longest of the keys with which the command begins, without its options, and the words after that."""
    best: tuple[str | None, list[str]] = (program if program in keys else None, list(words))
    said, valued, is_value = [program], known.values.get(program, frozenset()), False
    for at, word in enumerate(words):
        if is_value or word.startswith("-"):
            is_value = not is_value and word in valued
            continue
        said.append(word)
        if (key := " ".join(said)) in keys:
            best = key, list(words[at + 1 :])
        if len(said) >= _MAX_KEY:
            break
    return best


def inner_words(key: str, wrapper: Wrapper, words: Sequence[str], stdin: str | None) -> list[str]:
    """Return the words of the command that the wrapper runs. stdin: what ``xargs`` reads, if that is known."""
    at, left = 0, wrapper.skip
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if word.startswith("-") and len(word) > 1:
            at += 2 if word in wrapper.values else 1
        elif left:
            left -= 1
            at += 1
        else:
            break
    inner = list(words[at:])
    if key != "xargs" or stdin is None or UNKNOWN in stdin:
        return inner
    given = stdin.split()[:_MAX_GIVEN]
    marks = [words[n + 1] for n, word in enumerate(words[: at - 1]) if word == "-I"]
    marks += [word[2:] for word in words[:at] if word.startswith("-I") and len(word) > 2]
    return [word.replace(marks[0], " ".join(given)) for word in inner] if marks else [*inner, *given]


def image_of(words: Sequence[str], wrapper: Wrapper) -> str:
    """Return the program that is the image of ``docker run``: ``aws`` of ``amazon/aws-cli:2``; empty: it is none."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in wrapper.values else 1
    image = words[at] if at < len(words) else ""
    if "/" not in image:
        return ""
    return posixpath.basename(image.partition("@")[0]).partition(":")[0].removesuffix("-cli")


def executed(words: Sequence[str]) -> Iterator[list[str]]:
    """Return the commands that ``find -exec`` and its like run."""
    at = 0
    while at < len(words):
        if words[at] in _RUNNING:
            end = next((n for n in range(at + 1, len(words)) if words[n] in (";", "+")), len(words))
            yield list(words[at + 1 : end])
            at = end
        at += 1


def after(words: Sequence[str], word: str) -> list[str]:
    """Return the words after that one; none where it is not there."""
    return list(words[words.index(word) + 1 :]) if word in words else []
