"""The fence around a run as kinds of agents see it: the hook that their CLI is given, and what it denied."""

import base64
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from claudomator_py.acts.reach import DIGEST, Reach
from claudomator_py.acts.tool_calls import digest_of, rule_for, subject_of
from claudomator_py.agents.own_programs import own_program
from claudomator_py.agents.plaintext import readable
from claudomator_py.domain.outcome import Denied
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.values import dataclass

Dialect = Literal["claude", "plain"]
"""How a hook says its verdict: as Claude Code's hooks do, or as ``{"decision": "deny", "reason": ...}``."""
FENCE_NAME = "CLAUDOMATOR_FENCE"
"""The variable with the hook as shell text, for CLIs that find their hooks in files alone."""
HOOK_SECONDS = 600
"""How long a CLI is to wait for the hook: whoever waits no longer lets the call through."""
_MAX_SHOWN = 4_000
_MARK = re.compile(
    rf"this call needs `\w+`: (.*?)\. Nothing of the call was run\..*?\[beyond reach ({DIGEST})\]", re.DOTALL
)
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
