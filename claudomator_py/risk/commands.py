"""Whether a sentence orders a command to be run that acts on others."""

from functools import lru_cache
from typing import Final

from claudomator_py.acts.prose import commands_in
from claudomator_py.risk.folding import entries, fold
from claudomator_py.values import regex

_CLAUSE: Final = regex(r"[,:(]\s|@[\w-]+\s|\s(?:and|then|und|et|y|e|i|en|dann)\s")
_WORD: Final = regex(r"[\w:']+")
_TELLS_ON: Final = regex(r"^([^'\"]*?),\s.*")
_QUOTED: Final = regex(r"'[^']*'|\"[^\"]*\"")


@lru_cache(maxsize=500)
def has_command(text: str) -> bool:
    """Return whether a command is ordered there that acts on others."""
    begins = text.split(None, 1)[0]
    is_line = begins in entries("commands", "programs") and (begins not in entries("commands", "plain") or " -" in text)
    for command in commands_in(_TELLS_ON.sub(r"\1", f"$ {text}") if is_line else text):
        if " " in command.text and any(act.kind in entries("commands", "risky") for act in command.acts):
            behind = text[command.end :] if command.in_code and not is_line else command.text
            return _ordered("" if is_line else text[: command.start], behind)
    return False


def _ordered(before: str, then: str) -> bool:
    """Whether a command is to be run that stands between these."""
    earlier = _WORD.findall(fold(_CLAUSE.split(before)[-1]))
    if not earlier:
        return entries("commands", "states").isdisjoint(_WORD.findall(_QUOTED.sub("", then.lower())))
    begins = (entries("commands", "leads") | entries("commands", "runs") | entries("commands", "in")) - {
        "a",
        "the",
        "to",
    }
    return earlier[0] in begins and (
        earlier[-1] in entries("commands", "runs") or entries("commands", "leads").issuperset(earlier)
    )
