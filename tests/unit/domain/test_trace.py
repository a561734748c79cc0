"""Ids of traces and spans: those of tasks, runs and decisions, so that whoever has one finds the other."""

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.trace import check_span, own_span, part_span, task_span

TASK = "0432407f-5bd1-4f0e-9a3c-1c1f6d0e7a11"
RUN = "51c5b45a-9f0d-5e3b-8a53-6a8e3b7f9c20"


def test_the_trace_is_the_task_and_the_span_the_beginning_of_the_run() -> None:
    assert own_span(TASK, RUN).traceparent == "00-0432407f5bd14f0e9a3c1c1f6d0e7a11-51c5b45a9f0d5e3b-01"
    assert task_span(TASK, 1).traceparent == "00-0432407f5bd14f0e9a3c1c1f6d0e7a11-0432407f5bd14f0e-01"


@given(st.uuids(version=4), st.uuids(version=5), st.integers(1, 1_000))
def test_names_are_valid_distinct_and_always_the_same(task: uuid.UUID, run: uuid.UUID, generation: int) -> None:
    def names() -> list[str]:
        spans = [
            task_span(str(task), 1),
            task_span(str(task), generation + 1),
            own_span(str(task), str(run)),
            check_span(str(task), str(run)),
            part_span(str(task), str(task), f"wait/{generation}"),
        ]
        return [span.traceparent for span in spans]

    assert names() == names()
    assert len(set(names())) == len(names())
    for name in names():
        assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-01", name)
        assert set(name.split("-")[2]) != {"0"}, "W3C: all zeroes are invalid"


def test_what_is_no_id_has_no_trace() -> None:
    with pytest.raises(ValueError, match="badly formed"):
        task_span("it", 1)
