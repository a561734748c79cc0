"""What the output and exit codes of a plain program mean, as configured."""

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
"""Reason codes that a program can know. The others are detected from outside."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise refusal(f"is not a regular expression: {error}", "correct it, or put it in single quotes") from None
    return text


def _number(code: object) -> object:
    """Return the number that a document's key spells out."""
    return int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code


ExitCode = Annotated[StrictInt, BeforeValidator(_number), Field(ge=1, le=255)]
Pattern = Annotated[Line, AfterValidator(_pattern)]


class ResultFormat(StrEnum):
    """What a program prints."""

    JSON = "json"
    JSONL = "jsonl"


class ProgramResult(Strict):
    """Where a program's output contains its answer and its usage. A path consists of keys and indexes separated by
    dots."""

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
    """Meaning of exit codes and output."""

    exit_codes: Annotated[dict[ExitCode, TellableReason], Field(max_length=50)] = Field(default_factory=dict)
    limit_text: Annotated[tuple[Pattern, ...], Field(max_length=50), OneOrMore] = ()
    result: ProgramResult | None = None
