"""Finding the model's text in a server's answer."""

from typing import Any

from claudomator_py.scheduler.classification import Cause, ClassifierFault


def text_at(answer: Any, *path: str | int) -> str:
    """The text at that place. Raises ClassifierFault where the answer has another shape."""
    found = answer
    try:
        for part in path:
            found = found[part]
    except (KeyError, IndexError, TypeError):
        place = ".".join(str(part) for part in path)
        raise ClassifierFault(Cause.GARBAGE, f"its answer has no {place}") from None
    if not isinstance(found, str):
        raise ClassifierFault(Cause.GARBAGE, "its answer is not a text")
    return found
