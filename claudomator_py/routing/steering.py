"""What a text says to whoever decides about it, which is not what it is about.

A task may carry words for the router: of its author, who could name a specialist in the task file instead, or of
somebody whose text it quotes. Were they compared with cards, the names in them would draw the task to whomever they
name. So they are left out of what is compared, and the decision says which.
"""

import re
from typing import Final

from claudomator_py.routing.orders import whole_words
from claudomator_py.routing.remembered import remembered

_MOST: Final = 10
"""Pieces that a decision tells of; the first."""
_MOST_TOLD: Final = 200
_WHO: Final = (
    r"(?:ai|a\.i\.|assistants?|llm|agents?|bots?|router|dispatcher|classifier|triage|orchestrator|model"
    r"|system(?: prompt)?|admin)"
)
_STEERS: Final = whole_words(
    r"""
    (?:ignore|disregard|forget|override) (?:all |any |the |your |my |our |these )*(?:previous |prior |above |earlier
    |preceding |former )?(?:instructions?|rules|polic(?:y|ies)|prompts?|guidelines)|(?:choose|select|pick|prefer|use
    |assign|route|hand|send|give|forward|pass|delegate|escalate|direct|dispatch)\b.{0,40}\b(?:to|specialist
    |for) (?:the )?(?:specialist )?(?:[a-z]+-(?:[a-z]+-)*(?:engineer|reviewer|manager|auditor|writer|administrator
    |researcher|designer|analyst|developer|architect|specialist|doctor)|human[_ ]review|reject|clarify)|(?:choose
    |select|pick|use) (?:the )?specialist\b.*|(?:choose|select|pick|use|require|set|take
    |with)\b.{0,30}\b(?:(?:most )?(?:powerful|strong\w*|best|largest|big\w*|cheap\w*|fast\w*|balanced
    |expensive) (?:tier|model)s?|tier (?:to )?(?:powerful|fast|balanced)|(?:opus|sonnet|haiku))|tier ?(?:=|:|is
    |to)? ?(?:powerful|balanced|fast)|(?:set|lower|raise|treat|mark|change)\b.{0,20}\b(?:risk|priority|tier) (?:to
    |as|=) ?\w+|risk ?[=:] ?(?:low|medium|high)|route ?[=:] ?\w+|specialist ?[=:] ?[\w-]+|polic(?:y|ies) ?[=:] ?\w+
    |skip (?:the )?(?:human[_ ]review|approvals?|reviews?|polic(?:y|ies)|checks)|no (?:review
    |approval) (?:is )?(?:needed|required|necessary)|polic(?:y checks|ies) (?:is|are) (?:off|disabled|void)
    |(?:all )?filters are off|any specialist may|unrestricted mode|(?:hereby|as the operator i) declare
    |admin override|(?:this|it)(?:['\u2019]s| is) (?:low|high|medium)[ -]risk
    """
).pattern
_ADDRESSES: Final = re.compile(
    rf"(?:^|[\s(\"'\u201c\[<!-])(?:(?:note|hint|message|instructions?) (?:to|for) (?:the |all |any )?)?(?:the )?{_WHO}"
    r"(?: (?:dispatcher|router|triaging this|agents?|assistants?))?\s?: ",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(
    r"\"[^\"\n]{0,400}\"|\u201c[^\u201d\n]{0,400}\u201d|(?<!\w)'[^'\n]{0,400}'(?!\w)|`[^`\n]{0,400}`|<!--.{0,400}?-->"
    r"|\[\[[^\]\n]{0,200}\]\]|\([^()\n]{0,400}\)|\[[^\]\n]{0,200}\]",
    re.DOTALL,
)
_SENTENCE: Final = re.compile(r"[^.!?;\n]+(?:[.!?;]+(?=\s|\Z)|\n|\Z|[.!?;](?=\S))+")


@remembered
def unsteered(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without what it says to whoever decides about it, and those pieces, cut, in its order.

    Of what stands in quotation marks or brackets only that goes, else the sentence. A text that would be left with
    nothing is left as it is.
    """
    if _STEERS.search(text) is None and _ADDRESSES.search(text) is None:
        return text, ()
    found: list[str] = []

    def out(match: re.Match[str]) -> str:
        piece = match.group()
        if not _steers(piece):
            return piece
        found.append(" ".join(piece.split())[:_MOST_TOLD])
        return " "

    left = _SENTENCE.sub(out, _QUOTED.sub(out, text))
    return (left, tuple(found[:_MOST])) if re.search(r"\w{3}", left) else (text, ())


def _steers(piece: str) -> bool:
    return _STEERS.search(piece) is not None or _ADDRESSES.search(piece) is not None
