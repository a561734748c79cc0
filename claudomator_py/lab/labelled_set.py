"""The lines of a labelled set: cards, and tasks with the decisions that would be right."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.card import ALIASES, Card
from claudomator_py.domain.errors import shown, suggestion
from claudomator_py.domain.principal import INBOX, Principal, Role
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import TaskSpec
from claudomator_py.lab.handoff_evaluation import ASKED, DEMANDS, HandoffDemand, demand_of, plain, task_of
from claudomator_py.policy.facts import WORDS, Facts, paths_in
from claudomator_py.routing.profile import Request
from claudomator_py.scheduler.records import Route
from claudomator_py.schema.validation import first_problem
from claudomator_py.values import dataclass

TO_SOMEBODY = (Route.SPECIALIST, Route.HUMAN_REVIEW)
NOBODY: Final = "__none__"
"""The value of ``agent`` for an out-of-scope task."""
_MAKERS: Final = ("creator", "role", "organisation")
"""Keys that describe the task's creator for policy rules."""
_LINE: Final = frozenset(
    {"id", "text", "instructions", "name", "tags", "agent", "skill", "oos", "expected", "hands_on_to", "source"}
    | {*ASKED, *_MAKERS, *DEMANDS}
)
_LABEL: Final = frozenset(
    {"route", "specialist", "acceptable", "tier", "acceptable_tiers", "risk", "mentions", "traits", *DEMANDS}
)
_ALIKE: Final = 0.8
"""Likeness by ``difflib`` from which an unknown key is taken for a misspelt one."""

E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Case:
    """One task of the set."""

    id: str
    request: Request
    expected: frozenset[str] | None = None
    """The right specialists, any of them. Empty: nobody. None: not labelled."""
    specialist: str | None = None
    """The best of the right specialists. None: not labelled."""
    route: Route | None = None
    """The right route. None: not labelled."""
    risk: Risk | None = None
    """The right risk. None: not labelled."""
    mentions: tuple[str, ...] = ()
    """The specialists it addresses."""
    tiers: tuple[Tier, ...] = ()
    """The acceptable tiers. Empty: not labelled."""
    demand: HandoffDemand | None = None
    """What its handoffs must be like. None: not labelled."""
    asks: TaskSpec | None = None
    """The task with its permissions, budget and expected output. None: it has none of these."""
    maker: Principal = INBOX
    """The creator that policy rules see."""
    source: str = "file"
    """The ``task.source`` that policy rules see."""

    def facts(self, risk: Risk, specialist: str | None, skill: str | None) -> Facts:
        """Return the facts that policy rules see, without machine and time. specialist: who does it, if known."""
        demand = self.demand or plain(self.request.text)
        bare = TaskSpec.model_construct(name="task", instructions=self.request.text) if demand is None else demand.task
        task = self.asks or bare
        task = task.model_copy(update={"tags": self.request.tags, "name": self.request.name or task.name})
        paths = paths_in(self.request.text, "")
        return Facts(task, self.maker, self.source, specialist, skill, risk, paths=paths)


def card_of(data: Mapping[str, Any]) -> Card:
    """Return the card that a line describes. Older names of fields, such as ``display_name``, are accepted. Raises
    ValueError."""
    renamed = dict(data)
    for old, new in ALIASES.items():
        if old in renamed:
            renamed.setdefault(new, renamed.pop(old))
    known = {name: value for name, value in renamed.items() if name in Card.model_fields}
    try:
        return Card.model_validate(known)
    except ValidationError as error:
        raise ValueError(first_problem(Card, error).render()) from None


def ignored(data: Mapping[str, Any]) -> list[str]:
    """Return the keys of a line that are not fields of a card."""
    return sorted(set(data) - set(Card.model_fields) - set(ALIASES))


def case_of(data: Mapping[str, Any], known: Collection[str] | None = None) -> Case:
    """Return the case that a line describes, in either format: ``text`` labelled with ``agent`` and ``oos``, or
    ``instructions``, ``name`` and ``tags`` labelled with ``expected``. known: ids of the specialists; None: any id is
    accepted. Raises ValueError."""
    _check_keys(data, _LINE)
    if (strays := sorted((set(_LABEL) - _LINE) & set(data))) and data.get("expected") is None and "agent" not in data:
        raise ValueError(f"`{strays[0]}` is a label; put it into `expected`")
    identity, text = data.get("id"), data.get("instructions", data.get("text"))
    if not isinstance(identity, str) or not isinstance(text, str):
        raise ValueError("it needs an `id` and a `text` or `instructions`")
    request = Request(text, str(data.get("name") or ""), _texts(data, "tags"))
    label, demand = data.get("expected"), demand_of(data, text)
    asks = task_of(data, text) if any(data.get(name) is not None for name in ASKED) else None
    task = Case(identity, request, demand=demand, asks=asks, maker=_maker(data), source=_source(data))
    if label is None:
        return replace(task, expected=_expected(data, known))
    if not isinstance(label, Mapping):
        raise ValueError("`expected` is not an object")
    _check_keys(label, _LABEL)
    route, specialist = _one_of(Route, label, "route"), label.get("specialist")
    _check_names("expected.specialist", [] if specialist is None else [specialist], known)
    right = [*([] if specialist is None else [specialist]), *_texts(label, "acceptable")]
    _check_names("expected.acceptable", right, known)
    _check_names("expected.mentions", _texts(label, "mentions"), known)
    if (ends := label.get("ends_with")) is not None:
        _check_names("expected.ends_with", [ends], None if known is None else {*known, Route.HUMAN_REVIEW})
    tier = _one_of(Tier, label, "tier")
    tiers = tuple(_word(Tier, word, "acceptable_tiers") for word in _texts(label, "acceptable_tiers"))
    named = route in TO_SOMEBODY or route is None
    return replace(
        task,
        expected=(frozenset(right) if right else None) if named else frozenset(),
        specialist=specialist if named else None,
        route=route,
        risk=_one_of(Risk, label, "risk"),
        mentions=_texts(label, "mentions"),
        tiers=tiers or (() if tier is None else (tier,)),
    )


def _expected(data: Mapping[str, Any], known: Collection[str] | None) -> frozenset[str] | None:
    if "agent" not in data:
        return None
    agent = data["agent"]
    if data.get("oos") or agent in (None, NOBODY):
        return frozenset()
    _check_names("agent", [agent], known)
    return frozenset({agent})


def _source(data: Mapping[str, Any]) -> str:
    """Return the task's source. Raises ValueError."""
    source, words = data.get("source") or "file", WORDS["task.source"]
    if source not in words:
        known = suggestion(str(source), map(str, words))
        raise ValueError(f"`source` is {shown(str(source))}, which is not a source: {known}")
    return str(source)


def _maker(data: Mapping[str, Any]) -> Principal:
    if not any(name in data for name in _MAKERS):
        return INBOX
    role = _one_of(Role, data, "role") or INBOX.role
    organisation = data.get("organisation")
    return Principal(str(data.get("creator") or INBOX.id), role, None if organisation is None else str(organisation))


def _check_keys(document: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise ValueError for a key that looks like a misspelt known one. Other unknown keys are allowed."""
    for key in document:
        if key not in known and (near := difflib.get_close_matches(key, known, n=1, cutoff=_ALIKE)):
            raise ValueError(f"the key `{shown(key)}` is unknown: did you mean `{near[0]}`?")


def _check_names(place: str, names: Iterable[object], known: Collection[str] | None) -> None:
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"`{place}` is not the id of a specialist")
        if known is not None and name not in known:
            raise ValueError(f"`{place}` names `{shown(name)}`, which has no card: {suggestion(name, known)}")


def _one_of(words: type[E], document: Mapping[str, Any], key: str) -> E | None:
    return None if document.get(key) is None else _word(words, document[key], key)


def _word(words: type[E], word: object, key: str) -> E:
    if not isinstance(word, str) or word not in tuple(words):
        raise ValueError(f"`{key}` is {shown(str(word))}, which is not allowed: {suggestion(str(word), words)}")
    return words(word)


def _texts(document: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = document.get(key) or ()
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"`{key}` is not a list of texts")
    return tuple(values)
