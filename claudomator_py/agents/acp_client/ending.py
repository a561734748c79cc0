"""How a run of the client ends: one word that ``agents/acp/verdict.py`` knows, and what there is to say."""

from collections.abc import Mapping
from typing import Any


class End(Exception):
    """The run ends here. outcome: a word of ``agents/acp/verdict.py``. fields: of the last event."""

    def __init__(self, outcome: str, error: str | None = None, **fields: Any) -> None:
        super().__init__(error or outcome)
        self.outcome = outcome
        self.error = error
        self.fields = fields


class Terminated(BaseException):
    """The supervisor wants an end. No handler of errors is to take it for one."""


class Refused(Exception):
    """An error that the agent answers a request with."""

    def __init__(self, error: object) -> None:
        found = error if isinstance(error, Mapping) else {}
        self.code = found.get("code")
        self.message = str(found.get("message", error))
        self.data = found.get("data")
        super().__init__(self.message)
