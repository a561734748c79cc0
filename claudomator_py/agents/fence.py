"""What a run may not do, as kinds of agents see it: the fence, a hook that their CLI is given, and tool calls that were
denied, with what allows just that."""

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from claudomator_py.acts.reach import DIGEST, Reach
from claudomator_py.acts.tool_calls import digest_of, rule_for, subject_of
from claudomator_py.agents.plaintext import readable
from claudomator_py.agents.programs import own_program
from claudomator_py.domain.outcome import Denied
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.values import dataclass, regex

MAX_CALLS = 20
_MAX_INPUT = 300
_MAX_RULE = 4_000
# What such a call is about, by the names that its parameters have.
_TELLING = ("command", "cmd", "file_path", "filePath", "notebook_path", "path", "url", "query", "prompt")


def denied_call(tool: str, given: Mapping[str, Any], rule: str | None) -> Denied:
    """Return the call. given: its parameters. rule: what allows it; one that no command line takes as a word is left
    out."""
    words = next((given[name] for name in _TELLING if isinstance(given.get(name), str)), None)
    if words is None:
        words = json.dumps(given, ensure_ascii=False) if given else ""
    line = " ".join(readable(words[: 4 * _MAX_INPUT]).split())
    short = line if len(line) <= _MAX_INPUT and len(words) <= 4 * _MAX_INPUT else f"{line[: _MAX_INPUT - 3]}..."
    fits = rule is not None and len(rule) <= _MAX_RULE and rule.isprintable()
    return Denied(tool=tool, input=short, rule=rule if fits else None)


def distinct(calls: Iterable[Denied]) -> tuple[Denied, ...]:
    """Return each call once, and not too many of them."""
    return tuple(dict.fromkeys(calls))[:MAX_CALLS]


def questions(given: Mapping[str, Any]) -> str | None:
    """Return what a tool that asks the user was to ask, with the answers that it offers; None: nothing that can be
    read."""
    asked = given.get("questions")
    found = [_question(one) for one in asked if isinstance(one, Mapping)] if isinstance(asked, list) else []
    return "\n\n".join(one for one in found if one) or None


def _question(one: Mapping[str, Any]) -> str:
    text = one.get("question")
    options = one.get("options")
    labels = [
        option["label"]
        for option in (options if isinstance(options, list) else [])
        if isinstance(option, Mapping) and isinstance(option.get("label"), str)
    ]
    return "\n".join([text, *(f"- {label}" for label in labels)]) if isinstance(text, str) else ""


Dialect = Literal["claude", "plain"]
"""How a hook says its verdict: as Claude Code's hooks do, or as ``{"decision": "deny", "reason": ...}``."""
FENCE_NAME = "CLAUDOMATOR_FENCE"
"""The variable with the hook as shell text, for CLIs that find their hooks in files alone."""
HOOK_SECONDS = 600
"""How long a CLI is to wait for the hook: whoever waits no longer lets the call through."""
_MAX_SHOWN = 4_000
_MARK = regex(rf"this call needs `\w+`: (.*?)\. Nothing of the call was run\..*?\[beyond reach ({DIGEST})\]", re.DOTALL)
_BROKEN = "echo 'The fence of this run could not be started, so the call was denied.' >&2; exit 2"


def is_fenced(request: LaunchRequest) -> bool:
    """Return whether the run is to be kept within a reach."""
    return request.reach is not None and request.reach is not Reach.ANY


def fence_order(request: LaunchRequest) -> dict[str, Any]:
    """Return what ``fence_hook.main.judge`` judges calls of the run by."""
    return {
        "reach": request.reach,
        "folders": [str(Path(folder).expanduser()) for folder in request.task.add_dirs],
        "granted": list(request.granted_acts),
        "commands": list(request.granted_commands),
    }


def hook_argv(request: LaunchRequest, *, dialect: Dialect = "claude", allows: bool = False) -> tuple[str, ...]:
    """Return the hook's command. dialect: how it says its verdict. allows: whether the CLI takes its word that a call
    is allowed which a person has allowed.
    """
    order = {**fence_order(request), "dialect": dialect, "allows": allows}
    # Some CLIs put variables into the text of a hook before a shell sees it: no quotes may be in this word.
    word = base64.urlsafe_b64encode(json.dumps(order).encode()).decode()
    return (*own_program("claudomator_py.agents.fence_hook.main"), word)


def hook_line(request: LaunchRequest, *, dialect: Dialect = "claude", allows: bool = False) -> str:
    """Return the same as shell text. CLIs go on where a hook fails with any status but 2, so every failure is one."""
    return f"{shlex.join(hook_argv(request, dialect=dialect, allows=allows))} || {{ {_BROKEN}; }}"


@dataclass(frozen=True, slots=True)
class FenceVerdict:
    """What the fence said of a call that it denied."""

    digest: str
    """See ``BeyondReach``."""
    does: str
    """What of it goes too far, in words."""


def beyond_reach(text: str) -> FenceVerdict | None:
    """Return what the text says of a call that was beyond the run's reach; None: it says no such thing."""
    found = _MARK.search(text)
    return None if found is None else FenceVerdict(found[2], " ".join(found[1].split()))


def fenced_call(tool: str, given: Mapping[str, Any], verdict: FenceVerdict | None) -> Denied | None:
    """Return the call that the fence denied, with what allows exactly it. verdict: what the fence said; None, or that
    of another call, which a tool may have printed: it was not the fence.
    """
    subject = subject_of(given)
    if verdict is None or not verdict.digest.startswith(f"{digest_of(tool, subject)}."):
        return None
    shown = readable(subject)
    shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[: _MAX_SHOWN - 3]}..."
    beyond = verdict.does if len(verdict.does) <= _MAX_SHOWN else f"{verdict.does[: _MAX_SHOWN - 3]}..."
    return Denied(tool=tool, input=shown, rule=rule_for(tool, given, verdict.digest), beyond=beyond)
