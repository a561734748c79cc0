"""What all JSON shapes of the API have in common."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
StateName = Literal["WAITING", "QUEUED", "RUNNING", "NEEDS_INPUT", "COMPLETED", "FAILED", "CANCELLED"]


class View(BaseModel):
    """Base of all shapes. A client ignores fields that a newer daemon has added."""

    model_config = ConfigDict(frozen=True, extra="ignore", json_schema_serialization_defaults_required=True)
