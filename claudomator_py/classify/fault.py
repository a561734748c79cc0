"""Why asking failed: never more than a reason to use the default tier."""

from claudomator_py.routing.tier import Cause


class ClassifierFault(Exception):
    """The classifier gave no text. cause: its stable name, counted and shown. detail: what happened."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail
