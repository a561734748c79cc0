"""Who answers a message in a channel: those addressed, otherwise the author it replies to, otherwise the channel's
primary."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from claudomator_py.domain.channel import (
    Incoming,
    Member,
    MemberRole,
    MentionRule,
    MessageRole,
    PrimaryRule,
    Switch,
    TriageDecision,
    TriageReason,
    TriageSettings,
)
from claudomator_py.routing.mentions import Names, Participant, Phrases

PRIMARY_CONFIDENCE: Final = 0.8
_KEPT: Final = 64
"""Number of channels whose compiled names and keywords are cached for the next message."""
_ANSWERABLE: Final = (MessageRole.ASSISTANT, MessageRole.SYSTEM)


def triage(
    message: Incoming,
    settings: TriageSettings,
    members: Sequence[Member],
    primary: str | None,
    *,
    is_yes: Callable[[], bool] | None = None,
    best: Callable[[Sequence[str]], str | None] | None = None,
) -> TriageDecision:
    """Return who answers the message. In an agent's own message only mentions count, so that agents do not keep talking
    among themselves.

    primary: id of the channel's primary; None if it has none. is_yes: asks the cheap model whether the primary should
    answer, at most once and only if nothing else decides; None if there is no model, which means no. best: returns
    which of several fits the message best; the first one is used if this is None or names none of them.
    """
    agents = {member.id for member in members if member.role is MemberRole.AGENT}
    addressed, ambiguous = dict[str, None](), dict[str, None]()
    for mention in _names(tuple(members)).mentions(message.content):
        if len(mention.ids) > 1:
            ambiguous[mention.text] = None
        elif mention.ids[0] in agents and mention.ids[0] != message.author:
            addressed[mention.ids[0]] = None
    if addressed:
        return _mentioned(tuple(addressed), tuple(ambiguous), settings.mentions, best)
    unclear = tuple(ambiguous)
    if message.author in agents or message.role is MessageRole.ASSISTANT:
        return TriageDecision(reason=TriageReason.NO_TRIGGER, ambiguous=unclear)
    answered = message.reply_to
    if (
        answered is not None
        and settings.reply_chains is Switch.ON
        and answered.role in _ANSWERABLE
        and answered.author in agents
    ):
        return TriageDecision(
            reason=TriageReason.REPLY_TO_AGENT,
            agents=(answered.author,),
            should_respond_immediately=True,
            ambiguous=unclear,
        )
    willing = primary in agents and message.author not in settings.opt_out
    if primary is not None and willing and _needs_primary(message.content, settings, is_yes):
        return TriageDecision(
            reason=TriageReason.PRIMARY_AGENT,
            agents=(primary,),
            should_respond_after_processing=True,
            confidence=PRIMARY_CONFIDENCE,
            ambiguous=unclear,
        )
    return TriageDecision(reason=TriageReason.NO_TRIGGER, ambiguous=unclear)


def without_mentions(content: str, members: Sequence[Member]) -> str:
    """Return the text without its mentions: what it is about."""
    parts, end = [], 0
    for mention in _names(tuple(members)).mentions(content):
        parts.append(content[end : mention.start])
        end = mention.end
    return "".join((*parts, content[end:]))


@lru_cache(maxsize=_KEPT)
def _names(members: tuple[Member, ...]) -> Names:
    return Names(Participant(member.id, member.display_name, member.username) for member in members)


@lru_cache(maxsize=_KEPT)
def _phrases(keywords: tuple[str, ...]) -> Phrases:
    return Phrases(keywords)


def _mentioned(
    mentioned: tuple[str, ...],
    ambiguous: tuple[str, ...],
    rule: MentionRule,
    best: Callable[[Sequence[str]], str | None] | None,
) -> TriageDecision:
    if len(mentioned) > 1:
        if rule is MentionRule.ASK:
            return TriageDecision(reason=TriageReason.DIRECT_MENTION, ambiguous=ambiguous, ask_among=mentioned)
        if rule is MentionRule.FIRST:
            mentioned = mentioned[:1]
        elif rule is MentionRule.BEST:
            chosen = None if best is None else best(mentioned)
            mentioned = (chosen,) if chosen in mentioned else mentioned[:1]
    return TriageDecision(
        reason=TriageReason.DIRECT_MENTION, agents=mentioned, should_respond_immediately=True, ambiguous=ambiguous
    )


def _needs_primary(content: str, settings: TriageSettings, is_yes: Callable[[], bool] | None) -> bool:
    rule = settings.primary
    if rule is PrimaryRule.ALWAYS:
        return True
    if rule in (PrimaryRule.KEYWORDS, PrimaryRule.CASCADE) and _phrases(settings.keywords).any_in(content):
        return True
    return rule in (PrimaryRule.MODEL, PrimaryRule.CASCADE) and is_yes is not None and is_yes()
