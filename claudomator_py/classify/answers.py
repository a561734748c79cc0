"""Finding the model's text in a server's answer."""

from claudomator_py.classify.fault import ClassifierFault
from claudomator_py.routing.tier import Cause


def text_at(answer: object, *path: str | int) -> str:
    """The text at that place. Raises ClassifierFault where the answer has another shape."""
    found = answer
    for part in path:
        if (isinstance(part, str) and isinstance(found, dict) and part in found) or (isinstance(part, int) and isinstance(found, list) and len(found) > part):
            found = found[part]
        else:
            raise ClassifierFault(Cause.GARBAGE, f"its answer has no {'.'.join(str(step) for step in path)}")
    if not isinstance(found, str):
        raise ClassifierFault(Cause.GARBAGE, "its answer is not a text")
    return found
