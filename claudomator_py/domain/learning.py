"""How a decision on who does a task is judged once the outcome is known, by fixed rules."""

from enum import StrEnum

from claudomator_py.domain.outcome import Reason
from claudomator_py.domain.wording import WordedCode

SUBSTANTIAL = 40
"""Minimum number of characters for an answer to count; a shorter one may be a mere confirmation."""


class LabelVerdict(StrEnum):
    """A label's judgement of the chosen specialist."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"
    """No judgement: performance stays as it is."""


class LabelRule(WordedCode):
    """The rule by which a decision got its label, with its words. Values are stored: never rename them."""

    SUCCEEDED = "succeeded", "the task was completed, with an answer"
    FOLLOWED = "followed", "a later task continues it"
    HANDED_ON = "handed_on", "the task was handed on, and completed with an answer"
    OVERRIDDEN = "overridden", "an operator assigned the task to another specialist"
    FAILED = "failed", "the task failed for a reason of the work"
    NO_ANSWER = "no_answer", "the task was completed without an answer"
    SHORT_ANSWER = "short_answer", "the task was completed with a few characters, which say nothing either way"
    ELSEWHERE = "elsewhere", "the task failed for a reason that is not the specialist's"
    CANCELLED = "cancelled", "the task was cancelled"


OF_THE_WORK = frozenset({
    Reason.REFUSED, Reason.TURN_LIMIT, Reason.TIMEOUT, Reason.STALLED, Reason.CHECK_FAILED, Reason.OUTPUT_LIMIT,
    Reason.CONTEXT_TOO_LONG, Reason.UNFINISHED, Reason.AGENT_ERROR,
})  # fmt: skip
"""Reasons that may result from giving a task to the wrong specialist. All others concern limits, accounts, the machine
or people, and would have affected any specialist."""

_VERDICTS = {
    LabelRule.SUCCEEDED: LabelVerdict.POSITIVE,
    LabelRule.FOLLOWED: LabelVerdict.POSITIVE,
    LabelRule.HANDED_ON: LabelVerdict.POSITIVE,
    LabelRule.OVERRIDDEN: LabelVerdict.NEGATIVE,
    LabelRule.FAILED: LabelVerdict.NEGATIVE,
    LabelRule.NO_ANSWER: LabelVerdict.NEGATIVE,
    LabelRule.SHORT_ANSWER: LabelVerdict.NEUTRAL,
    LabelRule.ELSEWHERE: LabelVerdict.NEUTRAL,
    LabelRule.CANCELLED: LabelVerdict.NEUTRAL,
}


def verdict_of(rule: LabelRule) -> LabelVerdict:
    """Return the rule's judgement of the specialist."""
    return _VERDICTS[rule]


def rule_for(state: str, reason: Reason | None, answer_chars: int, *, followed: bool) -> LabelRule:
    """Return the rule for a task that has ended without anybody correcting its specialist.

    state: its name. reason: of a failure. answer_chars: length of the last answer, without surrounding space. followed:
    True if a later task continues it, which people do when a result is useful.
    """
    if state == "CANCELLED":
        return LabelRule.CANCELLED
    if state == "FAILED":
        return LabelRule.FAILED if reason in OF_THE_WORK else LabelRule.ELSEWHERE
    if answer_chars >= SUBSTANTIAL:
        return LabelRule.SUCCEEDED
    if followed:
        return LabelRule.FOLLOWED
    return LabelRule.SHORT_ANSWER if answer_chars else LabelRule.NO_ANSWER
