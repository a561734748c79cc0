"""Classify errors of Gemini CLI by type, exit code, or words."""

from dataclasses import replace

from claudomator_py.agents.api_errors import MAX_READ, SAYS_NO_LOGIN, Rules, classify, words
from claudomator_py.agents.ending import RunVerdict, failed
from claudomator_py.domain.outcome import Reason

TOOL_FAILED = "Error executing tool "
"""Begins a passage of stderr that repeats a tool's output, over any number of lines and without an end mark."""
_CHATTER = ("Warning: ", "YOLO mode is", "Approval mode", "Ripgrep is not", "[STARTUP]", "Loaded cached credentials")
_FAILED_REQUEST = "Error when talking to"
COMPLAINT = 2_000
"""Characters of stderr that are searched."""
_BY_TYPE = {
    "FatalAuthenticationError": Reason.AUTH,
    "FatalInputError": Reason.BAD_INVOCATION,
    "FatalSandboxError": Reason.SETUP_FAILED,
    "FatalConfigError": Reason.BAD_INVOCATION,
    "FatalTurnLimitedError": Reason.TURN_LIMIT,
    "FatalUntrustedWorkspaceError": Reason.BAD_INVOCATION,
    "FatalCancellationError": Reason.INTERRUPTED,
    "no_space_left": Reason.DISK_FULL,
}
_BY_EXIT_CODE = {
    41: Reason.AUTH,
    42: Reason.BAD_INVOCATION,
    44: Reason.SETUP_FAILED,
    52: Reason.BAD_INVOCATION,
    53: Reason.TURN_LIMIT,
    55: Reason.BAD_INVOCATION,
}
# An exit code has eight bits, so 429 becomes 173. Statuses below 400 would collide with signals.
_STATUS_BY_EXIT_CODE = {status % 256: status for status in range(400, 512)}
_LOGIN = words(rf"{SAYS_NO_LOGIN}|gemini_api_key")
_RULES: Rules = (
    (
        words(
            r"unknown arguments?|invalid values|cannot use both|not running in a trusted|invalid session identifier"
            r"|session id \S+ already exists|no input provided|not enough arguments"
        ),
        Reason.BAD_INVOCATION,
    ),
    (words(r"max(?:imum)? session turns|turn limit"), Reason.TURN_LIMIT),
    (words(r"returned (?:an empty (?:text )?response\b(?! or malformed)|reasoning thoughts but)"), Reason.NO_ANSWER),
    (words(r"response was truncated|malformed tool call"), Reason.UNFINISHED),
    (
        words(r"insufficient_g1_credits|credits? (?:balance )?(?:is |are )?(?:depleted|exhausted|too low)"),
        Reason.NO_CREDIT,
    ),
    (words(r"model_capacity|no capacity available|capacity exceeded|model is overloaded"), Reason.OVERLOADED),
    (
        words(
            r"exhausted your (?:daily quota|capacity)|resource(?: has been |_)exhausted|exceeded your current quota"
            r"|quota exceeded for (?:quota )?metric|quota (?:limit )?(?:exceeded|reached|exhausted)"
            r"|(?:reached|exceeded|hit) your [^\n]{0,60}(?:quota|limit)|requests per (?:day|minute)"
        ),
        Reason.RATE_LIMITED,
    ),
    (_LOGIN, Reason.AUTH),
    (words(r"models?/\S+ is not found|model not found|modelnotfound"), Reason.INVALID_MODEL),
    (words(r"blocked (?:due to|by|because)|safety|recitation|prohibited content"), Reason.REFUSED),
    (words(r"exceeds the maximum number of tokens|token limit|context window"), Reason.CONTEXT_TOO_LONG),
)


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
    _, found, after = own.rpartition(_FAILED_REQUEST)
    return found + after if found else own[-COMPLAINT:]
