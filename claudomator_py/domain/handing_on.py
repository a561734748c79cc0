"""The last line by which a run hands its task on to another specialist: ``CLAUDOMATOR-HANDOFF:`` and a JSON object."""

import re
from typing import Final

from claudomator_py.domain.outcome import HandoffRequest

HANDOFF_MARKER: Final = "CLAUDOMATOR-HANDOFF:"
"""Begins the last line of an agent's last message; what follows on that line is a ``HandoffRequest``."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def handed_on_in(text: str) -> HandoffRequest | None:
    """The request with which the message ends; None: it makes none. Raises ValidationError for one that cannot be read.

    In a quotation, in a fenced block, and anywhere but at the very end the marker means nothing: there it is mostly
    text that the agent has read and tells of.
    """
    lines = text.rstrip().splitlines()
    if not lines or not lines[-1].startswith(HANDOFF_MARKER) or _fenced(lines[:-1]):
        return None
    return HandoffRequest.model_validate_json(lines[-1].removeprefix(HANDOFF_MARKER))


def without_request(text: str) -> str | None:
    """What a message says beside the request with which it ends; None: nothing. The request is data from here on, and
    whom it names is not for everybody who may read the rest."""
    said = text.rstrip()
    return said[: said.rindex(HANDOFF_MARKER)].rstrip() or None


def _fenced(lines: list[str]) -> bool:
    """Whether a fenced block is open at their end (CommonMark 0.31, 4.5)."""
    opened: str | None = None
    for line in lines:
        found = _FENCE.match(line)
        if found is None:
            continue
        if opened is None:
            opened = found[1]
        elif found[1].startswith(opened) and not line[found.end() :].strip():
            opened = None
    return opened is not None
