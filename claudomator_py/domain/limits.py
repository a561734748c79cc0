"""Limits that runs meet, and the resulting holds: what nothing may be started on, and until when."""

from dataclasses import replace

from claudomator_py.domain.outcome import REASON_POLICIES, HoldKind, Outcome, OutcomeStatus, Provenance, Reason
from claudomator_py.domain.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from claudomator_py.values import dataclass, regex

BRIEF_MS = 30 * SECOND_MS
MAX_BRIEF_MS = 5 * MINUTE_MS
FIRST_ESTIMATE_MS = 30 * SECOND_MS
MAX_ESTIMATE_MS = HOUR_MS
MAX_RESET_MS = 35 * DAY_MS
"""No service has a window longer than a month: a reset further away than this is ignored."""
NEWS_MS = MINUTE_MS
"""A hold that grows by no more than this counts as unchanged to a person."""
MAX_TRY_MS = 10 * MINUTE_MS
SHORTEST_MS = SECOND_MS
STALE_MS = MINUTE_MS
_STEEPEST = 20

_GUESSED = (Provenance.ESTIMATED, Provenance.PROBED)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "five": 5, "six": 6, "seven": 7, "twelve": 12, "thirty": 30}
_WINDOW = regex(rf"({'|'.join(_NUMBERS)})_(minute|hour|day)(?:_([a-z_]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """What a hold applies to: a single agent, or an account of a kind, whichever agents use it. family: only models of
    that family, such as ``opus``; None for all."""

    agent: str | None = None
    kind: str | None = None
    account: str | None = None
    family: str | None = None

    @property
    def label(self) -> str:
        """The label as people write it: ``home``, ``claude/default``, ``claude/default:opus``."""
        whose = self.agent if self.agent is not None else f"{self.kind}/{self.account}"
        return whose if self.family is None else f"{whose}:{self.family}"

    def is_of(self, agent: str, kind: str, account: str) -> bool:
        """Return whether that agent draws on it."""
        return self.agent == agent if self.agent is not None else (self.kind, self.account) == (kind, account)


@dataclass(frozen=True, slots=True)
class RanOn:
    """What a run drew on. model: the name that was asked for; None if the agent chose."""

    agent: str
    kind: str
    account: str
    model: str | None
    ran_model: str | None = None
    """The agent program's name for the model that it ran on; None if it did not say."""

    def is_of(self, family: str) -> bool:
        """Return whether the run's model is of that family, by the name asked for, or the program's name if it
        chose."""
        return in_family(self.model or self.ran_model, family)


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold on a bucket. until_ms: epoch milliseconds; None if it lasts until an operator releases it."""

    bucket: Bucket
    reason: Reason | None
    """None for an operator's own hold."""
    until_ms: int | None
    provenance: Provenance
    source: str
    """Where the hold was read, such as the agent's words."""
    created_ms: int
    window: str | None = None
    """The window that is used up, as the agent names it."""
    run_id: str | None = None
    """The run that met the limit."""
    doubted_ms: int | None = None
    """The reset that the agent reported, if it was implausibly far away, capped as in ``believable``."""

    @property
    def event_data(self) -> dict[str, object]:
        """The data of the event that tells of the hold."""
        data = {
            "bucket": self.bucket.label,
            "window": self.window,
            "reason": self.reason,
            "until": self.until_ms,
            "provenance": self.provenance,
        }
        return {key: value for key, value in data.items() if value is not None or key == "until"}

    def holds_at(self, now_ms: int) -> bool:
        """Return whether the hold is in force at that time."""
        return self.until_ms is None or self.until_ms > now_ms

    @property
    def end(self) -> float:
        """The end, for comparing: a hold without an end outlasts all others."""
        return float("inf") if self.until_ms is None else self.until_ms

    def is_news_after(self, known: "Hold") -> bool:
        """Return whether this hold is news to a person who knows the other one on the bucket: it lasts longer."""
        return self.end > known.end + NEWS_MS

    def is_on(self, ran_on: "RanOn") -> bool:
        """Return whether it applies to what such a run draws on."""
        bucket = self.bucket
        return bucket.is_of(ran_on.agent, ran_on.kind, ran_on.account) and (
            bucket.family is None or ran_on.is_of(bucket.family)
        )


_PARTS = regex(r"[a-z]\w*|\d[\w.]*")
_STAGES = frozenset({"preview", "latest", "exp", "experimental"})
"""Words in a model's name that say how finished the model is, not which one it is."""


def in_family(model: str | None, family: str) -> bool:
    """Return whether the model is of that family, by name or alias, ignoring case. None belongs to no family.

    A family is a part of its models' names: ``opus``, ``gpt-6``. A family name that continues after the version, such
    as ``gpt-6-codex``, means that one model, and ``gpt-6-codex-mini`` is a different one. A name matches if it has the
    same words and version, whatever date follows, or if it is an alias made of the last of these words without a
    version, such as ``codex``.
    """
    if model is None:
        return False
    name, family = model.lower(), family.lower()
    family_words, family_version, goes_on = _parts(family)
    words, version, _ = _parts(name)
    if family_version and words and not version:
        return family_words[-len(words) :] == words
    if not goes_on:
        return family in name
    shorter = min(len(version), len(family_version))
    return words == family_words and version[:shorter] == family_version[:shorter]


def _parts(name: str) -> tuple[list[str], list[str], bool]:
    """The words of a model's name, the numbers of its version, and whether a word follows a number."""
    parts = [part for part in _PARTS.findall(name.rpartition("/")[2]) if part not in _STAGES]
    numbers = [part for part in parts if part[0].isdigit()]
    words = [part for part in parts if not part[0].isdigit()]
    return words, numbers, bool(numbers) and not parts[-1][0].isdigit()


TRIED_FIRST = frozenset(
    reason for reason, policy in REASON_POLICIES.items() if policy.hold in (HoldKind.UNTIL_RESET, HoldKind.BRIEF)
)
"""Reasons for which a single run goes first once the hold's time is over."""


def try_pause_ms(met: int) -> int:
    """Return for how long a limited bucket is not tried after its limit was met this many times: no pause after the
    first time, then one second, doubling each time up to ten minutes."""
    return 0 if met < 2 else min(SECOND_MS << min(met - 2, _STEEPEST), MAX_TRY_MS)


def ramp(answered: int) -> int:
    """Return how many runs may be live at once on a bucket whose limit is over: one, the probe, doubling with each run
    that has answered since."""
    return 1 << min(answered, _STEEPEST)


def window_text(window: str) -> str:
    """Return a window in words: ``five_hour`` is the 5h window, ``seven_day_opus`` the 7d opus window."""
    match = _WINDOW.fullmatch(window)
    if match is None:
        return window
    number, unit, rest = match.groups()
    family = f" {rest.replace('_', ' ')}" if rest else ""
    return f"{_NUMBERS[number]}{unit[0]}{family} window"


def done_text(outcome: Outcome, *, checked: bool, whole: bool = True) -> str | None:
    """Return what is notable about a successful run, as a clause: how often it was denied a tool, work scheduled for
    later that was dropped, and that it may have stopped early because a window was nearly used up; None if nothing.

    checked: True if a check has passed, which rules out the last of these. whole: False leaves out which window it was.
    """
    remarks = []
    if outcome.denials:
        remarks.append(f"with {'1 denial' if outcome.denials == 1 else f'{outcome.denials} denials'}")
    if outcome.dropped:
        remarks.append("but what it had set up for later was dropped")
    if not checked and (early := early_text(outcome)) is not None:
        remarks.append(early if whole else early.partition(":")[0])
    return f"done, {'; '.join(remarks)}" if remarks else None


def early_text(outcome: Outcome) -> str | None:
    """Return that a successful run may have stopped early, as a clause; None if no window was nearly used up."""
    near = outcome.nearly_used
    if near is None:
        return None
    return f"may have stopped early: {near.used:.0%} of the {window_text(near.window or 'window')} was used up"


def bucket_after(outcome: Outcome, ran_on: RanOn, fallback_model: str | None = None) -> Bucket | None:
    """Return the bucket to hold after a run's outcome; None if there is nothing to hold.

    A limit, a login or a credit problem concerns the account. An outage holds only the agent or, if it concerns the
    model and the agent has a fallback model, only that model of the agent. A limit on a family holds that family; if
    the run asked for its model by a name that does not reveal the family, such as ``best``, that name is held. If
    neither the requested nor the reported model name belongs to the family, the whole account is held: otherwise the
    same run would meet the limit again immediately, and forever.
    """
    match _kind_of(outcome):
        case HoldKind.NONE:
            return None
        case HoldKind.BRIEF:
            falls_back = outcome.reason is not None and REASON_POLICIES[outcome.reason].falls_back
            has_other = falls_back and fallback_model is not None and ran_on.model not in (None, fallback_model)
            return Bucket(agent=ran_on.agent, family=(ran_on.model or "").lower() if has_other else None)
        case HoldKind.UNTIL_OPERATOR:
            return Bucket(kind=ran_on.kind, account=ran_on.account)
    return Bucket(kind=ran_on.kind, account=ran_on.account, family=_limited_models(outcome.family, ran_on))


def _limited_models(family: str | None, ran_on: RanOn) -> str | None:
    """The models that a limit of the family holds, under a name that the run's model has; None for all models."""
    if family is None:
        return None
    if ran_on.is_of(family):
        return family.lower()
    if ran_on.model is not None and in_family(ran_on.ran_model, family):
        return ran_on.model.lower()
    return None


def believable(outcome: Outcome, met_ms: int) -> Outcome:
    """Return the outcome with resets at most 35 days after the run's end (epoch milliseconds). A later reset is capped
    and marked as ``estimated``."""
    latest_ms = met_ms + MAX_RESET_MS
    changes: dict[str, object] = {}
    if outcome.reset_at is not None and outcome.reset_at > latest_ms:
        changes |= {"reset_at": latest_ms, "provenance": Provenance.ESTIMATED}
    if outcome.near_limit_until is not None and outcome.near_limit_until > latest_ms:
        changes |= {"near_limit_until": latest_ms}
    return outcome.model_copy(update=changes) if changes else outcome


def hold_after(
    outcome: Outcome,
    bucket: Bucket,
    previous: Hold | None,
    now_ms: int,
    met_ms: int | None = None,
    began_ms: int | None = None,
) -> Hold | None:
    """Return the hold that follows from a run's outcome; None if there is none.

    met_ms: when the run ended; None for now. A reset that has passed since is over, however long nobody looked. A reset
    that is only ``estimated`` is not waited for. began_ms: when the run began; None for now. previous: the bucket's
    last hold, released or not. An estimate that proved too short is doubled; one still in force is confirmed, as
    several runs meet the same limit together. Every limit results in a hold; otherwise the bucket would be tried again
    immediately.
    """
    if outcome.reason is None:
        return None
    source = outcome.limit or outcome.detail or outcome.reason.value

    doubted_ms = outcome.reset_at if outcome.provenance is Provenance.ESTIMATED else None

    def hold(until_ms: int | None, provenance: Provenance) -> Hold:
        return Hold(bucket, outcome.reason, until_ms, provenance, source, now_ms, outcome.limit, doubted_ms=doubted_ms)

    def estimated(length_ms: int, longest_ms: int) -> Hold:
        first = hold(now_ms + length_ms, Provenance.ESTIMATED)
        return _estimated(first, previous, now_ms, now_ms if began_ms is None else began_ms, longest_ms)

    match _kind_of(outcome):
        case HoldKind.NONE:
            return None
        case HoldKind.UNTIL_OPERATOR:
            return hold(None, Provenance.REPORTED)
        case HoldKind.BRIEF:
            return estimated(BRIEF_MS, MAX_BRIEF_MS)
        case HoldKind.UNTIL_RESET:
            if doubted_ms is not None or outcome.reset_at is None:
                return estimated(FIRST_ESTIMATE_MS, MAX_ESTIMATE_MS)
            if outcome.reset_at >= now_ms + SHORTEST_MS:
                return hold(outcome.reset_at, outcome.provenance or Provenance.REPORTED)
            # A reset that is long past says nothing about the next one.
            recent = outcome.reset_at > (met_ms or now_ms) - STALE_MS
            return estimated(SHORTEST_MS if recent else FIRST_ESTIMATE_MS, MAX_ESTIMATE_MS)


def _kind_of(outcome: Outcome) -> HoldKind:
    if outcome.reason is None:
        return HoldKind.NONE
    kind = REASON_POLICIES[outcome.reason].hold
    limited = kind is HoldKind.NONE and outcome.status is OutcomeStatus.LIMITED
    return HoldKind.UNTIL_RESET if limited else kind


def _estimated(first: Hold, previous: Hold | None, now_ms: int, began_ms: int, longest_ms: int) -> Hold:
    if previous is None or previous.until_ms is None:
        return first
    if previous.reason is not first.reason or previous.provenance not in _GUESSED:
        return first
    if previous.holds_at(now_ms):
        return previous
    length = previous.until_ms - previous.created_ms
    # A refused run may have retried for minutes before giving up, so its start is what counts.
    if began_ms - previous.until_ms >= max(length, STALE_MS):
        return first
    longer = min(max(2 * length, first.until_ms - now_ms if first.until_ms else 0), longest_ms)
    return replace(first, until_ms=now_ms + longer, provenance=Provenance.PROBED)
