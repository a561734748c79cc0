"""Records of tasks that were handed on."""

from typing import Any

from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.scheduler.records import HandoffRecord, Route


def handed(to: str | None, by: str = "ann", **fields: Any) -> HandoffRecord:
    """The task was handed on to that specialist; None: by default."""
    return HandoffRecord(
        route=Route.DEFAULT if to is None else Route.SPECIALIST,
        specialist=to,
        by=by,
        run_id="run",
        asked=HandoffRequest(to=to or "default"),
        hop=1,
        max_handoffs=2,
        reason=rationale(RationaleCode.HANDED_ON, by=by, specialist=to),
        **fields,
    )
