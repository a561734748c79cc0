"""Codes with parameters: what all of them have in common, and what several have as a parameter.

A code is stored, and shown to programs, with its parameters; its words are put together only at the edge.
"""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
)
from pydantic_core import CoreSchema

from claudomator_py.domain.units import format_instant, parse_instant, short_id


class WordedCode(StrEnum):
    """Codes with their words beside them: templates as ``wording.filled`` takes them."""

    words: str

    def __new__(cls, value: str, words: str) -> Self:
        """A member: its value, and its words."""
        code = str.__new__(cls, value)
        code._value_ = value
        code.words = words
        return code


class Coded(BaseModel):
    """A code with its parameters, or the parameters of one. JSON leaves out what is missing."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        # Its own fields, not the dictionary that its serializer makes of them.
        return handler({name: part for name, part in core_schema.items() if name != "serialization"})

    @model_serializer(mode="wrap")
    def _without_what_is_missing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = handler(self)
        return {name: value for name, value in values.items() if value is not None and value not in ((), [])}


def _epoch_ms(value: object) -> object:
    return parse_instant(value) if isinstance(value, str) else value


Instant = Annotated[
    int,
    BeforeValidator(_epoch_ms),
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""Epoch milliseconds; in JSON RFC 3339, UTC."""


class TaskRef(Coded):
    """A task that stands in the way."""

    name: str
    id: str | None = Field(None, description="Where it is known.")
    state: str | None = Field(
        None, description="Where it is known; of a dependency it is missing before there was a task of that name."
    )


class ConversationRef(Coded):
    """A conversation that only one agent can resume."""

    run: str = Field(description="The run that it was held in.")
    agent: str = Field(description="The agent that has it.")
    task: str | None = Field(None, description="The name of the task whose it is, if another's.")

    @property
    def text(self) -> str:
        """Such as ``run 41c98f14 of build on claude``."""
        whose = f" of {self.task}" if self.task is not None else ""
        return f"run {short_id(self.run)}{whose} on {self.agent}"


def known_or_none(value: object, handler: ValidatorFunctionWrapHandler) -> Any:
    """Return a client may be older than the daemon: a code that it does not know is none, and the text beside it
    counts."""
    try:
        return handler(value)
    except ValidationError:
        return None
