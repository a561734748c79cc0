"""What a form or an address says, as a value; or the refusal that names the field."""

from collections.abc import Mapping
from typing import Annotated, TypeVar
from urllib.parse import urlencode

from fastapi import Query
from pydantic import BaseModel

from claudomator_py.api.request import DIGITS
from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.requests import TaskFilter
from claudomator_py.schema.validation import validate

Days = Annotated[int, Query(ge=1, le=365), DIGITS]
DAYS = (1, 7, 30, 90)
"""The spans that are offered where figures of the last days are shown."""
V = TypeVar("V", bound=BaseModel)


def read_fields(kind: type[V], given: Mapping[str, object]) -> V:
    """Return what the fields that are filled in say. Raises Invalid."""
    found = validate(kind, {key: value for key, value in given.items() if value}, {})
    if isinstance(found, list):
        raise Invalid.of(found)
    return found


def read_filter(state: str, text: str, tag: str, specialist: str) -> TaskFilter:
    """Return the tasks that the filters in an address mean. Raises Invalid."""
    given = {"state": state, "text": text.strip(), "tag": tag.strip(), "specialist": specialist.strip()}
    return read_fields(TaskFilter, given)


def filter_url(path: str, wanted: TaskFilter, **more: str | None) -> str:
    """Return the address that means these tasks at that path; ``read_filter`` reads it. more: what else it says."""
    given = {"state": wanted.state, "q": wanted.text, "tag": wanted.tag, "specialist": wanted.specialist, **more}
    query = urlencode({key: value for key, value in given.items() if value})
    return f"{path}?{query}" if query else path
