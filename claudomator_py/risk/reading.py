"""What a sentence orders, as features that are weighed: verbs and things of which classes, where, and in what form."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Final, NamedTuple

from claudomator_py.acts.reading import acts
from claudomator_py.risk import screen
from claudomator_py.risk.folding import fold
from claudomator_py.risk.harm import Harm, harm_in, harms
from claudomator_py.risk.lexicon import ENGLISH, KINDS, SPACELESS, Language, Mark, lexicon

_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*|\d+ ?%")
_CLAUSE: Final = re.compile(
    r"\s*[,:](?=\s|$)\s*|\s*[()\[\]{}\"\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014|*]+\s*|\s-+\s|\s-->\s|\s+(?:and|then|but|or|so|&|&&)\s+"
)
_ASIDE: Final = re.compile(r"\s*\(([^()]{1,120})\)(?=[\s.,;:!?]|$)")
_JOINS: Final = re.compile(r"\s+(?:and|or|then|&)\s+")
_TICKET: Final = re.compile(r"#?[A-Z]{2,}-?\d+|#\d+|\d+[.)]?$|[-*#>]+$")
_PROGRAM: Final = re.compile(r"(?<![\w./-])(?:[\w.~-]*/)*([\w.-]+)")
_SAID: Final = re.compile(r"[\w:]+")
_SURELY: Final = 3
"""Common words that make a sentence English, if they are a third of its words."""
MAX_KNOWN: Final = 2_000
_SHARED: Final = ("verb", "thing", "code", "test", "prod")
"""What English words are in other languages."""


class Clause(NamedTuple):
    """A part of a sentence that may be an order."""

    text: str
    features: frozenset[str]
    kind: str
    """The class of what it orders, as far as the words go; ``command`` where one stands in it; empty: none."""


class Sentence(NamedTuple):
    """A sentence as it is read."""

    clauses: tuple[Clause, ...] = ()
    """Those that order something, or in which a command stands."""
    harm: Harm | None = None
    speaks: bool = False
    """Whether it speaks of what may be done harm to; see ``spoken_of``."""
    in_use: bool = False
    """Whether it speaks of what people use."""


@lru_cache(maxsize=MAX_KNOWN)
def read(sentence: str) -> Sentence:
    """Return what a sentence says. The same sentence is read once."""
    folded = fold(sentence)
    said = screen.tokens(folded)
    telling, foreign = screen.tells(said), not folded.isascii()
    harm, found = None, tuple[Clause, ...]()
    if telling & screen.HARM or (foreign and harms().spaceless.search(folded)):
        harm = harm_in(folded)
    if foreign or screen.may_order(said, telling) or (telling & screen.PROGRAM and _command(sentence, said)):
        found = clauses(sentence, folded)
    speaks = foreign or bool(telling & screen.ABOUT)
    in_use = (foreign or telling & screen.IN_USE) and any(mark.role == "prod" for mark in _marks(folded))
    return Sentence(found, harm, speaks, bool(in_use))


def spoken_of(sentence: str) -> frozenset[str]:
    """Return the classes of the things that a sentence speaks of, which the next one may call "it"."""
    return frozenset(mark.kind for mark in _marks(fold(sentence)) if mark.role == "thing")


def _marks(folded: str) -> Iterator[Mark]:
    words = _WORD.findall(folded)
    language = told(folded, words)
    if language is not None:
        found = language.parts(folded) if language.name in SPACELESS else language.marks(words)
        yield from (mark for _, mark in found)


def clauses(sentence: str, folded: str) -> tuple[Clause, ...]:
    """Return the clauses of a sentence that order something."""
    words = _WORD.findall(folded)
    language = told(folded, words)
    if language is None:
        return ()
    if language.name != ENGLISH:
        found = [_foreign(sentence, folded, words, language)]
        return tuple(one for one in found if one.kind)
    # What stands in brackets parts no verb from its thing or place: "Run the scan (full policy) on production".
    parts = [_ASIDE.sub("", sentence), *(found[1] for found in _ASIDE.finditer(sentence))]
    found = [clause for part in parts for clause in _english(part, fold(part), language)]
    said = frozenset[str]().union(*(clause.features for clause in found))
    beside = {f"{name}.beside" for name in ("test", "prod", "host", "not") if name in said}
    if "prod.beside" in beside:
        beside.discard("test.beside")  # "locally and in production"
    return tuple(one._replace(features=one.features | beside) for one in found if one.kind)


def known_in(sentence: str, *, in_english: bool) -> tuple[int, int]:
    """Return how many words of a sentence are known, and how many it has; of one without spaces, letters.

    in_english: of one in letters of English, those that are known there, which is told soon.
    """
    folded = fold(sentence)
    if in_english and folded.isascii():
        return screen.are_known(screen.tokens(folded))
    words = _WORD.findall(folded)
    language = told(folded, words)
    if language is None:
        return 0, len(words)
    if language.name in SPACELESS:
        return sum(mark.length for _, mark in language.parts(folded)), len(re.findall(r"[^\W\d_a-z]", folded)) or 1
    either = (language, lexicon().languages[ENGLISH])
    known = sum(word[0].isdigit() or any(word in one.words or one.of(word) for one in either) for word in words)
    return known, len(words)


def told(folded: str, spelt: Sequence[str]) -> Language | None:
    """Return the language of a folded sentence of those words; None: its letters are none of those that are known."""
    known = lexicon().languages
    if not folded.isascii():
        for name, script in lexicon().scripts.items():
            if script.search(folded):
                return known[name]
        if not re.search("[a-z]", folded):
            return None if re.search(r"[^\W\d_]", folded) else known[ENGLISH]
    words = set(spelt)
    most = len(words & known[ENGLISH].words)
    if most >= _SURELY and most * 3 >= len(words):
        return known[ENGLISH]
    candidates = [known[ENGLISH]]
    for language in _latin():
        shared = len(words & language.words)
        if shared > most:
            candidates, most = [language], shared
        elif shared == most:
            candidates.append(language)
    if len(candidates) == 1:
        return candidates[0]
    return max(candidates, key=lambda one: sum(bool(one.of(word)) for word in words))


@cache
def _latin() -> tuple[Language, ...]:
    known = lexicon()
    return tuple(one for name, one in known.languages.items() if name != ENGLISH and name not in known.scripts)


# --- English: an order is where its verb is ---------------------------------------------------------------------------


def _english(sentence: str, folded: str, language: Language) -> Iterator[Clause]:
    begin, before = 0, ""
    inherited: frozenset[str] = frozenset()
    same_length = len(folded) == len(sentence)
    for end in (*_CLAUSE.finditer(folded), None):
        stop = len(folded) if end is None else end.start()
        part = folded[begin:stop]
        raw = sentence[begin:stop] if same_length else part
        quoted = bool(begin) and folded[begin - 1] in '"\u201c\u201e\u00ab'
        begin = len(folded) if end is None else end.end()
        words = [word.replace("\u2019", "'") for word in _WORD.findall(part)]
        if not words:
            continue
        features, kind, mood = _ordered(raw, words, language, before, inherited)
        inherited = frozenset(one[2:] for one in features if one.startswith("t:")) or inherited
        if end is not None and end[0].lstrip().startswith(":"):
            features.add("heading")
        if quoted and len(folded) - len(part) > len(part):
            features.add("quoted")
        before = mood if end is not None and _JOINS.fullmatch(end[0]) else ""
        yield Clause(raw.strip(" .;!?"), frozenset(features), kind)


def _ordered(
    raw: str, words: list[str], language: Language, before: str, inherited: frozenset[str]
) -> tuple[set[str], str, str]:
    """The features of a clause, the class of what it orders, and its mood: ``read``, ``build``, ``order`` or none."""
    marks = language.marks(words)
    features = _command(raw, words)
    at = _verb(words, marks)
    about = {f"t:{mark.kind}" for _, mark in marks if mark.role == "thing"}
    about |= {mark.role for _, mark in marks if mark.role in ("prod", "test")}
    if at is None:
        return features | about | {"states"}, "command" if features else "", ""
    place, form, verbs, length = at
    if not any(mark.role == "verb" for mark in verbs):
        mood = "read" if any(mark.role == "read" for mark in verbs) else "build"
        if words[place] not in lexicon().sets["runs"]:
            features.discard("cmd.order")
        return features | about | {f"only.{mood}"}, "command" if features else "", mood
    acting = {mark.kind for mark in verbs if mark.role == "verb"}
    kinds = [kind for kind in KINDS if kind in acting]
    after = place + length
    features |= {"order", form, *(f"v:{kind}" for kind in kinds), "verb " + " ".join(words[place:after])}
    things = [(there, mark) for there, mark in marks if mark.role == "thing"]
    features |= {f"noun {words[there].removesuffix('s')}" for there, _ in things if there >= after}
    features |= {f"also.{mark.role}" for mark in verbs if mark.role in ("read", "build")}
    features |= {mark.role for there, mark in marks if there == place and mark.role == "strong"}
    features |= _form(words, marks, after) if form == "form.first" else set()
    features |= _around(words, marks, after if form == "form.first" else 0) | _seen(raw)
    own = {f"t:{mark.kind}" for there, mark in things if there >= after or form == "form.done"}
    back = after == len(words) or any(mark.role == "back" for there, mark in marks if there >= after)
    if not own and back:
        features |= {"back", *(f"i:{one}" for one in inherited), *(f"v:{one}&i" for one in kinds if one in inherited)}
    features |= {f"after.{before}"} if before else set()
    features |= own | {f"v:{kind}&{thing}" for kind in kinds for thing in own} if own else {"nothing"}
    kind = next((one for one in kinds if f"t:{one}" in own), kinds[0])
    return features, kind, "order"


def _verb(words: Sequence[str], marks: Sequence[tuple[int, Mark]]) -> tuple[int, str, list[Mark], int] | None:
    """Where the order's verb is, in which form, what it is, and how many words it takes."""
    at: dict[int, list[Mark]] = {}
    for place, mark in marks:
        at.setdefault(place, []).append(mark)
    first = 0
    while first < len(words):
        leads = [mark.length for mark in at.get(first, ()) if mark.role == "lead"]
        found = _acting(at.get(first, ()), ("verb", "read", "build"))
        if found and not (leads and max(leads) >= found[0].length):
            return first, "form.first", found, found[0].length
        if leads:
            first += max(leads)
        elif _TICKET.fullmatch(words[first].upper()):
            first += 1
        else:
            break
    for place, mark in marks:
        if mark.role == "passive":
            begin, far = place + mark.length, 5 if mark.length == 1 else 2
            for there in range(begin, min(len(words), begin + far)):
                done = _acting(at.get(there, ()), ("done",) if words[place] != "needs" else ("done", "doing"))
                if done:
                    return there, "form.done", [one._replace(role="verb") for one in done], done[0].length
        if mark.role == "lead" and mark.length > 1 and place:
            there = place + mark.length
            found = _acting(at.get(there, ()), ("verb", "read", "build"))
            if found:
                return there, "form.asked", found, found[0].length
    for there in range(1, len(words)):
        doing = _acting(at.get(there, ()), ("doing",)) if words[there - 1] == "by" else []
        if doing:
            return there, "form.doing", [one._replace(role="verb") for one in doing], doing[0].length
    return None


def _acting(marks: Sequence[Mark], roles: Sequence[str]) -> list[Mark]:
    """Those of the longest verb."""
    found = [mark for mark in marks if mark.role in roles]
    longest = max((mark.length for mark in found), default=0)
    return [mark for mark in found if mark.length == longest]


def _form(words: Sequence[str], marks: Sequence[tuple[int, Mark]], after: int) -> set[str]:
    """What follows the verb at a clause's beginning: a verb has an object, a noun has not."""
    if after >= len(words):
        return {"alone"}
    follows = {mark.role for place, mark in marks if place == after}
    found = {"det"} if "det" in follows or words[after][0].isdigit() else {"bare"}
    if any(mark.role == "states" and after <= place <= after + 6 for place, mark in marks) and "bare" in found:
        found.add("stated")
    return found


def _around(words: Sequence[str], marks: Sequence[tuple[int, Mark]], after: int) -> set[str]:
    """What else a clause says that makes it more or less risky."""
    stops = lexicon().sets["stops"]
    end = next((place for place in range(after, len(words)) if words[place] in stops), len(words))
    found = {mark.role for _, mark in marks if mark.role in ("test", "prod", "many", "own", "not", "fails")}
    for place, mark in marks:
        last = place + mark.length == end
        if mark.role == "code":
            found.add("code.last" if last else "code.object" if after <= place < end else "code.else")
        elif mark.role == "thing" and last and place >= after:
            found.add("thing.last")
    return found


def _seen(raw: str) -> set[str]:
    found = set()
    for name, pattern in lexicon().seen.items():
        if pattern.search(raw):
            what, _, kind = name.partition(":")
            found |= {what, f"t:{kind}"} if kind else {what}
    return found


def _command(raw: str, words: Sequence[str]) -> set[str]:
    """Whether a command stands there that acts on others, and whether it is ordered or only spoken of."""
    known = lexicon().sets
    if known["begin"].isdisjoint(words):
        return set()
    for match in _PROGRAM.finditer(raw):
        name, begins = match[1].lower(), raw[: match.start()]
        if match[1][0].isupper() or not (name in known["programs"] or match[0].startswith("./")):
            continue
        said, in_code = _SAID.findall(begins.lower()), begins.endswith("`")
        end = raw.find("`", match.start()) if in_code else -1
        run = bool(said) and said[-1] in known["runs"]
        ordered = run or known["leads"].issuperset(said)
        if end > 0 and not said:
            behind = _SAID.match(raw[end + 1 :].strip().lower())
            ordered = behind is None or behind[0] not in known["states"]
        if name in known["plain"] and not (in_code or run):
            continue
        if _risky(raw[match.start() : end if end > 0 else len(raw)].strip(" `'\".;")):
            return {"cmd.order" if ordered else "cmd.named"}
    return set()


@lru_cache(maxsize=500)
def _risky(command: str) -> bool:
    """Whether it does what can be much harm; a program alone is only named."""
    return " " in command and any(act.kind in lexicon().sets["risky"] for act in acts(command))


# --- other languages: an order is a verb and a thing in one sentence --------------------------------------------------


def _foreign(sentence: str, folded: str, words: list[str], language: Language) -> Clause:
    spaceless = language.name in SPACELESS
    marks = language.parts(folded) if spaceless else language.marks(words)
    taken = {place for place, _ in marks}
    others = [word for place, word in enumerate(words) if place not in taken and len(word) > 2]
    others = (
        re.findall(r"[a-z][a-z0-9]+", folded) if spaceless else [one for one in others if one not in language.words]
    )
    english = lexicon().languages[ENGLISH]
    marks += [(0, mark) for word in others for mark in english.of(word) if mark.role in _SHARED]
    kinds = {mark.kind for _, mark in marks if mark.role == "verb"}
    roles, seen = {mark.role for _, mark in marks}, _seen(sentence)
    command = _command(sentence, words)
    features = command | {"foreign"}
    features |= {f"f.{role}" for role in ("read", "build", "code", "own", "not", "when", "fails") if role in roles}
    things = {f"t:{mark.kind}" for _, mark in marks if mark.role == "thing"} | {one for one in seen if one[:2] == "t:"}
    if not kinds:
        return Clause(sentence.strip(), frozenset(features | {"states"}), "command" if command else "")
    pairs = {kind for kind in kinds if f"t:{kind}" in things}
    features |= {"f.order", "f.pair" if pairs else "f.cross" if things else "nothing"} | seen | things
    features |= {role for role in ("test", "prod", "many") if role in roles} | {f"v:{kind}" for kind in kinds}
    features |= {f"v:{kind}&{thing}" for kind in kinds for thing in things}
    return Clause(sentence.strip(), frozenset(features), min(pairs or kinds, key=KINDS.index))
