"""What a plain program means with what it writes and exits with, as the configuration says it."""

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt

from claudomator_py.domain.fields import Line, OneOrMore, Strict, refusal

TellableReason = Literal[
    "rate_limited",
    "overloaded",
    "network",
    "auth",
    "no_credit",
    "invalid_model",
    "context_too_long",
    "refused",
    "turn_limit",
    "bad_invocation",
    "no_answer",
]
"""Reason codes that a program can know. The others are seen from outside."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise refusal(f"is not a regular expression: {error}", "correct it, or put it in single quotes") from None
    return text


def _number(code: object) -> object:
    """Return the number of which a key of a document is the text."""
    return int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code


ExitCode = Annotated[StrictInt, BeforeValidator(_number), Field(ge=1, le=255)]
Pattern = Annotated[Line, AfterValidator(_pattern)]


class ResultFormat(StrEnum):
    """What a program prints."""

    JSON = "json"
    JSONL = "jsonl"


class ProgramResult(Strict):
    """Where in what a program prints its answer is, and what it has used. A path is keys and numbers with dots."""

    format: ResultFormat = Field(
        ResultFormat.JSONL, description="One JSON document, or one a line, of which the last with a value counts."
    )
    text: Line = Field(description="Path of the answer, such as `result` or `message.content.0.text`.")
    usage: Line | None = Field(
        None,
        description="Path of the object with what was used: `input_tokens` and `output_tokens` (or `inputTokens`, "
        "`prompt_tokens` and the like), and `cost_usd`.",
    )


class ProgramOutput(Strict):
    """All of that."""

    exit_codes: Annotated[dict[ExitCode, TellableReason], Field(max_length=50)] = Field(default_factory=dict)
    limit_text: Annotated[tuple[Pattern, ...], Field(max_length=50), OneOrMore] = ()
    result: ProgramResult | None = None
