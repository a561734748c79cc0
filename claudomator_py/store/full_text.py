"""The full text of specialists: which skills have which words, with either database's own index of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, Integer, String, bindparam, func, select, text

from claudomator_py.domain.principal import Principal
from claudomator_py.store.tables import SPECIALIST, SPECIALIST_SKILL
from claudomator_py.store.tables.columns import RowNumber
from claudomator_py.store.visibility import cards_given
from claudomator_py.values import regex

MAX_WORDS: Final = 32
"""Of a query; what comes after them is left out."""

Found = tuple[str, str | None]
"""A specialist's id and that of one of its skills; None: the card's own text."""

# Those that PostgreSQL's English dictionary drops, and some that requests are full of.
_SAY_NOTHING: Final = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
    its itself they them their theirs themselves what which who whom this that these those am is are was were be been
    being have has had having do does did doing a an the and but if or because as until while of at by for with about
    against between into through during before after above below to from up down in out on off over under again further
    then once here there when where why how all any both each few more most other some such no nor not only own same so
    than too very s t can will just don should now please need want would could let us
"""
_STOP_WORDS: Final = frozenset(_SAY_NOTHING.split())
_WORD: Final = regex(r"[^\W_]+")
_ONE_WORD: Final = {
    "sqlite": "SELECT {n} AS word, rowid AS id FROM specialist_text WHERE specialist_text MATCH :word{n}",
    "postgresql": "SELECT {n} AS word, id FROM specialist_skill "
    "WHERE to_tsvector('english', title || ' ' || body) @@ plainto_tsquery('english', :word{n})",
}


def words_of(query: str) -> tuple[str, ...]:
    """Return what is searched for: the query's words, once each, without those that say nothing. Nothing else of it
    counts, such as quotes and operators."""
    found = (word for word in _WORD.findall(query.casefold()) if word not in _STOP_WORDS)
    return tuple(dict.fromkeys(found))[:MAX_WORDS]


def hits(connection: Connection, words: Sequence[str], by: Principal) -> Mapping[Found, frozenset[str]]:
    """Return the texts of cards that may be given work of that principal's, each with those of the words that it has,
    in any form."""
    if not words:
        return {}
    dialect = connection.dialect.name
    queries = " UNION ALL ".join(_ONE_WORD[dialect].format(n=n) for n in range(len(words)))
    # Quoted, a word is no syntax of FTS5; the words have no quotes themselves.
    values = [f'"{word}"' if dialect == "sqlite" else word for word in words]
    bound = [bindparam(f"word{n}", value, String) for n, value in enumerate(values)]
    hit = text(queries).bindparams(*bound).columns(word=Integer, id=RowNumber).cte("hit")
    query = (
        select(SPECIALIST_SKILL.c.specialist_id, SPECIALIST_SKILL.c.skill, hit.c.word)
        .join(SPECIALIST_SKILL, SPECIALIST_SKILL.c.id == hit.c.id)
        .join(SPECIALIST, SPECIALIST.c.id == SPECIALIST_SKILL.c.specialist_id)
        .where(cards_given(by))
    )
    found: dict[Found, set[str]] = defaultdict(set)
    for row in connection.execute(query):
        found[row.specialist_id, row.skill].add(words[row.word])
    return {place: frozenset(there) for place, there in found.items()}


def count(connection: Connection, by: Principal) -> int:
    """Return how many texts there are of cards that may be given work of that principal's."""
    query = select(func.count()).select_from(SPECIALIST_SKILL)
    query = query.join(SPECIALIST, SPECIALIST.c.id == SPECIALIST_SKILL.c.specialist_id).where(cards_given(by))
    found: int = connection.execute(query).scalar_one()
    return found
