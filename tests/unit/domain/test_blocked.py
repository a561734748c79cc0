"""What stands in the way, as a value: JSON both ways, and words for every code with any parameters."""

import ast
import inspect
import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.blocked import (
    BlockCode,
    Blocked,
    BlockParams,
    Why,
    blocked,
    on_hold,
)
from claudomator_py.domain.blocked_words import (
    blocked_text,
    brief_of,
    hold_label,
    in_brief,
    predicate,
    sentence,
    wait_of,
)
from claudomator_py.domain.budget import Figures, Unit
from claudomator_py.domain.outcome import Provenance, Reason
from claudomator_py.domain.units import format_instant, parse_instant
from claudomator_py.domain.wording import ConversationRef, Piece, TaskRef, filled, placeholders, said, worded
from claudomator_py.scheduler.records import Candidate, OverriddenHint

NOW = 1_790_000_000_000
_NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,11}[A-Za-z0-9])?", fullmatch=True)
_COUNTS = st.integers(0, 1_000)
_INSTANTS = st.integers(0, 4_000_000_000_000)
_SHARES = st.floats(0, 1)
_TEXTS = st.text(max_size=300)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "agent": _NAMES,
    "agents": st.lists(
        st.builds(lambda agent: blocked(BlockCode.FULL, agent=agent, active=1, slots=1), _NAMES), min_size=1, max_size=3
    ).map(tuple),
    "chosen": _NAMES,
    "tasks": st.lists(st.builds(TaskRef, name=_NAMES, id=_NAMES, state=st.none() | _NAMES), min_size=1, max_size=3).map(
        tuple
    ),
    "task": _NAMES,
    "conversation": st.builds(ConversationRef, run=_NAMES, agent=_NAMES, task=st.none() | _NAMES),
    "directory": _NAMES,
    "file": _NAMES,
    "active": _COUNTS,
    "slots": _COUNTS,
    "rule": _NAMES,
    "organisation": _NAMES,
    "creator": _NAMES,
    "setting": _NAMES,
    "room": _COUNTS,
    "until": _INSTANTS,
    "bucket": _NAMES,
    "family": _NAMES,
    "window": st.sampled_from(["five_hour", "seven_day_opus", "weekly"]),
    "reason": st.sampled_from(Reason),
    "provenance": st.sampled_from(Provenance),
    "source": _TEXTS,
    "doubted": _INSTANTS,
    "figures": st.builds(
        Figures,
        unit=st.sampled_from(Unit),
        spent=st.just(3),
        limit=st.just(9),
        unpriced=st.integers(0, 2),
    ),
    "used": _SHARES,
    "share": _SHARES,
    "reserved": _NAMES,
    "doing": _NAMES,
    "times": _COUNTS,
    "text": _TEXTS,
    "remedy": _TEXTS,
}


@st.composite
def values(draw: st.DrawFn, *, whole: bool = False) -> Blocked:
    """Any code with any of its parameters. whole: with all of them."""
    code = draw(st.sampled_from(BlockCode))
    names = [name for name in code.parameters if whole or draw(st.booleans())]
    return blocked(code, **{name: draw(_VALUES[name]) for name in names})


def test_every_parameter_has_values_here() -> None:
    assert _VALUES.keys() == BlockParams.model_fields.keys()
    for code in BlockCode:
        assert {*code.parameters} <= BlockParams.model_fields.keys(), code


@given(values())
def test_json_gives_the_same_value_and_leaves_out_what_is_not_known(what: Blocked) -> None:
    text = what.model_dump_json()
    assert Blocked.model_validate_json(text) == what
    assert Blocked.model_validate(json.loads(text)) == what
    assert None not in json.loads(text)["params"].values()


@given(values(), st.booleans())
def test_every_code_has_words_with_any_parameters_that_end_well(what: Blocked, brief: bool) -> None:
    text = worded(sentence(what, brief=brief))
    assert text
    assert text == text.strip()
    assert not re.search(r"[\[\]{}|]|\n|  |\(\)| ,|: ?;", _without_free_text(what, text)), text
    assert _without_free_text(what, text)[-1] not in ".,;:- ", text


def _without_free_text(what: Blocked, text: str) -> str:
    """The words without what others said, which may be anything."""
    for free in ("text", "remedy", "source"):
        if getattr(what.params, free) is not None:
            cleared = what.having(**{free: "word"})
            text = blocked_text(cleared)
            what = cleared
    return text


@given(values(whole=True))
def test_the_words_name_every_parameter(what: Blocked) -> None:
    """Changing any one of them changes what is said."""
    for name in what.code.parameters:
        if name in ("text", "remedy", "source", "reason", "doubted"):
            continue
        other = what.having(**{name: _OTHERS[name]})
        if getattr(what.params, name) != getattr(other.params, name) and _is_told(what, name):
            assert sentence(what) != sentence(other), name


_OTHERS: dict[str, Any] = {
    "agent": "~other",
    "agents": (blocked(BlockCode.NO_CONVERSATION, agent="~other"),),
    "chosen": "~other",
    "tasks": (TaskRef(name="~other"),),
    "task": "~other",
    "conversation": ConversationRef(run="~other", agent="~other"),
    "directory": "~other",
    "file": "~other",
    "active": 1_001,
    "slots": 1_001,
    "rule": "nights",
    "organisation": "~other",
    "creator": "~other",
    "setting": "~other",
    "room": 1_001,
    "until": 1,
    "bucket": "~other",
    "family": "~other",
    "window": "~other",
    "provenance": None,
    "figures": Figures(unit=Unit.USD, spent=77, limit=99),
    "used": 7.77,
    "share": 7.77,
    "reserved": "~other",
    "doing": "~other",
    "times": 1_001,
}


def _is_told(what: Blocked, name: str) -> bool:
    """A hold of an operator has no window, and a task of an organisation is told by that."""
    if name == "creator" and what.params.organisation is not None:
        return False
    return not (name == "window" and "limit" in placeholders(what.code.words) and what.params.reason is None)


def test_every_kind_of_obstacle_has_a_code_and_codes_are_told_apart() -> None:
    # Nothing is in the way of one that is ready, and what a host's engine waits for is in its own words.
    assert {code.why for code in BlockCode} == {None, *Why} - {Why.READY, Why.HOST}
    assert len({code.words for code in BlockCode}) >= len(BlockCode) - 3, "agents_* have the same words"


def test_a_code_takes_no_parameter_that_it_does_not_name() -> None:
    with pytest.raises(TypeError, match="drained has no until"):
        blocked(BlockCode.DRAINED, until=NOW)


def limited(agent: str, **changes: Any) -> Blocked:
    usual: dict[str, Any] = {
        "bucket": "claude/default",
        "reason": Reason.RATE_LIMITED,
        "until": NOW,
        "provenance": Provenance.REPORTED,
        "source": "five_hour",
        "window": "five_hour",
    }
    return on_hold(agent, **(usual | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "limited (5h window, reported) until then"),
        ({"window": None, "source": "try later"}, "limited (try later, reported) until then"),
        ({"window": None, "source": ""}, "limited (reported) until then"),
        ({"family": "opus"}, "limited (opus models, 5h window, reported) until then"),
        ({"family": "opus", "window": "seven_day_opus"}, "limited (7d opus window, reported) until then"),
        (
            {"reason": Reason.OVERLOADED, "window": None, "source": "HTTP 529. Try later"},
            "limited (overloaded: HTTP 529, reported) until then",
        ),
        (
            {"doubted": NOW, "provenance": Provenance.ESTIMATED},
            "limited (5h window, estimated; the reset it named is more than 35 days away and is ignored) until then",
        ),
        (
            {"reason": Reason.AUTH, "until": None, "window": None, "source": "auth"},
            "held (auth, reported) until `claudomator release claude`",
        ),
        (
            {"reason": None, "until": None, "window": None, "source": "for the night"},
            "held (by the operator: for the night) until `claudomator release claude`",
        ),
        ({"reason": None, "window": None, "source": ""}, "held (by the operator) until then"),
        ({"room": 0}, "being tried after its limit (5h window, reported): more may start once it answers"),
        ({"room": 2}, "being tried after its limit (5h window, reported): 2 more may start now"),
    ],
)
def test_a_hold_says_why_and_until_when(changes: dict[str, Any], words: str) -> None:
    assert worded(predicate(limited("claude", **changes)), lambda _: "then") == words


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "rate_limited: 5h window"),
        ({"reason": None, "window": None, "source": "kept for the day"}, "by hand: kept for the day"),
        ({"reason": None, "window": None, "source": ""}, "by hand"),
    ],
)
def test_a_hold_has_a_short_label(changes: dict[str, Any], label: str) -> None:
    assert hold_label(limited("claude", **changes)) == label


def test_limited_agents_are_waited_for_until_the_first_resets() -> None:
    both = blocked(BlockCode.AGENTS_LIMITED, agents=(limited("a", until=NOW + 1), limited("b"), limited("c", room=0)))
    assert both.until == NOW
    assert in_brief(both) is None, "a list has a column for the time"
    released = blocked(BlockCode.AGENTS_LIMITED, agents=(limited("a", until=None), limited("b", room=0)))
    assert released.until is None
    first = "a is held (5h window, reported) until `claudomator release a`"
    assert in_brief(released) == said(first)
    full = blocked(BlockCode.FULL, agent="b", active=1, slots=1)
    assert blocked(BlockCode.AGENTS_FULL, agents=(full, limited("a"))).until is None


def test_a_list_tells_the_first_agent_only() -> None:
    full = tuple(blocked(BlockCode.FULL, agent=agent, active=1, slots=1) for agent in "ab")
    both = blocked(BlockCode.AGENTS_FULL, agents=full)
    assert blocked_text(both) == "a is full (1 of 1 slots); b is full (1 of 1 slots)"
    assert brief_of(both, None) == said("a is full (1 of 1 slots)")


def test_instants_are_worded_by_whoever_shows_them() -> None:
    waits = blocked(BlockCode.BACKOFF, until=NOW)
    assert sentence(waits) == (Piece("tries again at "), Piece(instant=format_instant(NOW)))
    assert blocked_text(waits) == "tries again at 2026-09-21 14:13 UTC"
    assert blocked_text(waits, lambda _: "noon") == "tries again at noon"


def test_without_a_code_the_text_beside_it_counts() -> None:
    assert wait_of(None, "waits") == brief_of(None, "waits") == said("waits")
    assert wait_of(None, None) is brief_of(None, None) is None


def test_a_template_takes_the_first_alternative_whose_values_are_known() -> None:
    template = "a[ of {one}| of {two}]: {three}[; {four}]"
    assert placeholders(template) == ("one", "two", "three", "four")
    assert filled(template, {"two": said("2"), "three": said("[3|{one}]")}) == said("a of 2: [3|{one}]")
    assert filled(template, {}) == said("a: ?")


def test_decisions_from_before_there_were_codes_say_what_they_said() -> None:
    stored: dict[str, Any] = {"agent": "codex", "active": 0, "max_concurrent": 2, "limited": True, "eligible": True}
    stored |= {"limited_until": NOW, "limit": "5h window, reported"}
    payload = {"rejected_code": "limited", "rejected_because": "limited (5h window, reported)"}
    candidate = Candidate.model_validate(stored | payload)
    assert candidate.rejected is not None
    assert blocked_text(candidate.rejected) == "codex is limited (5h window, reported) until 2026-09-21 14:13 UTC"
    assert Candidate.model_validate(candidate.model_dump(mode="json")) == candidate
    assert Candidate.model_validate(stored | {"rejected_because": None}).rejected is None
    hint = OverriddenHint.model_validate({"agent": "codex", "why": "codex was full (1 of 1 slots)"})
    assert [blocked_text(entry) for entry in hint.because] == ["codex was full (1 of 1 slots)"]
    assert OverriddenHint.model_validate(hint.model_dump(mode="json")) == hint


_THEN = parse_instant("2026-11-22T15:00:00Z")
_DOLLARS = Figures(unit=Unit.USD, spent=5.1, limit=5)
_FULL = blocked(BlockCode.FULL, agent="claude", active=2, slots=2)
_EXAMPLES: dict[BlockCode, dict[str, Any]] = {
    BlockCode.DAY_BUDGET: {"figures": Figures(unit=Unit.USD, spent=20.1, limit=20), "until": _THEN},
    BlockCode.SLOTS: {"active": 4, "slots": 4},
    BlockCode.RULE_FULL: {"rule": "nights", "active": 1, "slots": 1},
    BlockCode.WORKDIR: {"directory": "/srv/app", "tasks": (TaskRef(name="build", id="1"),)},
    BlockCode.KEPT: {"directory": "/srv/app", "tasks": (TaskRef(name="asks", id="1"),), "until": _THEN},
    BlockCode.CONVERSATION: {"tasks": (TaskRef(name="build", id="1"),)},
    BlockCode.CLASSIFYING: {"until": _THEN},
    BlockCode.REQUIRED_AGENT: {"agent": "cluade"},
    BlockCode.CONVERSATION_AGENT: {"conversation": ConversationRef(run="41c98f14aa", agent="claude")},
    BlockCode.AGENTS_UNABLE: {"agents": (blocked(BlockCode.PROBLEM, agent="gemini", text="gemini is not on PATH"),)},
    BlockCode.AGENTS_FULL: {"agents": (_FULL, blocked(BlockCode.FULL, agent="codex", active=1, slots=1))},
    BlockCode.PREFERRED_FULL: {"agents": (_FULL,), "until": _THEN},
    BlockCode.AGENTS_LIMITED: {"agents": (limited("claude", until=_THEN),)},
    BlockCode.AGENTS_SPENT: {
        "agents": (blocked(BlockCode.BUDGET, agent="claude", figures=_DOLLARS, until=_THEN),),
    },
    BlockCode.DEPENDENCY: {"tasks": (TaskRef(name="build", state="RUNNING"), TaskRef(name="test"))},
    BlockCode.TIME: {"until": _THEN},
    BlockCode.BACKOFF: {"until": _THEN},
    BlockCode.TASK_BUDGET: {
        "figures": Figures(unit=Unit.USD, spent=2.1, limit=2),
        "file": "/in/big.yaml",
        "task": "big",
    },
    BlockCode.FAULT: {
        "doing": "starting",
        "task": "build",
        "times": 3,
        "text": "/srv/app: Permission denied",
        "remedy": "give the daemon's user access to it",
        "until": _THEN,
    },
    BlockCode.PROBLEM: {"agent": "gemini", "text": "gemini is not on PATH"},
    BlockCode.UNFIT: {"agent": "codex", "text": "codex cannot keep to permissions.mode"},
    BlockCode.FULL: {"agent": "claude", "active": 2, "slots": 2},
    BlockCode.LIMITED: limited("claude", until=_THEN).params.model_dump(),
    BlockCode.HELD: {"agent": "claude", "provenance": Provenance.OPERATOR, "source": "kept for the day"},
    BlockCode.PROBED: limited("claude", until=None, room=2).params.model_dump(),
    BlockCode.BUDGET: {"agent": "claude", "figures": _DOLLARS, "until": _THEN},
    BlockCode.WINDOW_BUDGET: {"agent": "claude", "window": "five_hour", "used": 0.81, "share": 0.8, "until": _THEN},
    BlockCode.BUSIER: {"agent": "codex", "active": 2, "slots": 3},
    BlockCode.TIE_NEAR_LIMIT: {"agent": "codex", "chosen": "claude"},
    BlockCode.TIE: {"agent": "codex", "chosen": "claude"},
}


_LASTING = {
    BlockCode.DRAINED,
    BlockCode.DISK_LOW,
    BlockCode.REQUIRED_AGENT,
    BlockCode.CONVERSATION_AGENT,
    BlockCode.NO_AGENT,
    BlockCode.AGENTS_UNABLE,
    BlockCode.TASK_BUDGET,
    BlockCode.NOT_CONFIGURED,
    BlockCode.NOT_ALLOWED,
    BlockCode.PROBLEM,
    BlockCode.UNFIT,
    BlockCode.HELD,
}


def test_each_code_says_whether_a_person_has_to_act() -> None:
    assert {code for code in BlockCode if blocked(code, **_EXAMPLES.get(code, {})).needs_person} == _LASTING


def test_of_several_agents_one_that_comes_back_by_itself_is_enough() -> None:
    kept, resets = limited("claude", until=None), limited("codex", until=_THEN)
    assert blocked(BlockCode.AGENTS_LIMITED, agents=(kept,)).needs_person
    assert not blocked(BlockCode.AGENTS_LIMITED, agents=(kept, resets)).needs_person
    assert not blocked(
        BlockCode.AGENTS_UNABLE, agents=(blocked(BlockCode.PROBLEM, agent="a", text="x"), resets)
    ).needs_person
    assert not blocked(BlockCode.AGENTS_FULL, agents=(_FULL, kept)).needs_person


def _examples_in_the_source() -> dict[str, str]:
    """What stands below each code that has parameters, by its name."""
    (codes,) = (node for node in ast.parse(inspect.getsource(BlockCode)).body if isinstance(node, ast.ClassDef))
    results = {}
    for code, below in itertools.pairwise(codes.body):
        match code, below:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))) if "``" in text:
                results[name] = " ".join(text.removeprefix("``").removesuffix("``").split())
    return results


def test_each_code_with_parameters_has_an_example_beside_it_that_is_true() -> None:
    examples = _examples_in_the_source()
    assert examples.keys() == {code.name for code in BlockCode if code.parameters and code is not BlockCode.TEXT}
    for code, params in _EXAMPLES.items():
        text = blocked_text(blocked(code, **params))
        begins, more, _ = examples[code.name].partition("; ...")
        assert text.startswith(begins) if more else text == begins, code
