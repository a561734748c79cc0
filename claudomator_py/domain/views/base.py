"""What all JSON shapes of the API have in common."""

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
StateName = Literal["WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT", "COMPLETED", "FAILED", "CANCELLED"]


class View(BaseModel):
    """Base of all shapes. A client ignores fields that a newer daemon has added."""

    model_config = ConfigDict(frozen=True, extra="ignore", json_schema_serialization_defaults_required=True)


T = TypeVar("T")


class Page(View, Generic[T]):
    """A part of a list. next_cursor: pass it as ``cursor`` for the next part; None at the end."""

    items: tuple[T, ...]
    next_cursor: str | None = None


class EventView(View):
    """Something that happened; ids rise in the order of happening. by: whose request caused it, such as the name of a
    token; None: nobody's, but the daemon's own."""

    id: int
    at: Instant
    task_id: str | None = None
    run_id: str | None = None
    kind: str
    data: dict[str, object] = Field(default_factory=dict)
    by: str | None = None
