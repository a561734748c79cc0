"""What is given to a command and sent to the daemon: checked here first, by the same rules."""

from typing import TYPE_CHECKING, TypeVar

from claudomator_py.cli import exits
from claudomator_py.cli.output import fail, note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")


def checked(model: type[M], values: "Mapping[str, object]") -> M:
    """Return the value, with what is None left out; what is wrong with it ends the command."""
    from claudomator_py.schema.validation import validate

    found = validate(model, {name: value for name, value in values.items() if value is not None}, {})
    if isinstance(found, list):
        for problem in found:
            note(str(problem))
        fail("The request is not valid.", "Fix the listed problems and retry.", exits.USAGE)
    return found
