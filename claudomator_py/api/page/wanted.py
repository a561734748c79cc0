"""What a form or an address says, as a value; or the refusal that names the field."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

from claudomator_py.domain.errors import Invalid
from claudomator_py.domain.views import TaskFilter
from claudomator_py.schema.validation import validate

V = TypeVar("V", bound=BaseModel)


def read_fields(kind: type[V], given: Mapping[str, object]) -> V:
    """What the fields that are filled in say. Raises Invalid."""
    found = validate(kind, {key: value for key, value in given.items() if value}, {})
    if isinstance(found, list):
        raise Invalid.of(found, remedy="Go back, and choose something else.")
    return found


def read_filter(state: str, text: str, tag: str) -> TaskFilter:
    """The tasks that the filters in an address mean. Raises Invalid."""
    return read_fields(TaskFilter, {"state": state, "text": text.strip(), "tag": tag.strip()})
