"""What a sentence orders, and how risky that is: the sum of the weights of its features, fitted to labelled texts."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, repeat
from typing import Final, NamedTuple

from claudomator_py.acts.prose import commands_in
from claudomator_py.domain.text import fold
from claudomator_py.risk.lexicon import ACTS, KINDS, NONE, Names, Word, entries
from claudomator_py.risk.reading import Sentence
from claudomator_py.values import regex, toml_data

WEIGHTS: Final = "weights.toml"
_SURE: Final = frozenset({"command", "sole"})
_SHOWN: Final = frozenset({"test", "not"})
"""What makes a command harmless: it is not to be run, or where nobody is harmed."""
MANNER: Final = ACTS | {"strong"}
_BEFORE_VERB: Final = frozenset({"lead", "number"})
_NAMES: Final = frozenset({"det", "number"})
_SMALL: Final = frozenset({"lead", "number", "breaks", "back"})
_CLAUSE: Final = regex(r"[,:(]\s|@[\w-]+\s|\s(?:and|then|und|et|y|e|i|en|dann)\s")
"""What parts a command from the clause before."""
_TELLS_ON: Final = regex(r"^([^'\"]*?),\s.*")
_QUOTED: Final = regex(r"'[^']*'|\"[^\"]*\"")
_WORD: Final = regex(r"[\w:']+")


class Order(NamedTuple):
    """A clause that orders something, or a sentence with a command."""

    text: str
    features: Names
    verbs: Names = NONE
    things: Names = NONE
    """The classes of its verb, and of what it names."""

    @property
    def kind(self) -> str:
        """The class of what it orders; ``command`` for a command."""
        kinds = self.verbs & self.things or self.verbs
        return next((kind for kind in KINDS if kind in kinds), "command")

    @property
    def is_risky(self) -> bool:
        """Whether it is sure to be, or the weights of its features add up to more than nothing."""
        known = toml_data("claudomator_py.risk", WEIGHTS)
        adds: float = sum(map(known.get, self.features, repeat(0.0)), start=known["bias"])
        return round(adds, 3) >= 0 or not _SURE.isdisjoint(self.features)


def orders(sentence: Sentence) -> Sequence[Order]:
    """Return what a sentence orders."""
    acting = [word for word in sentence.words if word.acts]
    if not acting:
        return ()
    words = sentence.language.joined(sentence.words)
    # Behind a mark or an "and", a clause begins with a verb, or with what may stand before it.
    marks = [at for at, word in enumerate(words[1:]) if word.begins and "breaks" in words[at].tags]
    clauses = [words[begin + 1 : end] for begin, end in pairwise([-1, *marks, len(words)])] if marks else [words]
    orders = [order for clause in clauses if (order := _order(sentence, clause))]
    may_command = [word for word in acting if "program" in word.tags] and not any(word.tags & _SHOWN for word in words)
    if may_command and _has_command(sentence.text):
        orders.append(Order(sentence.text, frozenset({"command"})))
    # "Deploy." and "Ship it!" name no thing, and yet are orders if nothing else is said.
    is_strong = sentence.sole and any("strong" in word.tags for word in words)
    if is_strong and all(word.verbs or word.tags & _SMALL for word in words):
        return [order._replace(features=order.features | {"sole"}) for order in orders]
    return orders


def _order(sentence: Sentence, clause: Sequence[Word]) -> Order | None:
    """Return what a clause orders.

    In English it begins with its verb, or says what has to be done, and is read from there: "the servers have to be
    stopped" as "have to be stopped, the servers". Elsewhere the verb may be anywhere, and in a noun ("Mailserver").
    """
    passive = [at for at, word in enumerate(clause) if word.begins and "passive" in word.tags]
    if passive:
        clause = [*clause[passive[0] :], *clause[: passive[0]]]
    begin, is_english = 0, sentence.language.is_english
    while is_english and begin < len(clause) and not clause[begin].tags.isdisjoint(_BEFORE_VERB):
        begin += 1
    acting = clause[begin : begin + 1] if is_english else clause
    verbs = NONE.union(*[word.done if passive else word.verbs for word in acting])
    if not verbs:
        return None
    telling = [word for at, word in enumerate(clause) if word.features and (at != begin or not is_english)]
    things = NONE.union(*[word.things for word in telling])
    manner = NONE.union(*[word.tags for word in acting]) & MANNER
    is_det = len(clause) > begin + 1 and not clause[begin + 1].tags.isdisjoint(_NAMES)
    form = "passive" if passive else "foreign" if not is_english else "det" if is_det else "bare"
    match = NONE if verbs.isdisjoint(things) else {"match"}
    features = manner.union(match, {form}, *[word.features for word in telling])
    # As it is written, it may have no blanks around its marks or between its words.
    text = " ".join([word.text for word in clause])
    return Order(text if text in sentence.text else sentence.text, features, verbs, things)


@lru_cache(maxsize=500)
def _has_command(text: str) -> bool:
    """Whether a sentence has a command run that acts on others."""
    begins = text.split(None, 1)[0]
    is_line = begins in entries("commands", "programs") and (begins not in entries("commands", "plain") or " -" in text)
    for command in commands_in(_TELLS_ON.sub(r"\1", f"$ {text}") if is_line else text):
        if " " in command.text and any(act.kind in entries("commands", "risky") for act in command.acts):
            before = "" if is_line else _CLAUSE.split(text[: command.start])[-1]
            if words := _WORD.findall(fold(before)):
                leads = entries("commands", "leads")
                return words[0] in leads | entries("commands", "in") and words[-1] in leads
            # What only speaks of a command has a verb behind it: "`npm publish` prints a warning".
            then = text[command.end :] if command.in_code and not is_line else command.text
            return entries("commands", "states").isdisjoint(_WORD.findall(_QUOTED.sub("", then.lower())))
    return False
