"""How an order is read, clause by clause: what each wants done, to read something, to build something, or to act.

A clause is judged by the verb that it begins with, since orders do: "Rotate the keys", "we have to rotate the keys",
"the keys must be rotated". A statement ("The keys were rotated on Friday") wants nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from textwrap import dedent
from typing import Final

from claudomator_py.routing.prefilter import Prefiltered, prefiltered


class Wants(StrEnum):
    """What a clause wants done."""

    WORDS = "words"
    """To read, and to tell or write about it."""
    BUILT = "built"
    """To write or change code, which somebody else puts into use."""
    DONE = "done"
    """To act on something there is."""
    NOTHING = "nothing"
    """It is a statement."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence."""

    text: str
    wants: Wants
    verb: str | None = None
    """What it orders, as an infinitive; None: nothing."""
    at: int | None = None
    """Where in it the verb is; None: it says what is to be done with something, as "must be rotated"."""


class Sign(StrEnum):
    """What was seen in a text."""

    LIVE = "live"
    """It acts on a system that people use."""
    PUBLISHED = "published"
    """It publishes something, or rewrites what is published."""
    MONEY = "money"
    """It moves money, or sets what is paid."""
    ACCESS = "access"
    """It gives or takes access, or lifts a protection."""
    CREDENTIALS = "credentials"
    """It changes credentials in use."""
    IRREVERSIBLE = "irreversible"
    """It deletes what nobody can bring back."""
    MASS_MAIL = "mass_mail"
    """It writes to many people."""
    DOUBTFUL = "doubtful"
    """It may be meant to harm or deceive somebody; a person is to judge."""
    HARMFUL = "harmful"
    """It is meant to harm or deceive somebody."""
    VAGUE = "vague"
    """It does not say what is wanted of what."""


Found = list[tuple[Sign, str]]
"""What was seen, each with the words in which it was."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


MAKES: Final = (
    r"(?:build|write|make|create|need|want|develop|deploy|send|program|code|implement|generate|give me|set up"
    r"|get me|install|spread|plant|put)"
)
"""Verbs of making something, for patterns."""
PEOPLE: Final = (
    r"(?:competitors?|competition|rivals?|opponents?|enem(?:y|ies)|victims?|ex|ex-\w+|(?:flat|house|class)mates?"
    r"|c[efot]o|neighbou?rs?|colleagues?"
    r"|co-?workers?|boss|wife|husband|girlfriend|boyfriend|roommate|landlord|tenant|teacher|pupil|son|daughter"
    r"|mother|father|sister|brother|bidder|politician|journalist|applicant|celebrity|hospital|bank|government"
    r"|city|municipality|school|restaurant|somebody|someone|anybody|anyone|(?:another|other|the other) (?:company"
    r"|user|person|shop|firm|team|bidder|people|party)|employee|manager|director|patient|stranger|wom[ae]n|child"
    r"|kid)"
)
"""Somebody whom an order may be against, for patterns."""

_LONGEST: Final = 1_000
_OVERLAP: Final = 300
"""Characters in which an order, or what a pattern looks for, is all said."""
_TO_A_CUT: Final = 100
"""Characters in which a better place to cut is looked for."""
_BLANK: Final = re.compile(r"\s+")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_PARTS: Final = re.compile(
    r"\s*[,;:()\u2013\u2014]\s+|\s+(?:and|then|but|or|so)\s+(?:then\s+)?|\s*(?:[()]|-->|\]\]|\s-+\s)\s*"
    r"|\s+(?=by\s+\w+ing\s)"
)
_POLITE: Final = re.compile(
    r"""\W*(?:(?:(?:please|kindly)\ to|please|pls|kindly|now|then|first|firstly|next|finally|also|just|and|simply
    |quickly|immediately|today|tonight|tomorrow|asap|urgent|urgently|hi|hello|hey|team|all|ok|okay|so|afterwards
    |after\ that|once\ done|(?:can|could|would|will)\ (?:you|somebody|someone|anybody|anyone)
    |you\ (?:have\ to|can|must|should|may|need\ to)
    |(?:i|we)\ (?:want|need|would\ like)\ (?:you\ |somebody\ |someone\ )?to|(?:i|we)['\u2019]d\ like\ (?:you\ )?to
    |(?:we|i)\ (?:have\ to|must|need\ to|should|are\ to|want\ to)|let['\u2019]?s|let\ us|go\ ahead\ and|try\ to
    |make\ sure\ (?:to|you)|help\ (?:me|us)(?:\ to)?|be\ so\ kind\ (?:as|and)\ to|it\ is\ time\ to|time\ to|by
    |the\ task\ is\ to|your\ task\ is\ to|remember\ to|don['\u2019]t\ forget\ to)\b[\s,:]*)+""",
    re.VERBOSE | re.IGNORECASE,
)
_FIRST: Final = re.compile(r"\W*([^\W\d_]+(?:-[^\W\d_]+)*)")
_STATES: Final = re.compile(
    r"\s+(?:is|are|was|were|has|have|had|does|do|did|isn|aren|wasn|weren|hasn|doesn|don|didn|will|would|can|cannot)\b",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"(?:when|what|where|who|why|how)\s+(?:do|does|did|will|would)\b", re.IGNORECASE)
"""How a question begins: "When does the bill need to be paid?" orders no payment."""
_CAN_GO: Final = prefiltered(
    r"\bcan (?:all |both |now |safely )?(?:go|be (?:deleted|removed|dropped|wiped|erased|purged))"
    r"(?=\W*$|\W+(?:(?:now|today|tonight|too)\b|from (?:the )?(?:prod|live)))"
)
"""What is not needed any more."""
_PASSIVE: Final = prefiltered(
    r"\b(?:(?:has|have|had|needs?|ought|is|are)\s+to\s+be|(?:must|should|shall|needs?\s+to)\s+be|needs?|wants?"
    r"|^\W*let\s.{1,60}?\sbe|^\W*have\s.{1,60}?)\s+"
    r"(?:\w+ly\s+)?([^\W\d_]+(?:-[^\W\d_]+)*)"
)
_READING: Final = _set(
    """
    analyse analyze answer appraise ask assess audit benchmark calculate check clarify collect compare compute count
    debug define describe design determine diagnose diagram discuss document draft draw estimate evaluate examine
    explain explore figure find gather how identify inspect interpret investigate is judge justify list look map measure
    model name note observe outline plan prepare profile prognose proofread propose quantify rank rate read recommend
    report reproduce research review search see show sketch specify spell study suggest summarise summarize survey tell
    think trace track translate understand verify view what when where which who whose why write
    """
)
_BUILDING: Final = _set(
    """
    adapt add align annotate author automate build bump bundle cache catch code colour color comment compile convert
    correct cover create debounce declare deduplicate develop display embed encapsulate escape expose extend extract fix
    fold format generalise generalize generate group guard handle harden hash hide highlight implement improve indent
    inline instrument integrate internationalise introduce isolate let lint localise make memoise memoize mend mock move
    normalise normalize optimise optimize paginate parallelise parametrise parse polish port prettify programme program
    prototype quote redesign reduce refactor rename render repair replace rephrase respect restructure rewrite round
    sanitise sanitize scaffold serialise serialize set shorten simplify simulate solve sort speed split store stream
    structure stub style support switch test tidy tune type unify update use validate vendor wire wrap
    """
)
_ACTING: Final = _set(
    """
    acknowledge activate adjust allow allowlist amend announce anonymise anonymize append apply approve archive
    assign attach attack attempt authorise authorize ban blast block book boot bounce bring broadcast bump buy
    bypass call cancel change charge clean clear clone close commit compensate configure connect copy correct
    create credit cut dd deactivate debit decommission decrease delete demote deploy deprovision deregister destroy
    detach disable discard disconnect dismiss dispatch distribute dm do double downgrade download drain drop dump
    e-mail edit eject email empty enable end enrol enroll erase evict exchange execute exempt expire exploit expose
    extend factory-reset fail failover feed fire flash flatten flip flood flush force force-push format free freeze
    get give go grant hack halt halve hire hit hotfix import increase inform inject install invalidate invite
    invoice issue keep kick kill land lapse launch lease let lift load lock loosen lower mail make mark merge
    message migrate modify mount move mute notify nuke obliterate open order overwrite pause pay perform ping point
    post power promote provision prune publish pull purchase purge push put raise re-apply re-enable re-index
    re-issue re-run re-send reactivate reassign rebase reboot rebuild recall reclaim reconfigure recreate recycle
    redeploy redirect reformat refresh refund regenerate reimage reimburse reindex reinstall reinstate reissue
    relax release reload relocate remind remove rename renew rent reopen repay repeat replace replay replicate
    reprocess requeue reroute rerun resend reset resize resolve restart restore resume resync retag retire retry
    return reveal reverse revert revoke rewrite roll rollback rotate route run save scale scan schedule scrub seize
    sell send set settle share shift ship shrink shut sign silence skip sms snooze spin squash start stop strip
    submit subscribe summon suspend swap sweep switch sync synchronise synchronize tag take terminate text throttle
    toggle transfer trash trigger truncate turn tweet unblock undo unfreeze uninstall unlock unmount unplug
    unpublish unsubscribe update upgrade upload use void waive weaken whitelist widen wipe wire withdraw write-off
    yank zap zero
    """
)
_VERBS: Final = _READING | _BUILDING | _ACTING
EITHER: Final = _ACTING & _BUILDING
"""They act on what runs only if a clause says that it is there."""
_IRREGULAR: Final = {
    "sent": "send", "put": "put", "shut": "shut", "cut": "cut", "set": "set", "reset": "reset", "paid": "pay",
    "brought": "bring", "given": "give", "taken": "take", "undone": "undo", "made": "make", "run": "run",
    "resent": "resend", "sold": "sell", "got": "get", "withdrawn": "withdraw", "rerun": "rerun", "rebuilt": "rebuild",
    "torn": "tear", "tearing": "tear", "carried": "carry", "carrying": "carry",
}  # fmt: skip


_PHRASAL: Final = (
    (r"get(?:ting)? rid of|do away with|throw (?:away|out)|clear out", "delete"),
    (r"let (?:\S+ ){1,5}(?:lapse|expire|run out)\b", "expire"),
    (r"(?:comment|take|rip|cut|throw|leave) out|(?:cut|take|rip|throw) (?:\S+ ){1,4}out\b", "remove"),
    (r"take (?:\S+ ){1,5}apart\b", "delete"),
    (r"top up|stump up|shell out", "pay"),
    (r"(?:spin|fire|start) up|sign up for", "purchase"),
    (r"hand (?:out|over) (?!\S+ (?:domain|root|admin|keys))", "give"),
    (r"write to (?:all|every|each|everyone|everybody)\b", "send"),
    (r"(?:stop|quit|skip) (?:check|verify|validat|enforc|requir|ask|scan)ing\b", "bypass"),
    (r"take (?:\S+ ){0,5}(?:offline|down|off the (?:air|net))\b", "stop"),
    (r"bring (?:\S+ ){0,5}down\b", "power"),
    (r"tear (?:\S+ ){0,5}down\b", "decommission"),
    (r"fail (?:\S+ ){0,5}over\b", "failover"),
    (r"carry (?:\S+ ){0,5}out\b", "run"),
    (r"(?:kick|fire|set) off", "run"),
    (r"hand (?:\S+ ){1,3}(?:root|admin\w*|(?:the )?keys?|access)\b", "give"),
    (r"add (?:\S+ ){1,5}(?:as|to the) (?:an? )?(?:admin\w*|owners?|maintainers?|superusers?|root)\b", "grant"),
    (r"log (?:in|on)(?:to)?|go (?:in|on)to", "connect"),
)
"""Phrases that order what a verb by itself does not, and a verb that does."""
_PHRASE: Final = re.compile("|".join(f"({phrase})" for phrase, _ in _PHRASAL), re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text. What is very long is cut into pieces, so that no pattern takes long."""
    return [piece for part in _SENTENCE.split(text) if part.strip() for piece in _pieces(part)]


def _pieces(sentence: str) -> Iterator[str]:
    """Each begins before the end of the one before, so that an order stands whole in one of them, wherever it stands;
    and if possible with a clause, as nothing is an order that begins within one ("we never delete ...")."""
    begin = 0
    while len(sentence) - begin > _LONGEST:
        end = _last(_BLANK, sentence, begin + _LONGEST) or begin + _LONGEST
        yield sentence[begin:end]
        latest = end - _OVERLAP
        begin = _last(_PARTS, sentence, latest) or _last(_BLANK, sentence, latest) or latest
    yield sentence[begin:]


def _last(pattern: re.Pattern[str], sentence: str, end: int) -> int | None:
    """Where the last match begins that is near before that place."""
    return max((found.start() for found in pattern.finditer(sentence, end - _TO_A_CUT, end)), default=None)


@lru_cache(maxsize=64)  # each rule asks for those of the sentence that is judged
def clauses(sentence: str) -> tuple[Clause, ...]:
    """The parts of a sentence, with what each wants."""
    found: list[Clause] = []
    may_be_done = _CAN_GO.may_match(sentence) or _PASSIVE.may_match(sentence)
    for part in _PARTS.split(sentence):
        if part.strip():
            found.append(_clause(part, bool(found) and found[-1].wants is Wants.DONE, may_be_done))
    return tuple(found)


def whole_words(patterns: str) -> Prefiltered:
    """One of these, as whole words in any case. A line that ends within a pattern continues in the next one."""
    joined = "".join(dedent(patterns).splitlines())
    return prefiltered(rf"\b(?:{joined})\b")


def _clause(text: str, goes_on: bool, may_be_done: bool) -> Clause:
    """goes_on: the clause before acts on something, so that "wiping the disks" says what more is to be done.
    may_be_done: whether it may say what is to be done with something."""
    polite = _POLITE.match(text)
    begins = 0 if polite is None else polite.end()
    first = _FIRST.match(text, begins)
    if may_be_done and _CAN_GO.pattern.search(text) is not None:
        return Clause(text, Wants.DONE, "delete")
    if first is not None and not _STATES.match(text, first.end()):
        verb = first[1].lower()
        if verb.endswith("ing") and (goes_on or text[:begins].strip().lower().endswith("by")):
            verb = _infinitive(verb) or verb
        verb = _phrasal(f"{verb}{text[first.end() :]}") or verb
        if (wants := _wanted(verb)) is not Wants.NOTHING:
            return Clause(text, wants, verb, first.start(1))
    if first is not None and _ASKS.match(text, first.start(1)):
        return Clause(text, Wants.WORDS)
    passive = _PASSIVE.pattern.search(text, begins) if may_be_done else None
    if passive is None or (done := _infinitive(passive[1].lower())) is None:
        return Clause(text, Wants.NOTHING)
    done = _phrasal(f"{done} it{text[passive.end() :]}") or done
    return Clause(text, _wanted(done), done)


def _phrasal(text: str) -> str | None:
    """The verb that says what the phrase at its beginning orders; None: it is no such phrase."""
    found = _PHRASE.match(text)
    return None if found is None or found.lastindex is None else _PHRASAL[found.lastindex - 1][1]


def _wanted(verb: str) -> Wants:
    if verb in _BUILDING:
        return Wants.BUILT
    if verb in _ACTING:
        return Wants.DONE
    return Wants.WORDS if verb in _READING else Wants.NOTHING


def _infinitive(participle: str) -> str | None:
    """The verb of which that is a form; None: it is none that is known."""
    regular = (verb for verb in _regular(participle) if verb in _VERBS)
    return _IRREGULAR.get(participle) or next(regular, None)


def _regular(participle: str) -> Iterator[str]:
    """What it is a form of if it is formed as most are."""
    for ending in ("ed", "d", "ing"):
        if participle.endswith(ending):
            stem = participle.removesuffix(ending)
            yield stem
            if stem[-1:] == stem[-2:-1]:
                yield stem[:-1]
            yield f"{stem}e"
    if participle.endswith("ied"):
        yield f"{participle[:-3]}y"
