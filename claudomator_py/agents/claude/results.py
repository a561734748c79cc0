"""Read the last result of Claude Code: not every result that claims success is one."""

from claudomator_py.agents.claude.errors import ENDINGS
from claudomator_py.agents.ending import RunVerdict, failed
from claudomator_py.agents.jsonlines import Event, count_of, list_of, text_of
from claudomator_py.domain.outcome import Reason

_FINISHED = frozenset({"end_turn", "stop_sequence", "stop"})
"""Stop reasons of a model that finished its answer."""
_FIRST_ERROR = 400
_NO_ROOM = "model_context_window_exceeded"
_FINISHED_TURN = frozenset({"completed", "stop_hook_prevented"})
"""Terminal reasons of a finished turn."""


def succeeded(result: Event) -> bool:
    """Return whether the result claims success and nothing in it contradicts that.

    Old versions report ``is_error: false`` for a run out of turns, so no version's "success" is trusted alone.
    """
    subtype = text_of(result, "subtype") or ""
    stopped = subtype.startswith("error") or ending_of(result) is not None or result.get("stop_reason") == "refusal"
    refused = text_of(result, "api_error") is not None or (count_of(result, "api_error_status") or 0) >= _FIRST_ERROR
    return result.get("is_error") is False and not stopped and not refused


def cut_off(result: Event, last: str | None) -> RunVerdict | None:
    """Return the verdict of a model that was cut off although the result claims success; None: it was not.

    An unknown stop reason is a cut. A model that answers ``--json-schema`` ends its turn with a tool call. last: why
    the last message ended, for versions whose results do not say.
    """
    stop_reason, terminal_reason = text_of(result, "stop_reason") or last, text_of(result, "terminal_reason")
    if not succeeded(result) or stop_reason == "refusal":
        return None
    subtype = text_of(result, "subtype")
    if subtype not in (None, "success"):
        return failed(Reason.UNFINISHED, f"its turn ended with {subtype}, which is no success")
    answers = stop_reason in _FINISHED or (stop_reason == "tool_use" and "structured_output" in result)
    if stop_reason is not None and not answers:
        reason = Reason.CONTEXT_TOO_LONG if stop_reason == _NO_ROOM else Reason.UNFINISHED
        return failed(reason, f"its model was cut off: {stop_reason}")
    if terminal_reason is not None and terminal_reason not in _FINISHED_TURN:
        return failed(Reason.UNFINISHED, f"its turn was cut off: {terminal_reason}")
    return None


def ending_of(result: Event) -> str | None:
    """Return the terminal reason or subtype that says why the run did not finish; None: none does."""
    named = (text_of(result, "terminal_reason"), text_of(result, "subtype"))
    return next((name for name in named if name in ENDINGS), None)


def message_of(result: Event) -> str:
    """Return the result's text, or else its errors."""
    errors = [error for error in list_of(result, "errors") if isinstance(error, str)]
    return text_of(result, "result") or "\n".join(errors)


def lists_all_errors(result: Event) -> bool:
    """Return whether the message lists every error of the process, including those of tools."""
    return text_of(result, "result") is None and text_of(result, "subtype") == "error_during_execution"
