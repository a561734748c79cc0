"""How good routing is: a labelled set of tasks, the decisions that are made on it, and how many of them are right."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from claudomator_py.domain.card import ALIASES, Card
from claudomator_py.domain.rationale import RationaleCode
from claudomator_py.domain.vectors import Vector
from claudomator_py.routing.calibration import Calibration
from claudomator_py.routing.mentions import Names, Participant
from claudomator_py.routing.profile import Request, profile_of, text_hash
from claudomator_py.routing.ranking import RoutingRules, decide, rank, to
from claudomator_py.routing.space import Space
from claudomator_py.scheduler.decision import Route, SpecialistRecord

_TO_SOMEBODY = (Route.SPECIALIST, Route.HUMAN_REVIEW)
_NS_PER_MS = 1_000_000


class Encoding(Protocol):
    """What an evaluation needs of an encoder, see ``ports.Encoder``."""

    weighs_rarity: bool

    def encode(self, texts: Sequence[str]) -> Vector:
        """A row for each text."""


@dataclass(frozen=True, slots=True)
class Case:
    """One task of the set."""

    id: str
    request: Request
    expected: frozenset[str] | None = None
    """Who would be right: any of these; empty: nobody. None: it has no label."""


class Latency(BaseModel):
    """How long decisions take, in milliseconds of this process."""

    model_config = ConfigDict(frozen=True)

    encode_p50: float
    score_p50: float
    p99: float
    """Of both together."""


class Evaluation(BaseModel):
    """What came of it: shares of 0 to 1, rounded to 1e-4; None where the set has no case to tell by."""

    model_config = ConfigDict(frozen=True)

    cases: int
    encoder: str
    threshold: float
    """For a task without a name."""
    task_threshold: float
    """For one with a name."""
    top1: float | None = None
    """Of the tasks that are for somebody, those whose best candidate is right, whatever its score."""
    accuracy_with_none: float | None = None
    """Of all tasks, those that went to somebody who is right, or to nobody where nobody is."""
    oos_recall: float | None = None
    """Of the tasks that are for nobody, those that went to nobody."""
    in_scope_fallback: float | None = None
    """Of the tasks that are for somebody, those that went to nobody."""
    wrong_agent: float | None = None
    """Of all tasks, those that went to somebody who is not right; where nobody is, nobody is right."""
    latency_ms: Latency | None = None


def card_of(data: Mapping[str, Any]) -> Card:
    """The card that a line of a set describes: a card, or one with ``display_name`` and ``allowed_backends``.

    Raises ValueError.
    """
    renamed = dict(data)
    for old, new in ALIASES.items():
        if old in renamed:
            renamed.setdefault(new, renamed.pop(old))
    known = {name: value for name, value in renamed.items() if name in Card.model_fields}
    try:
        return Card.model_validate(known)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def ignored(data: Mapping[str, Any]) -> list[str]:
    """The keys of such a line that say nothing of a card."""
    return sorted(set(data) - set(Card.model_fields) - set(ALIASES))


def case_of(data: Mapping[str, Any]) -> Case:
    """The case that a line of a set describes, of either kind: ``text``, with ``agent`` and ``oos`` as its label; or
    ``instructions``, ``name`` and ``tags``, with ``expected``. Raises ValueError.
    """
    identity, text = data.get("id"), data.get("instructions", data.get("text"))
    if not isinstance(identity, str) or not isinstance(text, str):
        raise ValueError("it needs an `id` and a `text` or `instructions`")
    tags = data.get("tags") or ()
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError("`tags` is no list of texts")
    return Case(identity, Request(text, str(data.get("name") or ""), tuple(tags)), _expected(data))


def _expected(data: Mapping[str, Any]) -> frozenset[str] | None:
    label = data.get("expected")
    if isinstance(label, Mapping):
        if label.get("route") not in _TO_SOMEBODY:
            return frozenset()
        return frozenset(one for one in (label.get("specialist"), *(label.get("acceptable") or ())) if one)
    if "agent" not in data:
        return None
    return frozenset() if data.get("oos") or data["agent"] is None else frozenset({str(data["agent"])})


def space_of(cards: Sequence[Card], encoder: Encoding, calibration: Calibration) -> Space:
    """The cards as the encoder sees them."""
    profiles = [profile.as_one if calibration.as_one else profile for profile in map(profile_of, cards)]
    texts = sorted({text for profile in profiles for text in profile.texts})
    vectors = dict(zip(map(text_hash, texts), encoder.encode(texts) if texts else (), strict=True))
    return Space(profiles, vectors, weighs_rarity=encoder.weighs_rarity, own_share=calibration.own_share)


def evaluate(
    cards: Sequence[Card],
    cases: Sequence[Case],
    encoder: Encoding,
    calibration: Calibration,
    clock_ns: Callable[[], int],
) -> tuple[Evaluation, list[SpecialistRecord]]:
    """Decide each case as if its maker saw all cards. clock_ns: time that passes, in nanoseconds; of what is decided by
    a mention, none is counted."""
    space = space_of(cards, encoder, calibration)
    by_id, rules = {card.id: card for card in cards}, RoutingRules(calibration)
    names = Names(Participant(card.id, card.title) for card in cards)
    records, encoded, scored = [], [], []
    for case in cases:
        if (addressed := names.addressed(case.request.text)) is not None:
            records.append(to(RationaleCode.MENTIONED, addressed, rules.versions))
            continue
        began = clock_ns()
        views = list(encoder.encode(case.request.views))
        compared = clock_ns()
        likeness = space.likeness(views, calibration.shares(len(views)))
        ranked = rank(case.request, cards, likeness, calibration)
        records.append(decide(ranked, by_id, rules, views=len(views)))
        encoded.append((compared - began) / _NS_PER_MS)
        scored.append((clock_ns() - compared) / _NS_PER_MS)
    return _summed(cases, records, calibration, encoded, scored), records


def _summed(
    cases: Sequence[Case],
    records: Sequence[SpecialistRecord],
    calibration: Calibration,
    encoded: Sequence[float],
    scored: Sequence[float],
) -> Evaluation:
    labelled = [(case.expected, one) for case, one in zip(cases, records, strict=True) if case.expected is not None]
    inside = [(right, one) for right, one in labelled if right]
    outside = [one for right, one in labelled if not right]
    latency = None
    if encoded:
        both = sorted(one + other for one, other in zip(encoded, scored, strict=True))
        latency = Latency(
            encode_p50=round(_quantile(sorted(encoded), 0.5), 4),
            score_p50=round(_quantile(sorted(scored), 0.5), 4),
            p99=round(_quantile(both, 0.99), 4),
        )
    return Evaluation(
        cases=len(cases),
        encoder=calibration.encoder,
        threshold=calibration.threshold,
        task_threshold=calibration.least(2),
        top1=_share([_best(one) in right for right, one in inside]),
        accuracy_with_none=_share([_is_right(right, one) for right, one in labelled]),
        oos_recall=_share([one.route not in _TO_SOMEBODY for one in outside]),
        in_scope_fallback=_share([one.route not in _TO_SOMEBODY for _, one in inside]),
        wrong_agent=_share([one.route in _TO_SOMEBODY and one.specialist not in right for right, one in labelled]),
        latency_ms=latency,
    )


def _best(record: SpecialistRecord) -> str | None:
    if record.route in _TO_SOMEBODY:
        return record.specialist
    return record.specialist_candidates[0].specialist if record.specialist_candidates else None


def _is_right(right: frozenset[str], record: SpecialistRecord) -> bool:
    return record.specialist in right if record.route in _TO_SOMEBODY else not right


def _share(hits: Sequence[bool]) -> float | None:
    return round(sum(hits) / len(hits), 4) if hits else None


def _quantile(values: Sequence[float], share: float) -> float:
    """Of sorted values, the one below which so many of them are."""
    return values[min(len(values) - 1, int(share * len(values)))]
