"""Limits, logins and models in words that no version has used yet, by all kinds of agents."""

import pytest

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.claude.errors import Failure
from claudomator_py.agents.claude.errors import classify as classify_claude
from claudomator_py.agents.claude.use import family_of
from claudomator_py.agents.ending import classify
from claudomator_py.agents.limit_text import find_model
from claudomator_py.domain.outcome import OutcomeStatus, Reason
from claudomator_py.domain.run import ExitRecord

NOW_MS = 1_795_293_400_000


@pytest.mark.parametrize(
    "words",
    [
        "You've reached your weekly limit for GPT-6-Astra. Try again at 10:40 AM.",
        "You've used all your messages for GPT-6-Luna today.",
        "You have exceeded your daily quota for claude-opus-5.",
        "Your free tier daily limit of 1000 requests is used up.",
        "Sorry, you have exceeded your Copilot token usage.",
        "Your plan's per-day request allowance has been used up.",
        "You've reached the daily limit for gemini-3.1-pro.",
        "Tokens per day limit exceeded for model `kimi-k3`.",
        "You ran out of requests for your plan: the monthly allowance is used up.",
        "Throttling.AllocationQuota",
        "TooManyRequests",
        "Request rate increased too quickly",
    ],
)
def test_a_quota_that_is_used_up_is_a_limit_however_it_is_called(words: str) -> None:
    assert classify(words, (), NOW_MS).reason is Reason.RATE_LIMITED
    assert classify(words, (), NOW_MS, status=400).reason is Reason.RATE_LIMITED


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Your input exceeded the context limit of this model", Reason.CONTEXT_TOO_LONG),
        ("You have hit your monthly spend limit", Reason.NO_CREDIT),
        ("insufficient_quota: add funds", Reason.NO_CREDIT),
        ("Maximum recursion limit exceeded", Reason.AGENT_ERROR),
        ("the limit of open files was reached", Reason.AGENT_ERROR),
        ("your configuration has no limits", Reason.AGENT_ERROR),
        ("No such model: x/y", Reason.INVALID_MODEL),
        ("the requested model a/b could not be found", Reason.INVALID_MODEL),
        ("Please sign in first", Reason.AUTH),
        ("You are logged out", Reason.AUTH),
        ("invalid_grant", Reason.AUTH),
    ],
)
def test_what_is_no_quota_is_no_limit(words: str, reason: Reason) -> None:
    assert classify(words, (), NOW_MS).reason is reason


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ("You've hit your usage limit for GPT-6 Sol. Switch to another model.", "gpt-6-sol"),
        ("usage limit for GPT-7-Codex-Flare, try again at 5 PM", "gpt-7-codex-flare"),
        ("Quota for Gemini 4 Ultra used up", "gemini-4-ultra"),
        ("You have reached your daily gemini-4-pro quota limit.", "gemini-4-pro"),
        ("GPT-6-Luna usage limit reached. Try again at 5:00 PM.", "gpt-6-luna"),
        ("no more messages for gpt-6-luna today", "gpt-6-luna"),
        ("the daily quota for claude-opus-5 is used up", "claude-opus-5"),
        ("5-hour limit reached", None),
        ("usage limit for today", None),
        ("usage limit for Codex. Try again at 10:40 AM.", None),
        ("your 5-hour limit", None),
    ],
)
def test_the_model_that_is_limited(words: str, model: str | None) -> None:
    assert find_model(words) == model


@pytest.mark.parametrize(
    ("words", "family"),
    [
        ("You've reached your Haiku limit. Resets tomorrow at 9am (UTC)", "haiku"),
        ("You've used up your weekly Opus limit", "opus"),
        ("You've hit your Sonnet only limit", "sonnet"),
        ("You've hit your Sonnet-only limit", "sonnet"),
        ("Weekly limit reached for Opus 5. Try again later.", "opus"),
        ("You've hit your Claude Saga usage limit", "saga"),
        ("You've reached your weekly limit", None),
        ("You've reached your Max limit", None),
    ],
)
def test_the_family_whose_limit_claude_tells_of(words: str, family: str | None) -> None:
    verdict = classify_claude(Failure(words), None, NOW_MS, "UTC")
    assert (verdict.status, verdict.family) == (OutcomeStatus.LIMITED, family)


@pytest.mark.parametrize(
    ("window", "family"),
    [
        ("seven_day_mythos", "mythos"),
        ("seven_day_Fable", "fable"),
        ("seven_day_claude_opus", "opus"),
        ("weekly_opus", "opus"),
        ("monthly-haiku", "haiku"),
        ("seven_day_opus_4_8", "opus-4-8"),
        ("seven_day_oauth_apps", None),
        ("weekly", None),
        ("monthly_team_seats", None),
    ],
)
def test_the_family_that_a_window_is_of(window: str, family: str | None) -> None:
    assert family_of(window) == family


@pytest.mark.parametrize("kind", ["gemini", "qwen"])
@pytest.mark.parametrize("words", ["Login required: expired", "Failed to login: invalid_grant", "please authenticate"])
def test_a_missing_login_is_told_from_other_faults_of_the_configuration(kind: str, words: str) -> None:
    for text, reason in ((words, Reason.AUTH), ("Unexpected token } in settings.json", Reason.BAD_INVOCATION)):
        reader = AGENT_KINDS[kind].reader()
        reader.feed("stderr", f"{text}\n".encode())
        assert reader.outcome(ExitRecord(52, None, NOW_MS, NOW_MS), NOW_MS).reason is reason


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(
    "words",
    ["No such model 'x/y'", "Unknown model: x/y", "model x/y is not available", "Model x/y could not be found"],
)
def test_a_model_that_opencode_does_not_know(words: str, stream: str) -> None:
    for code in (0, 1) if stream == "stderr" else (0,):
        reader = AGENT_KINDS["opencode"].reader()
        reader.feed("stdout" if stream == "stdout" else "stderr", f"Error: {words}\n".encode())
        assert reader.outcome(ExitRecord(code, None, NOW_MS, NOW_MS), NOW_MS).reason is Reason.INVALID_MODEL
