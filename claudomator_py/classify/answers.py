"""Finding the model's text in a server's answer."""

from typing import Any

from claudomator_py.scheduler.classification import Cause, ModelFault


def text_at(answer: Any, *path: str | int) -> str:
    """The text at that place. Raises ModelFault where the answer has another shape."""
    found = answer
    try:
        for part in path:
            found = found[part]
    except (KeyError, IndexError, TypeError):
        place = ".".join(str(part) for part in path)
        raise ModelFault(Cause.GARBAGE, f"its answer has no {place}") from None
    if not isinstance(found, str):
        raise ModelFault(Cause.GARBAGE, "its answer is not a text")
    return found
