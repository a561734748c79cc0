"""The fence of a run from the agents' side: the hook that a CLI gets, and denied tool calls with the rules that would
allow them."""

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from claudomator_py.acts import DIGEST, Reach
from claudomator_py.acts.tool_calls import digest_of, rule_for, subject_of
from claudomator_py.agents.plaintext import readable
from claudomator_py.agents.programs import own_program
from claudomator_py.domain.outcome import Denied
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.texts import cut
from claudomator_py.values import dataclass, regex

MAX_CALLS = 20
_MAX_INPUT = 300
_MAX_RULE = 4_000
# The parameter that says what a call is about.
_TELLING = ("command", "cmd", "file_path", "filePath", "notebook_path", "path", "url", "query", "prompt")


def denied_call(tool: str, given: Mapping[str, Any], rule: str | None) -> Denied:
    """Return a denied call. given: its parameters. rule: what would allow it; dropped if it does not fit on a command
    line."""
    words = next((given[name] for name in _TELLING if isinstance(given.get(name), str)), None)
    if words is None:
        words = json.dumps(given, ensure_ascii=False) if given else ""
    line = " ".join(readable(words[: 4 * _MAX_INPUT]).split())
    short = line if len(line) <= _MAX_INPUT and len(words) <= 4 * _MAX_INPUT else f"{line[: _MAX_INPUT - 3]}..."
    fits = rule is not None and len(rule) <= _MAX_RULE and rule.isprintable()
    return Denied(tool=tool, input=short, rule=rule if fits else None)


def distinct(calls: Iterable[Denied]) -> tuple[Denied, ...]:
    """Return each call once, at most ``MAX_CALLS`` of them."""
    return tuple(dict.fromkeys(calls))[:MAX_CALLS]


def questions(given: Mapping[str, Any]) -> str | None:
    """Return the questions of a tool that asks the user, with the answers that it offers; None: none that can be
    read."""
    asked = given.get("questions")
    questions = [_question(call) for call in asked if isinstance(call, Mapping)] if isinstance(asked, list) else []
    return "\n\n".join(question for question in questions if question) or None


def _question(call: Mapping[str, Any]) -> str:
    text = call.get("question")
    options = call.get("options")
    labels = [
        option["label"]
        for option in (options if isinstance(options, list) else [])
        if isinstance(option, Mapping) and isinstance(option.get("label"), str)
    ]
    return "\n".join([text, *(f"- {label}" for label in labels)]) if isinstance(text, str) else ""


Dialect = Literal["claude", "plain"]
"""The form of a hook's verdict: that of Claude Code's hooks, or ``{"decision": "deny", "reason": ...}``."""
FENCE_NAME = "CLAUDOMATOR_FENCE"
"""The variable with the hook as shell text, for CLIs that take hooks from files alone."""
HOOK_SECONDS = 600
"""Timeout for the hook. A CLI that stops waiting lets the call through."""
_MAX_SHOWN = 4_000
_MARK = regex(rf"this call needs `\w+`: (.*?)\. Nothing of the call was run\..*?\[beyond reach ({DIGEST})\]", re.DOTALL)
_BROKEN = "echo 'The fence of this run could not be started, so the call was denied.' >&2; exit 2"


def is_fenced(request: LaunchRequest) -> bool:
    """Return whether the run is kept within a reach."""
    return request.reach is not None and request.reach is not Reach.ANY


def fence_order(request: LaunchRequest) -> dict[str, Any]:
    """Return the order by which ``fence_hook.judge`` judges the run's calls."""
    return {
        "reach": request.reach,
        "folders": [str(Path(folder).expanduser()) for folder in request.task.add_dirs],
        "granted": list(request.granted_acts),
        "commands": list(request.granted_commands),
    }


def hook_argv(request: LaunchRequest, *, dialect: Dialect = "claude", allows: bool = False) -> tuple[str, ...]:
    """Return the hook's command. dialect: the form of its verdict. allows: whether it also allows the calls that a
    person has granted, if the CLI accepts that."""
    order = {**fence_order(request), "dialect": dialect, "allows": allows}
    # Some CLIs expand variables in the hook's text before a shell sees it: this word must need no quotes.
    word = base64.urlsafe_b64encode(json.dumps(order).encode()).decode()
    return (*own_program("fence"), word)


def hook_line(request: LaunchRequest, *, dialect: Dialect = "claude", allows: bool = False) -> str:
    """Return the hook's command as shell text. CLIs ignore a hook that fails with any status but 2, so every failure
    becomes 2."""
    return f"{shlex.join(hook_argv(request, dialect=dialect, allows=allows))} || {{ {_BROKEN}; }}"


@dataclass(frozen=True, slots=True)
class FenceVerdict:
    """What the fence said about a call that it denied."""

    digest: str
    """The digest that identifies the call."""
    does: str
    """How the call goes too far, in words."""


def beyond_reach(text: str) -> FenceVerdict | None:
    """Return the fence's verdict in the text; None: it has none."""
    match = _MARK.search(text)
    return None if match is None else FenceVerdict(match[2], " ".join(match[1].split()))


def fenced_call(tool: str, given: Mapping[str, Any], verdict: FenceVerdict | None) -> Denied | None:
    """Return the call that the fence denied, with the rule for exactly this call. verdict: the one that was printed;
    None, or one with another call's digest, which a tool may have printed: the fence did not deny this call."""
    subject = subject_of(given)
    if verdict is None or not verdict.digest.startswith(f"{digest_of(tool, subject)}."):
        return None
    return Denied(
        tool=tool,
        input=cut(readable(subject), _MAX_SHOWN),
        rule=rule_for(tool, given, verdict.digest),
        beyond=cut(verdict.does, _MAX_SHOWN),
    )
