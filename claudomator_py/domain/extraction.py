"""What a task's text names, by rules alone: what it wants in one line, and its files, commands, tickets and addresses.

The same text always gives the same. What it names is data: it grants nothing, and nobody looks whether it exists.
"""

import re
from collections.abc import Iterable
from typing import Final

from claudomator_py.domain.handoff import MAX_FIELD_LENGTH, MAX_FIELDS, MAX_INTENT_LENGTH, Extracted
from claudomator_py.domain.personal import without_personal
from claudomator_py.domain.redaction import MARK, MAX_HELD, Redactor
from claudomator_py.domain.transcript import named_in, spoken_in

_MAX_READ: Final = 100_000

_URL = re.compile(r"https?://[^\s<>\"'`\\)\]]{1,2000}")
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@]{1,512}@")
_CODE = re.compile(r"(?<!`)`([^`\n]{1,300})`(?!`)")
_PROMPT = re.compile(r"^[ \t]{0,12}\$ +(\S[^\n]{0,300})$", re.MULTILINE)
_COMMAND = re.compile(r"[A-Za-z_./][\w./+-]*(?: +\S+)+")
_TICKET = re.compile(r"(?<![\w-])(?:[A-Z][A-Z0-9]{1,9}-[1-9]\d{0,6}|#[1-9]\d{0,6})(?![\w-])")
_PATH = re.compile(r"(?<![\w@:/.~+-])(?:~?/|\.{1,2}/)?[\w.@+-]{1,100}(?:/[\w.@+-]{1,100}){0,20}/?(?![\w@])")
_FILE = re.compile(r"[^/]+\.(?:[A-Za-z][A-Za-z0-9]{1,5}|[chrCHR])|Makefile|Dockerfile|LICENSE|README")
_LIST_MARK = re.compile(r"^(?:#{1,6}|[-*+>]|\d{1,3}[.)])\s+")
_CODE_SPAN = r"``[^\n]{1,300}?``(?!`)|(?<!`)`[^`\n]{1,300}`(?!`)"
# Bold words are all that is certain to be a mark of formatting: single asterisks make globs, underscores names, and
# what a code span holds is meant as it is.
_BOLD = re.compile(
    rf"(?P<code>{_CODE_SPAN})"
    rf"|(?<![^\s(\[\"'])(?P<marks>\*{{2,3}})(?=[^\s*/])(?P<bold>(?:{_CODE_SPAN}|[^*`]){{1,300}})(?<![\s/])(?P=marks)(?![\w*/])"
)
# Of a sentence: not of a name such as ``valid?`` or ``..``, after which the sentence continues in small letters.
_END = re.compile(rf"{_CODE_SPAN}|(?P<end>(?<=[\w)\]}}\"'`*_][.!?])(?=\s+(?![a-z])))")


def intent_of(text: str, redactor: Redactor | None = None) -> str:
    """Return what it wants: its first sentence on one line, without marks of lists, headings and bold words, secrets
    and data of persons. Of a conversation, the last message is what counts. Names, paths and patterns stay as they
    are."""
    for line in _clean(spoken_in(text)[-1], redactor).splitlines():
        plain = " ".join(_BOLD.sub(_unmarked, _LIST_MARK.sub("", line.strip())).split())
        if any(letter.isalnum() for letter in plain):
            sentence = plain[
                : next((found.start() for found in _END.finditer(plain) if found["end"] is not None), None)
            ]
            return sentence if len(sentence) <= MAX_INTENT_LENGTH else f"{sentence[: MAX_INTENT_LENGTH - 3]}..."
    return ""


def _unmarked(found: re.Match[str]) -> str:
    return found[0] if found["code"] is not None else found["bold"]


def extracted(text: str, redactor: Redactor | None = None) -> Extracted:
    """Return what it names. redactor: knows the secrets; None: what is one by its shape is left out."""
    text = _clean(_CREDENTIALS.sub("", named_in(text)[: _MAX_READ + MAX_HELD]), redactor)
    urls = [_address(url) for url in _URL.findall(text)]
    commands = [
        found.strip() for found in (*_CODE.findall(text), *_PROMPT.findall(text)) if _COMMAND.fullmatch(found.strip())
    ]
    rest = _URL.sub(" ", text)
    named = [found.rstrip(".") for found in _PATH.findall(rest)]
    files = [one for one in named if _FILE.fullmatch(one.rpartition("/")[2])]
    folders = [one for one in named if "/" in one.strip("/") or one.startswith(("/", "~/", "./", "../"))]
    return Extracted(
        files=_some(files),
        paths=_some(one for one in folders if one not in files and any(letter.isalnum() for letter in one)),
        commands=_some(commands),
        tickets=_some(_TICKET.findall(rest)),
        urls=_some(urls),
    )


def _clean(text: str, redactor: Redactor | None) -> str:
    # Cut only after secrets are out: one that is cut in two is not found.
    return without_personal((redactor or Redactor()).redact(text[: _MAX_READ + MAX_HELD])[:_MAX_READ])


def _address(url: str) -> str:
    return re.split(r"[?#]", url, maxsplit=1)[0].rstrip(".,;:!*")


def _some(found: Iterable[str]) -> tuple[str, ...]:
    fitting = [one for one in found if len(one) <= MAX_FIELD_LENGTH and one != MARK]
    return tuple(dict.fromkeys(fitting))[:MAX_FIELDS]
