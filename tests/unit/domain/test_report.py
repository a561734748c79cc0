"""Reports: whatever a run has left behind, no more is said of it than a row can take."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from claudomator_py.domain.budget import WindowUse
from claudomator_py.domain.outcome import Denied, Outcome, OutcomeStatus, Tokens
from claudomator_py.domain.report import MAX_COUNT, MAX_NAME_LENGTH, MAX_PARTS, MAX_TEXT, RunReport
from claudomator_py.domain.run import ExitRecord

HUGE = st.integers(0, 3 * MAX_TEXT).map(lambda length: "ab" * (length // 2))
NUMBERS = st.integers(-(2**80), 2**80)
FLOATS = st.floats() | st.just(math.nan)
OUTCOMES = st.builds(
    Outcome,
    status=st.just(OutcomeStatus.SUCCEEDED),
    text=HUGE,
    detail=HUGE,
    question=HUGE,
    limit=HUGE,
    family=HUGE,
    near_limit=HUGE,
    conversation_id=HUGE,
    reset_at=NUMBERS,
    near_limit_until=NUMBERS,
    near_limit_used=FLOATS,
    cost_usd=FLOATS,
    tokens=st.builds(Tokens, input=NUMBERS, output=NUMBERS),
    windows=st.integers(0, 2 * MAX_PARTS).flatmap(
        lambda number: st.builds(
            lambda name, use: {f"{name}{n}": use for n in range(number)},
            HUGE,
            st.builds(WindowUse, used=FLOATS, resets_at=NUMBERS, family=HUGE),
        )
    ),
    denied=st.builds(
        lambda number, entry: (entry,) * number,
        st.integers(0, 2 * MAX_PARTS),
        st.builds(Denied, tool=HUGE, input=HUGE, rule=HUGE),
    ),
)
FULL = 8 * MAX_TEXT + 8 * MAX_NAME_LENGTH + 8 * MAX_PARTS * MAX_NAME_LENGTH


@given(OUTCOMES, HUGE, HUGE)
def test_a_report_is_bounded_and_can_be_sent_and_made_again(outcome: Outcome, error: str, wrote: str) -> None:
    record = ExitRecord(0, None, 1, 2, error)
    report = RunReport(run_id="r", exit=record, outcome=outcome, undisturbed=outcome, check_output=wrote)
    text = report.model_dump_json()
    assert len(text) <= FULL
    assert "NaN" not in text
    assert RunReport.model_validate_json(text) == report
    assert report.outcome == report.undisturbed
    assert report.outcome is not None
    tokens = report.outcome.tokens
    assert all(number is None or 0 <= number <= MAX_COUNT for number in (tokens.input, tokens.output))
    assert report.check_output is not None
    assert len(report.check_output) <= MAX_TEXT


def test_what_fits_is_left_as_it_is() -> None:
    outcome = Outcome(
        status=OutcomeStatus.SUCCEEDED,
        text="x" * MAX_TEXT,
        conversation_id="c" * MAX_NAME_LENGTH,
        reset_at=MAX_COUNT,
        near_limit_used=0.0,
        cost_usd=0.0,
        windows={"five_hour": WindowUse(used=0.5, resets_at=0)},
        denied=(Denied(tool="Bash", input="ls", rule="r" * MAX_NAME_LENGTH),) * MAX_PARTS,
    )
    assert RunReport(run_id="r", outcome=outcome).outcome == outcome


def test_a_text_keeps_both_ends_and_a_name_is_whole_or_not_there() -> None:
    outcome = Outcome(
        status=OutcomeStatus.SUCCEEDED,
        text="begin" + "x" * MAX_TEXT + "end",
        conversation_id="c" * (MAX_NAME_LENGTH + 1),
        denied=(Denied(tool="t", rule="r" * (MAX_NAME_LENGTH + 1)),),
    )
    shown = RunReport(run_id="r", outcome=outcome).outcome
    assert shown is not None
    assert shown.text is not None
    assert len(shown.text) == MAX_TEXT
    assert (shown.text[:5], shown.text[-3:]) == ("begin", "end")
    assert " [...] " in shown.text
    assert shown.conversation_id is None
    assert shown.denied == (Denied(tool="t"),)


@pytest.mark.parametrize(
    "record",
    [ExitRecord(2**63, None, 1, 2), ExitRecord(0, None, -(2**60), 2), ExitRecord(0, None, 1, 2, step=2**54)],
)
def test_a_record_that_no_supervisor_wrote_is_none(record: ExitRecord) -> None:
    with pytest.raises(ValidationError, match="no supervisor wrote"):
        RunReport(run_id="r", step=1, exit=record)
