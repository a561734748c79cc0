"""Who answers a message: the rules in their order, each setting, and what an agent's own message may cause."""

import pytest

from claudomator_py.domain.channel import (
    AnsweredMessage,
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
from claudomator_py.routing.triage import triage, without_mentions

MEMBERS = (
    Member(id="a1", username="cook", display_name="Cook", role=MemberRole.AGENT),
    Member(id="a2", username="baker", display_name="Master Baker", role=MemberRole.AGENT),
    Member(id="a3", username="twin_1", display_name="Twin", role=MemberRole.AGENT),
    Member(id="a4", username="twin_2", display_name="Twin", role=MemberRole.AGENT),
    Member(id="u1", username="ann", display_name="Ann", role=MemberRole.USER),
    Member(id="u2", username="bob", display_name="Bob", role=MemberRole.USER),
)
OFF = TriageSettings(primary=PrimaryRule.OFF)
NOBODY = TriageDecision(reason=TriageReason.NO_TRIGGER)


def decided(content: str, settings: TriageSettings = OFF, **given: object) -> TriageDecision:
    message = Incoming.model_validate({"author": "u1", "content": content} | given)
    return triage(message, settings, MEMBERS, "a2")


def answers(author: str, role: MessageRole = MessageRole.ASSISTANT) -> AnsweredMessage:
    return AnsweredMessage(id="m1", author=author, role=role)


def primary(settings: TriageSettings, content: str, says: bool | None = None, author: str = "u1") -> bool:
    asked = []

    def yes() -> bool:
        asked.append(True)
        return bool(says)

    triage_decision = triage(
        Incoming(author=author, content=content),
        settings,
        MEMBERS,
        "a2",
        is_yes=None if says is None else yes,
    )
    assert len(asked) <= 1
    if triage_decision.reason is not TriageReason.PRIMARY_AGENT:
        assert triage_decision == NOBODY
        return False
    assert triage_decision == TriageDecision(
        reason=TriageReason.PRIMARY_AGENT, agents=("a2",), should_respond_after_processing=True, confidence=0.8
    )
    return True


def test_who_is_mentioned_answers_at_once_each_once_in_the_order_of_the_text() -> None:
    assert decided("@baker, @Cook: and @a2") == TriageDecision(
        reason=TriageReason.DIRECT_MENTION, agents=("a2", "a1"), should_respond_immediately=True
    )


def test_without_a_word_on_who_fits_best_the_first_who_is_mentioned_answers() -> None:
    assert decided("@baker and @cook", TriageSettings(mentions=MentionRule.BEST)).agents == ("a2",)


def test_a_mention_goes_before_what_it_answers_and_before_the_primary() -> None:
    always = TriageSettings(primary=PrimaryRule.ALWAYS)
    assert decided("@cook", always, reply_to=answers("a2")).agents == ("a1",)


@pytest.mark.parametrize(("author", "role"), [("a2", "user"), ("u1", "assistant"), ("a2", "assistant")])
def test_a_message_of_an_agent_or_in_its_part_is_answered_only_by_whom_it_mentions(author: str, role: str) -> None:
    always = TriageSettings(primary=PrimaryRule.ALWAYS)
    assert decided("and now?", always, author=author, role=role, reply_to=answers("a1")) == NOBODY
    assert decided("@cook and now?", always, author=author, role=role).agents == ("a1",)


@pytest.mark.parametrize("content", ["@nobody", "@bob", "@ann", "@twin", "mail ann@cook.example", "`@cook`"])
def test_without_an_agent_that_is_meant_the_next_rule_is_looked_at(content: str) -> None:
    triage_decision = decided(content, reply_to=answers("a1"))
    assert (triage_decision.reason, triage_decision.agents) == (TriageReason.REPLY_TO_AGENT, ("a1",))
    assert triage_decision.ambiguous == (("@twin",) if content == "@twin" else ())


def test_ambiguous_mentions_are_told_as_written_each_once() -> None:
    triage_decision = decided('@Twin @twin @Twin @"Twin" @cook')
    assert (triage_decision.agents, triage_decision.ambiguous) == (("a1",), ("@Twin", "@twin", '@"Twin"'))


@pytest.mark.parametrize(
    ("rule", "best", "agents", "ask"),
    [
        (MentionRule.ALL, None, ("a1", "a2"), ()),
        (MentionRule.FIRST, None, ("a1",), ()),
        (MentionRule.BEST, "a2", ("a2",), ()),
        (MentionRule.BEST, "a9", ("a1",), ()),
        (MentionRule.BEST, None, ("a1",), ()),
        (MentionRule.ASK, None, (), ("a1", "a2")),
    ],
)
def test_who_of_several_answers(
    rule: MentionRule, best: str | None, agents: tuple[str, ...], ask: tuple[str, ...]
) -> None:
    message = Incoming(author="u1", content="@cook or @baker?")
    triage_decision = triage(message, TriageSettings(mentions=rule), MEMBERS, None, best=lambda _: best)
    assert (triage_decision.agents, triage_decision.ask_among, triage_decision.should_respond_immediately) == (
        agents,
        ask,
        bool(agents),
    )


def test_of_one_alone_nobody_is_asked() -> None:
    triage_decision = triage(
        Incoming(author="u1", content="@cook"), TriageSettings(mentions=MentionRule.ASK), MEMBERS, None
    )
    assert (triage_decision.agents, triage_decision.ask_among) == (("a1",), ())


@pytest.mark.parametrize(
    ("answered", "agents"),
    [
        (answers("a1"), ("a1",)),
        (answers("a1", MessageRole.SYSTEM), ("a1",)),
        (answers("a1", MessageRole.USER), ()),
        (answers("u2"), ()),
        (answers("a9"), ()),
        (None, ()),
    ],
)
def test_an_answer_goes_to_the_agent_that_it_answers(answered: AnsweredMessage | None, agents: tuple[str, ...]) -> None:
    triage_decision = decided("and now?", reply_to=answered)
    assert (triage_decision.agents, triage_decision.should_respond_immediately) == (agents, bool(agents))
    assert decided("and now?", TriageSettings(primary=PrimaryRule.OFF, reply_chains=Switch.OFF)) == NOBODY


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        ("we need HELP now", True),
        ("please \uff48\uff45\uff4c\uff50", True),
        ("release \u00a0 notes!", True),
        ("release\nnotes", False),
        ("helpful, un-help, help_me, self-help", False),
        ("`help` ``no help``", False),
        ("`no`help", True),
        ("> help", False),
        ("```\nhelp\n```", False),
        ("https://x.example/help ask.help@x.example help@x.example", False),
        ("help@ and e@x.example", True),
        ("help, e@x.example", True),
        ("@ann help@x.example", False),
        ("e@x.example@help.example", False),
        ("(help)", True),
        ("help.", True),
        ("\u200bhelp\u200b", True),
        ("", False),
    ],
)
def test_a_keyword_is_a_whole_word_or_phrase(content: str, is_one: bool) -> None:
    keywords = TriageSettings(primary=PrimaryRule.KEYWORDS, keywords=("Help", "release notes"))
    assert primary(keywords, content) is is_one


@pytest.mark.parametrize(
    ("rule", "content", "says", "wanted"),
    [
        (PrimaryRule.OFF, "help", True, False),
        (PrimaryRule.ALWAYS, "x", None, True),
        (PrimaryRule.KEYWORDS, "x", True, False),
        (PrimaryRule.MODEL, "help", None, False),
        (PrimaryRule.MODEL, "help", False, False),
        (PrimaryRule.MODEL, "x", True, True),
        (PrimaryRule.CASCADE, "help", False, True),
        (PrimaryRule.CASCADE, "x", True, True),
        (PrimaryRule.CASCADE, "x", False, False),
        (PrimaryRule.CASCADE, "x", None, False),
    ],
)
def test_when_the_primary_answers(rule: PrimaryRule, content: str, says: bool | None, wanted: bool) -> None:
    assert primary(TriageSettings(primary=rule, keywords=("help",)), content, says) is wanted


def test_who_opted_out_is_left_alone_by_the_primary_only() -> None:
    settings = TriageSettings(primary=PrimaryRule.ALWAYS, opt_out=("u1",))
    assert not primary(settings, "hello", author="u1")
    assert primary(settings, "hello", author="u2")
    assert decided("@cook", settings).agents == ("a1",)
    assert decided("x", settings, reply_to=answers("a1")).agents == ("a1",)


def test_a_primary_that_does_not_take_part_does_not_answer() -> None:
    always = TriageSettings(primary=PrimaryRule.ALWAYS)
    for nobody in ("a9", "u2", None):
        assert triage(Incoming(author="u1", content="x"), always, MEMBERS, nobody) == NOBODY


def test_an_agents_message_triggers_by_mention_alone_and_never_itself() -> None:
    always = TriageSettings(primary=PrimaryRule.ALWAYS)
    fields = {"author": "a1", "role": MessageRole.ASSISTANT}
    assert decided("done", always, reply_to=answers("a2"), **fields) == NOBODY
    assert decided("@cook @baker", always, **fields).agents == ("a2",)
    assert decided("@cook", always, **fields) == NOBODY


@pytest.mark.parametrize(
    ("content", "about"),
    [
        ('Hello @cook and @"Master Baker", who turns the oven on?', "Hello  and , who turns the oven on?"),
        ("@bob says that @nobody does it.", " says that @nobody does it."),
        ("`@cook` is code", "`@cook` is code"),
    ],
)
def test_what_a_message_is_about_is_all_but_whom_it_addresses(content: str, about: str) -> None:
    assert without_mentions(content, MEMBERS) == about
