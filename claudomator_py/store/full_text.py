"""Full-text search in specialists' cards, by the database's own index."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, Integer, String, bindparam, func, select, text

from claudomator_py.domain.principal import Principal
from claudomator_py.store.tables import SPECIALIST, SPECIALIST_SKILL
from claudomator_py.store.tables.columns import RowNumber
from claudomator_py.store.visibility import assignable_cards
from claudomator_py.values import regex

MAX_WORDS: Final = 32
"""Words of a query that are used; further ones are ignored."""

Found = tuple[str, str | None]
"""A specialist's id, and a skill's id or None for the card's own text."""

# The stop words of PostgreSQL's English dictionary, and some that are common in requests.
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
    """Return the query's distinct words without stop words. Quotes and operators have no meaning."""
    words = (word for word in _WORD.findall(query.casefold()) if word not in _STOP_WORDS)
    return tuple(dict.fromkeys(words))[:MAX_WORDS]


def hits(connection: Connection, words: Sequence[str], by: Principal) -> Mapping[Found, frozenset[str]]:
    """Return the texts that contain any of the words in any inflection, each with the words found. Only cards that may
    be given the principal's work are searched."""
    if not words:
        return {}
    dialect = connection.dialect.name
    queries = " UNION ALL ".join(_ONE_WORD[dialect].format(n=n) for n in range(len(words)))
    # Quoted so that FTS5 does not read a word as syntax; words contain no quotes.
    values = [f'"{word}"' if dialect == "sqlite" else word for word in words]
    bound = [bindparam(f"word{n}", value, String) for n, value in enumerate(values)]
    hit = text(queries).bindparams(*bound).columns(word=Integer, id=RowNumber).cte("hit")
    query = (
        select(SPECIALIST_SKILL.c.specialist_id, SPECIALIST_SKILL.c.skill, hit.c.word)
        .join(SPECIALIST_SKILL, SPECIALIST_SKILL.c.id == hit.c.id)
        .join(SPECIALIST, SPECIALIST.c.id == SPECIALIST_SKILL.c.specialist_id)
        .where(assignable_cards(by))
    )
    terms: dict[Found, set[str]] = defaultdict(set)
    for row in connection.execute(query):
        terms[row.specialist_id, row.skill].add(words[row.word])
    return {place: frozenset(there) for place, there in terms.items()}


def count(connection: Connection, by: Principal) -> int:
    """Return the number of texts of cards that may be given the principal's work."""
    query = select(func.count()).select_from(SPECIALIST_SKILL)
    query = query.join(SPECIALIST, SPECIALIST.c.id == SPECIALIST_SKILL.c.specialist_id).where(assignable_cards(by))
    count: int = connection.execute(query).scalar_one()
    return count
