"""Classify errors of Gemini CLI by type, exit code, or words."""

from dataclasses import replace

from claudomator_py.agents.api_errors import MAX_READ, SAYS_NO_LOGIN, classify, error_rules, error_table, words
from claudomator_py.agents.ending import RunVerdict, failed
from claudomator_py.domain.outcome import Reason

TOOL_FAILED = "Error executing tool "
"""Begins a passage of stderr that repeats a tool's output, over any number of lines and without an end mark."""
_CHATTER = ("Warning: ", "YOLO mode is", "Approval mode", "Ripgrep is not", "[STARTUP]", "Loaded cached credentials")
_FAILED_REQUEST = "Error when talking to"
COMPLAINT = 2_000
"""Characters of stderr that are searched."""
_BY_TYPE = error_table("gemini", "types")
_BY_EXIT_CODE = error_table("gemini", "exit_codes")
# An exit code has eight bits, so 429 becomes 173. Statuses below 400 would collide with signals.
_STATUS_BY_EXIT_CODE = {status % 256: status for status in range(400, 512)}
_LOGIN = words(rf"{SAYS_NO_LOGIN}|gemini_api_key")
_RULES = error_rules("gemini")


def judge(message: str, kind: str | None, exit_code: int | None, printed_ms: int) -> RunVerdict:
    """Return the verdict. kind: the error's type. printed_ms: epoch milliseconds."""
    its_own = not message.startswith(TOOL_FAILED)
    known = _BY_TYPE.get(kind or "") or _BY_EXIT_CODE.get(exit_code or 0)
    if known is Reason.BAD_INVOCATION and its_own and _LOGIN.search(message[:MAX_READ]):
        known = Reason.AUTH  # the CLI reports a missing login as an error of configuration
    if known is not None:
        return failed(known, message)
    if not its_own:
        return by_exit_code(message, exit_code, printed_ms)
    return classify(message, _RULES, printed_ms, status=_STATUS_BY_EXIT_CODE.get(exit_code or 0))


def by_exit_code(message: str, exit_code: int | None, printed_ms: int) -> RunVerdict:
    """Return the verdict of the exit code alone, when the message may be a tool's."""
    known = _BY_EXIT_CODE.get(exit_code or 0)
    if known is not None:
        return failed(known, message)
    verdict = classify("", (), printed_ms, status=_STATUS_BY_EXIT_CODE.get(exit_code or 0))
    return replace(verdict, detail=message)


def complaint_of(stderr: str) -> str:
    """Return the part of stderr that says what went wrong: its end, also for a usage error."""
    own = "\n".join(line for line in stderr.splitlines() if not line.startswith((TOOL_FAILED, *_CHATTER)))
    _, cause, after = own.rpartition(_FAILED_REQUEST)
    return cause + after if cause else own[-COMPLAINT:]
