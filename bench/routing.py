"""What routing costs: comparing a task with cards, beside a loop in Python and SQLite's full text; and a decision as a
whole, from a queued task to the committed record."""

import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the daemon has it, before numpy is imported

import numpy as np

from claudomator_py.domain.principal import OPERATOR
from claudomator_py.embed import Hashed
from claudomator_py.risk import assess_anew
from claudomator_py.routing.profile import Profile, SkillTexts, text_hash
from claudomator_py.routing.space import Space
from claudomator_py.schema.cardfile import shipped_cards, shipped_files
from claudomator_py.store.database import Database
from claudomator_py.store.migrate import migrate
from claudomator_py.tasks import specialists
from tests.fakes.world import START_MS, World

SIZES = ((18, 1, 4_096), (18, 10, 4_096), (100, 10, 384), (1_000, 100, 384))
"""Cards, skills of each, and dimensions."""
ROUNDS = 30
DECISIONS = 200
ASKED_WORDS = 40
JUDGED_CHARACTERS = 20_000
_WORDS = [f"word{number}" for number in range(5_000)]


def measure() -> None:
    """Print medians, in milliseconds."""
    for cards, skills, dimensions in SIZES:
        _compared(cards, skills, dimensions)
    _judged()
    _decided()


def _judged() -> None:
    """How long it takes to judge a text, which is cheapest where no sentence is an order."""
    prose = " ".join(
        text for card in shipped_cards(shipped_files()) for skill in card.skills for text in skill.examples
    )
    log = "\n".join(f"10:00:{number % 60:02} worker-{number % 7}: request {number} handled" for number in range(2_000))
    hostile = "without the write to all, " * 1_000
    for name, text in (("a log", log), ("orders", prose), ("a hostile text", hostile)):
        took_ms = _median_ms(partial(assess_anew, text[:JUDGED_CHARACTERS]))
        sys.stdout.write(f"    {f'judge {name}, a character':>30}: {took_ms / len(text[:JUDGED_CHARACTERS]):9.5f} ms\n")


def _compared(cards: int, skills: int, dimensions: int) -> None:
    chance, values = random.Random(1), np.random.default_rng(1)  # noqa: S311 - the same every time
    texts = {
        f"{card}-{skill}": " ".join(chance.choices(_WORDS, k=20)) for card in range(cards) for skill in range(skills)
    }
    vectors = {
        text_hash(text): row for text, row in zip(texts.values(), _rows(values, len(texts), dimensions), strict=True)
    }
    profiles = [
        Profile(
            str(card),
            texts[f"{card}-0"],
            tuple(SkillTexts(str(entry), (texts[f"{card}-{entry}"],)) for entry in range(skills)),
        )
        for card in range(cards)
    ]
    space = Space(profiles, vectors, weighs_rarity=False, own_share=0.35)
    (asked,) = _rows(values, 1, dimensions)
    words = chance.choices(_WORDS, k=ASKED_WORDS)
    lists, entry = [row.tolist() for row in vectors.values()], asked.tolist()
    peers: dict[str, Callable[[], object]] = {
        "one product": lambda: space.likeness(asked),
        "loop in Python": lambda: max(sum(a * b for a, b in zip(row, entry, strict=True)) for row in lists),
        "full text (FTS5), all words": _full_text(texts, words),
    }
    sys.stdout.write(f"  {cards} cards with {skills} skills, {dimensions} dimensions\n")
    for name, fn in peers.items():
        sys.stdout.write(f"    {name:>30}: {_median_ms(fn):9.3f} ms\n")


def _rows(values: np.random.Generator, count: int, dimensions: int) -> "np.typing.NDArray[np.float32]":
    return values.standard_normal((count, dimensions), dtype=np.float32)


def _full_text(texts: dict[str, str], words: Sequence[str]) -> Callable[[], object]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE skill USING fts5(name UNINDEXED, body)")
    connection.executemany("INSERT INTO skill VALUES (?, ?)", texts.items())
    query = "SELECT name FROM skill WHERE skill MATCH ? ORDER BY rank LIMIT 10"
    return lambda: connection.execute(query, (" OR ".join(words),)).fetchall()


def _median_ms(fn: Callable[[], object]) -> float:
    times: list[float] = []
    while len(times) < ROUNDS and sum(times) < ROUNDS:  # the loop takes seconds over a great many
        begin = time.perf_counter()
        fn()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1_000


def _decided() -> None:
    """A task at a time, as it is when somebody waits for it."""
    cards = shipped_cards(shipped_files())
    sentences = [text for card in cards for skill in card.skills for text in skill.examples]
    encode = partial(Hashed().encode, sentences[:1])
    with tempfile.TemporaryDirectory() as folder, Database.open("sqlite", state_dir=Path(folder) / "state") as database:
        migrate(database)
        for card in cards:
            database.write(partial(specialists.register, card=card, by=OPERATOR, now_ms=START_MS))
        world = World(database)
        times = []
        for number in range(DECISIONS):
            world.submit(f"task-{number}", instructions=sentences[number % len(sentences)])
            begin = time.perf_counter()
            world.router.route()
            times.append((time.perf_counter() - begin) * 1_000)
    times = sorted(times[1:])  # the first encodes the cards
    sys.stdout.write(f"  {len(cards)} shipped cards, encoder {Hashed.id}\n")
    sys.stdout.write(f"    {'encode a task':>30}: {_median_ms(encode):9.3f} ms\n")
    sys.stdout.write(f"    {'decide and commit, p50':>30}: {statistics.median(times):9.3f} ms\n")
    sys.stdout.write(f"    {'decide and commit, p99':>30}: {times[int(len(times) * 0.99)]:9.3f} ms\n")
