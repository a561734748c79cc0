"""What a text says to whoever decides about it, which is not what it is about.

A task may carry words for the router: of its author, who could name a specialist in the task file instead, or of
somebody whose text it quotes. Were they compared with cards, the names in them would draw the task to whomever they
name. So they are left out of what is compared, and the decision says which.
"""

import re
from typing import Final

from claudomator_py.routing.memoized import memoized

_MAX_PARTS: Final = 10
"""Pieces that a decision tells of; the first."""
_MAX_TOLD: Final = 200
_WHO: Final = (
    r"(?:ai|a\.i\.|assistants?|llm|agents?|bots?|router|dispatcher|classifier|triage|orchestrator|model"
    r"|system(?: prompt)?|admin)"
)
_STEERS: Final = re.compile(
    r"\b(?:"
    r"(?:ignore|disregard|forget|override) (?:all |any |the |your |my |our |these )*(?:previous |prior |above "
    r"|earlier|preceding |former )?(?:instructions?|rules|polic(?:y|ies)|prompts?|guidelines)|(?:choose|select"
    r"|pick|prefer|use|assign|route|hand|send|give|forward|pass|delegate|escalate|direct|dispatch)\b.{0,40}\b("
    r"?:to|specialist|for) (?:the )?(?:specialist )?(?:[a-z]+-(?:[a-z]+-)*(?:engineer|reviewer|manager|auditor"
    r"|writer|administrator|researcher|designer|analyst|developer|architect|specialist|doctor)|human[_ ]review"
    r"|reject|clarify)|(?:choose|select|pick|use) (?:the )?specialist\b.*|(?:choose|select|pick|use|require|se"
    r"t|take|with)\b.{0,30}\b(?:(?:most )?(?:powerful|strong\w*|best|largest|big\w*|cheap\w*|fast\w*|balanced|"
    r"expensive) (?:tier|model)s?|tier (?:to )?(?:powerful|fast|balanced)|(?:opus|sonnet|haiku))|tier ?(?:=|:|"
    r"is|to)? ?(?:powerful|balanced|fast)|(?:set|lower|raise|treat|mark|change)\b.{0,20}\b(?:risk|priority|tie"
    r"r) (?:to|as|=) ?\w+|risk ?[=:] ?(?:low|medium|high)|route ?[=:] ?\w+|specialist ?[=:] ?[\w-]+|polic(?:y|"
    r"ies) ?[=:] ?\w+|skip (?:the )?(?:human[_ ]review|approvals?|reviews?|polic(?:y|ies)|checks)|no (?:review"
    r"|approval) (?:is )?(?:needed|required|necessary)|polic(?:y checks|ies) (?:is|are) (?:off|disabled|void)|"
    r"(?:all )?filters are off|any specialist may|unrestricted mode|(?:hereby|as the operator i) declare|admin"
    r" override|(?:this|it)(?:['\u2019]s| is) (?:low|high|medium)[ -]risk"
    r")\b",
    re.IGNORECASE,
)
_TELLING: Final = (
    *(
        "ignore",
        "disregard",
        "forget",
        "override",
        "specialist",
        "engineer",
        "reviewer",
        "manager",
        "auditor",
        "writer",
    ),
    *("administrator", "researcher", "designer", "analyst", "developer", "architect", "doctor", "human", "reject"),
    *("clarify", "tier", "model", "opus", "sonnet", "haiku", "risk", "priority", "route", "polic", "skip", "review"),
    *("approval", "filters", "unrestricted", "declare"),
)
"""Without any of which nothing of that is said."""
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


@memoized
def unsteered(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text without what it says to whoever decides about it, and those pieces, cut, in its order.

    Of what stands in quotation marks or brackets only that goes, else the sentence. A text that would be left with
    nothing is left as it is.
    """
    if not _may_steer(text):
        return text, ()
    found: list[str] = []

    def out(match: re.Match[str]) -> str:
        piece = match.group()
        if not _steers(piece):
            return piece
        found.append(" ".join(piece.split())[:_MAX_TOLD])
        return " "

    left = _SENTENCE.sub(out, _QUOTED.sub(out, text))
    return (left, tuple(found[:_MAX_PARTS])) if re.search(r"\w{3}", left) else (text, ())


def _may_steer(text: str) -> bool:
    lowered = text.lower()
    if any(word in lowered for word in _TELLING) and _STEERS.search(text) is not None:
        return True
    return ": " in text and _ADDRESSES.search(text) is not None


def _steers(piece: str) -> bool:
    return _STEERS.search(piece) is not None or _ADDRESSES.search(piece) is not None
