"""Why something was decided: a code with parameters, and the words for each.

Decisions store the value, like the reasons against other choices (``domain/blocked.py``). The words stand beside the
codes and are assembled only for display.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer

from claudomator_py.domain.routing import Risk
from claudomator_py.domain.wording import (
    Coded,
    ConversationRef,
    WordedCode,
    WordedValue,
    refuse_unknown,
)


class RationaleCode(WordedCode):
    """Why a decision was made, with its words: see ``wording.filled``. Codes are stored: never rename them."""

    # --- of a placement -----------------------------------------------------------------------------------------------
    LEAST_ACTIVE = "least_active", "least active"
    REQUIRED = "required", "the task insists on {agent}"
    PREFERRED = "preferred", "the task prefers {agent}"
    RESUMED = "resumed", "resumes the conversation of {conversation}"

    WOULD_WAIT = "would_wait", "no agent would have started it in that tick"
    """Only for a shadow decision: tasks that wait are not placed."""

    # --- of a tier ----------------------------------------------------------------------------------------------------
    ANSWERED = "answered", "[{text}|no reason was given]"
    UNANSWERED = "unanswered", "[{text}|no reason was given]"
    """The cause is part of the decision's classification."""

    # --- of a specialist ----------------------------------------------------------------------------------------------
    NAMED = "named", "the task names {specialist}"
    MENTIONED = "mentioned", "the task addresses {specialist}"
    CONTINUED = "continued", "{specialist} did the task that it continues"
    BY_HAND = "by_hand", "an operator assigned it to {specialist}"
    AS_APPROVED = "as_approved", "its first run was approved with {specialist}"
    BEST_MATCH = "best_match", "it matches {specialist} best"
    CORRECTED = "corrected", "operators have given tasks like it to {specialist}"
    GONE_WELL = "gone_well", "tasks like it have gone well with {specialist}"
    TIE_BREAK = "tie_break", "{specialist} is as good a match as {chosen}, and other signals speak for it"
    PICKED = "picked", "none of {specialists} is clearly ahead, and the classifier picked {specialist}"
    NO_MATCH = "no_match", "it matches no specialist well[; the closest is {specialist}]"
    NONE_MAY = "none_may", "no specialist may take it"
    """Every candidate was excluded from the comparison, each for its own reason."""
    VAGUE = "vague", "its text could be about anything[: {text}]"
    AMBIGUOUS = "ambiguous", "none of {specialists} is clearly ahead"
    HANDED_ON = "handed_on", "[{by}|its run] handed it on to {specialist}"
    FAILED_TWICE = "failed_twice", "[{by}|whoever did it] failed twice, and {specialist} is the fallback"
    NOBODY = "nobody", "no specialist is to do it"
    GONE = "gone", "there is no specialist {specialist} any more"
    NAMED_GONE = "named_gone", "the task names {specialist}, and there is no specialist of that id any more"

    # --- of a task that was not handed on -----------------------------------------------------------------------------
    HANDOFF_LIMIT = "handoff_limit", "the task may be handed on at most [{most}|0] times"
    HANDOFF_LOOP = "handoff_loop", "{specialist} already had it"
    NO_SPECIALIST = "no_specialist", "there is no specialist {specialist}"
    NOT_ADMITTED = (
        "not_admitted",
        "no administrator has admitted {specialist} for the work of others; `claudomator specialists admit` does that",
    )
    """Shown only to those who can see the card: for others there is no such specialist."""

    # --- of a specialist who was not chosen ---------------------------------------------------------------------------
    LESS_ALIKE = "less_alike", "a weaker match"
    NOT_AHEAD = "not_ahead", "a match, but not clearly ahead of the others"
    AS_GOOD = "as_good", "as good a match, but other signals decided"
    BELOW_THRESHOLD = "below_threshold", "below the threshold"
    TOO_RISKY = "too_risky", "[{specialist} ]takes tasks up to {ceiling} risk, and this one has {risk} risk"
    LACKS = "lacks", "[{specialist} ]lacks {lacking}"
    EXCLUDED = "excluded", "[{specialist} is ]excluded by a rule of the policy"
    AWAY = "away", "its agent is not connected, and its card has no address to wake it"

    # --- of a message: who answers it ---------------------------------------------------------------------------------
    MESSAGE_MENTIONS = "message_mentions", "the message mentions {specialists}"
    MESSAGE_ANSWERS = "message_answers", "the message answers {specialist}"
    FOR_PRIMARY = "for_primary", "it addresses nobody else, and {specialist} is the channel's primary"
    FOR_NOBODY = "for_nobody", "it addresses nobody"
    PRIMARY_NOT_NEEDED = (
        "primary_not_needed",
        "it addresses nobody, and the classifier says that {specialist} need not answer",
    )
    PRIMARY_NOT_JUDGED = (
        "primary_not_judged",
        "it addresses nobody, and the classifier did not say whether {specialist} should answer ({text})",
    )
    MESSAGE_REFUSED = "message_refused", "policy allows no answer to it"

    # --- of a policy --------------------------------------------------------------------------------------------------
    GIVEN_BY_RULE = "given_by_rule", "rule {rule} of the policy gives it to {specialist}"
    PERMITTED = "permitted", "the policy allows it[ by rule {rule}]"
    REFUSED = "refused", "rule {rule} of the policy refuses it[: {text}]"
    NEEDS_APPROVAL = "needs_approval", "the policy requires approval ({rules})"
    APPROVED = "approved", "{principal} approved it ({rules})[: {text}]"

    # --- what has no code ---------------------------------------------------------------------------------------------
    TEXT = "text", "{text}"
    """Words stored by an earlier version, which had no codes."""


SAID_BY_THE_TASK: Final = frozenset({RationaleCode.NAMED, RationaleCode.NAMED_GONE})
"""Codes about a specialist that the task itself names, which is no secret to those who see the task."""
UNKNOWN: Final = frozenset({RationaleCode.NO_SPECIALIST, RationaleCode.NOT_ADMITTED})
"""Codes about a specialist that a task could not be handed to, because it does not exist or may not have the task."""


class RationaleParams(Coded):
    """The parameters of a code; the code determines which are set. JSON omits the others."""

    agent: str | None = Field(None, description="The agent that the task names.")
    specialist: str | None = Field(None, description="The specialist in question.")
    specialists: tuple[str, ...] = Field((), description="The specialists in question.")
    chosen: str | None = Field(None, description="The specialist with the best score.")
    by: str | None = Field(None, description="The specialist who handed it on.")
    most: int | None = Field(None, description="How often the task may be handed on.")
    risk: Risk | None = Field(None, description="How much harm the task could do.")
    ceiling: Risk | None = Field(None, description="The highest risk that the specialist may take.")
    rule: str | None = Field(None, description="The rule of the policy.")
    rules: tuple[str, ...] = Field((), description="The rules of the policy.")
    principal: str | None = Field(None, description="Who approved.")
    lacking: tuple[str, ...] = Field((), description="Required capabilities that it does not have.")
    conversation: ConversationRef | None = Field(None, description="The conversation that it has to resume.")
    text: str | None = Field(None, description="The words of another program or of an earlier version.")


class Rationale(WordedValue):
    """Why a decision was made."""

    code: RationaleCode
    params: RationaleParams = Field(default_factory=RationaleParams)

    @model_serializer(mode="wrap")
    def _without_what_is_missing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # A decision has one for each candidate, and few have parameters.
        if not self.params.model_fields_set:
            return {"code": self.code, "params": {}}
        return super()._without_what_is_missing(handler)

    @property
    def named(self) -> frozenset[str]:
        """The specialists that it names."""
        one_by_one = (self.params.specialist, self.params.chosen, self.params.by)
        return frozenset((*self.params.specialists, *(name for name in one_by_one if name is not None)))

    def naming(self, name: Callable[[str], str]) -> "Rationale":
        """Return a copy in which each specialist is called what ``name`` returns."""
        shown: dict[str, object] = {"specialists": tuple(map(name, self.params.specialists))}
        for of_whom in ("specialist", "chosen", "by"):
            participant = getattr(self.params, of_whom)
            shown[of_whom] = None if participant is None else name(participant)
        code = self.code
        if code is RationaleCode.NOT_ADMITTED and shown["specialist"] != self.params.specialist:
            code = RationaleCode.NO_SPECIALIST  # otherwise the existence of a card would be revealed
        return self.having(**shown).model_copy(update={"code": code})


def rationale(code: RationaleCode, **params: Any) -> Rationale:
    """Return the value. Raises TypeError for a parameter that the code does not have."""
    return _with(code, params) if params else _alone(code)


@cache
def _alone(code: RationaleCode) -> Rationale:
    return _with(code, {})


def _with(code: RationaleCode, params: Mapping[str, Any]) -> Rationale:
    refuse_unknown(code, params, code.parameters)
    return Rationale(code=code, params=RationaleParams(**params))


def _from_words(value: object) -> object:
    """Earlier versions stored the words."""
    return rationale(RationaleCode.TEXT, text=value) if isinstance(value, str) else value


StoredRationale = Annotated[Rationale, BeforeValidator(_from_words)]
"""The value in a row."""
