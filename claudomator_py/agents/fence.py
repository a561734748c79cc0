"""The fence around a run as kinds of agents see it: the hook that their CLI is given, and what it denied."""

import base64
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from claudomator_py.acts.reach import Reach
from claudomator_py.acts.tool_calls import digest_of, rule_for, subject_of
from claudomator_py.agents.own_programs import own_program
from claudomator_py.domain.outcome import Denied
from claudomator_py.domain.run import LaunchRequest

Dialect = Literal["claude", "plain"]
"""How a hook says its verdict: as Claude Code's hooks do, or as ``{"decision": "deny", "reason": ...}``."""
FENCE_NAME = "CLAUDOMATOR_FENCE"
"""The variable with the hook as shell text, for CLIs that find their hooks in files alone."""
HOOK_SECONDS = 600
"""How long a CLI is to wait for the hook: whoever waits no longer lets the call through."""
_MAX_SHOWN = 4_000
_MARK = re.compile(r"\[beyond reach ([0-9a-f]{16})\]")
_BROKEN = "echo 'The fence of this run could not be started, so the call was denied.' >&2; exit 2"


def is_fenced(request: LaunchRequest) -> bool:
    """Return whether the run is to be kept within a reach."""
    return request.reach is not None and request.reach is not Reach.ANY


def hook_argv(request: LaunchRequest, *, dialect: Dialect = "claude", allows: bool = False) -> tuple[str, ...]:
    """Return the hook's command. dialect: how it says its verdict. allows: whether the CLI takes its word that a call
    is allowed which a person has allowed.
    """
    order = {
        "reach": request.reach,
        "folders": [str(Path(folder).expanduser()) for folder in request.task.add_dirs],
        "granted": list(request.granted_acts),
        "dialect": dialect,
        "allows": allows,
    }
    # Some CLIs put variables into the text of a hook before a shell sees it: no quotes may be in this word.
    word = base64.urlsafe_b64encode(json.dumps(order).encode()).decode()
    return (*own_program("claudomator_py.agents.fence_hook.main"), word)


def hook_line(request: LaunchRequest, *, dialect: Dialect = "claude", allows: bool = False) -> str:
    """Return the same as shell text. CLIs go on where a hook fails with any status but 2, so every failure is one."""
    return f"{shlex.join(hook_argv(request, dialect=dialect, allows=allows))} || {{ {_BROKEN}; }}"


def beyond_reach(text: str) -> str | None:
    """Return the digest of the call that the text says was beyond the run's reach; None: it says no such thing."""
    found = _MARK.search(text)
    return None if found is None else found[1]


def fenced_call(tool: str, given: Mapping[str, Any], digest: str | None) -> Denied | None:
    """Return the call that the fence denied, with what allows exactly it. digest: that the fence named; None, or that
    of another call, which a tool may have printed: it was not the fence.
    """
    subject = subject_of(given)
    if digest != digest_of(tool, subject):
        return None
    shown = " ".join(subject.split())
    shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[: _MAX_SHOWN - 3]}..."
    return Denied(tool=tool, input=shown, rule=rule_for(tool, given))
