"""Values in the words of the page: durations, amounts, reasons, remedies and long texts; and the fields of forms and
addresses as values, or a refusal that names the field."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Annotated, TypeVar
from urllib.parse import urlencode

from fastapi import Depends, Form, Path, Query
from pydantic import AfterValidator, BaseModel

from claudomator_py.api.request import DIGITS
from claudomator_py.domain.errors import Invalid, Problem, ServiceError, StaleVersion
from claudomator_py.domain.outcome import REASON_POLICIES, Reason, Tokens
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.domain.task import MAX_INSTRUCTIONS_LENGTH
from claudomator_py.domain.units import SECOND_MS, format_instant, parse_instant, past_instant
from claudomator_py.domain.wording import time_between
from claudomator_py.schema.validation import validate
from claudomator_py.texts import one_line

Ref = Annotated[str, Path(max_length=128)]
"""An id or a name in the path."""
Cursor = Annotated[str | None, Query(max_length=500)]
Text = Annotated[str, Query(max_length=200)]
"""A word or two in the address."""


def unix_lines(text: str) -> str:
    """Return the text of a form, in which browsers send CRLF, with the line ends of files."""
    return text.replace("\r\n", "\n")


LINES = AfterValidator(unix_lines)
"""Validates a field of several lines."""
Field = Annotated[str, Form(max_length=2_000), LINES]
"""A line or two of a form."""
LongText = Annotated[str, Form(max_length=20_000), LINES]
"""An answer, a reason or a list of rules."""
TaskText = Annotated[str, Form(max_length=MAX_INSTRUCTIONS_LENGTH), LINES]
Version = Annotated[int, Form(ge=0), DIGITS]
MAX_CHOSEN = 250
"""Tasks of one form."""
Chosen = Annotated[list[str], Form(default_factory=list, max_length=MAX_CHOSEN)]
"""The tasks chosen in a form, each with the version that was shown: ``ID:VERSION``; see ``chosen_tasks``."""
PART = 50
"""Number of items on one page of a list."""
Days = Annotated[int, Query(ge=1, le=365), DIGITS]
DAYS = (1, 7, 30, 90)
"""The numbers of days offered where figures of the last days are shown."""
_MAX_DIGITS = 16
V = TypeVar("V", bound=BaseModel)


def days_text(days: int) -> str:
    """Return a number of days: ``a day``, ``7 days``."""
    return "a day" if days == 1 else f"{days} days"


def day_spans(path: str, chosen: int, section: str = "") -> tuple[tuple[str, str, bool], ...]:
    """Return the numbers of days to choose from on that page: words, address, and whether it is the one shown.
    section: of the page, if it is not its beginning."""
    return tuple((days_text(days), f"{path}?days={days}{section and f'#{section}'}", days == chosen) for days in DAYS)


def read_fields(kind: type[V], given: Mapping[str, object]) -> V:
    """Return the filled-in fields as a model. Raises Invalid."""
    result = validate(kind, {key: value for key, value in given.items() if value}, {})
    if isinstance(result, list):
        raise Invalid.of(result)
    return result


def chosen_tasks(chosen: Sequence[str]) -> list[tuple[str, int]]:
    """Return the ids of the tasks, and the versions that were shown. Raises Invalid, also if there are none."""
    if not chosen:
        raise Invalid("No task was chosen.", remedy="Go back, and choose at least one.")
    parted = [reference.partition(":") for reference in chosen]
    if not all(version.isascii() and version.isdigit() and len(version) < _MAX_DIGITS for _, _, version in parted):
        raise Invalid("The form was not sent by this page.", remedy="Go back, and choose again.")
    return [(task_id, int(version)) for task_id, _, version in parted]


def read_times(given: Mapping[str, str], now_ms: int, zone: tzinfo) -> dict[str, int]:
    """Return the filled-in fields for times, in epoch milliseconds, see ``past_instant``. Raises Invalid."""
    ends: dict[str, int] = {}
    problems = []
    for name, text in given.items():
        try:
            ends |= {name: past_instant(text, now_ms, zone)} if text else {}
        except ValueError as error:
            message, _, remedy = str(error).partition("; ")
            problems.append(Problem(field=name, message=message, remedy=remedy))
    if problems:
        raise Invalid.of(problems)
    return ends


def time_field(at_ms: int | None, zone: tzinfo) -> tuple[str, str] | None:
    """Return what a field for a time is filled with, and the instant that it means; None: it stays empty."""
    if at_ms is None:
        return None
    return f"{datetime.fromtimestamp(at_ms / SECOND_MS, zone):%Y-%m-%dT%H:%M}", format_instant(at_ms)


def _filter(state: Text = "", q: Text = "", tag: Text = "", specialist: Text = "") -> TaskFilter:
    """Return the filters in the address. Raises Invalid."""
    given = {"state": state, "text": q.strip(), "tag": tag.strip(), "specialist": specialist.strip()}
    return read_fields(TaskFilter, given)


Filters = Annotated[TaskFilter, Depends(_filter)]
"""The filters in the address; see ``filter_url``."""


def filter_url(path: str, wanted: TaskFilter, **more: str | None) -> str:
    """Return the address of the filtered tasks at that path. more: further parameters."""
    return address(path, state=wanted.state, q=wanted.text, tag=wanted.tag, specialist=wanted.specialist, **more)


def address(path: str, **given: str | None) -> str:
    """Return the path with these parameters, leaving out empty ones."""
    query = urlencode({name: value for name, value in given.items() if value})
    return f"{path}?{query}" if query else path


_LINE = 240


def took(start: str, end: str | None) -> str | None:
    """Return the time between two instants, in whole seconds; None: it has not ended."""
    if end is None:
        return None
    return time_between(parse_instant(start), parse_instant(end))


def tokens_text(tokens: Tokens) -> str | None:
    """Return a run's tokens: ``1,200 in, 80 out``; None: unknown."""
    parts = [f"{count:,} {name}" for count, name in ((tokens.input, "in"), (tokens.output, "out")) if count is not None]
    return ", ".join(parts) or None


def meaning_of(reason: str | None) -> str | None:
    """Return the meaning of a reason code; None for an unknown one."""
    return REASON_POLICIES[Reason(reason)].meaning if reason in set(Reason) else None


def remedy_text(refusal: ServiceError) -> str:
    """Return what a person at the page can do; the refusal's own remedy is for clients of the API."""
    return "Check its current state, then try again." if isinstance(refusal, StaleVersion) else refusal.remedy


def short_line(text: str | None) -> str | None:
    """Return the text on one line, shortened; None for an empty text."""
    line = one_line(text) if text else ""
    return (line if len(line) <= _LINE else f"{line[: _LINE - 1]}…") or None


def model_text(tier: str | None, model: str | None) -> str | None:
    """Return tier and model, as far as known: ``powerful · opus``."""
    return " · ".join(part for part in (tier, model) if part) or None
