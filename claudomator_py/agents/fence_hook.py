"""The fence of a run: judge one tool call as a hook of an agent's CLI, the call on standard input, the verdict on
standard output.

It uses the standard library alone, so that it starts fast and isolated. It fails closed: a call that it cannot judge is
denied.
"""

import base64
import json
import os
import stat
import sys
from collections.abc import Mapping
from typing import Any, Final

from claudomator_py.acts import Reach
from claudomator_py.acts.pattern import Place
from claudomator_py.acts.tool_calls import BeyondReach, exceeding

MAX_FILE: Final = 256 * 1024
"""Bytes read of a script or recipe."""
MAX_FILES: Final = 200
PROJECTS: Final = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR")
"""Variables with the folder in which the CLI was started; if none is set, it is the call's own folder."""
FOLDERS: Final = ("workdir", "dir_path", "directory", "cwd")
"""Parameters of shell tools that name the command's folder."""
OWN: Final = "CLAUDOMATOR_"
"""Prefix of variables that differ from run to run. They are not expanded, so a call means the same in every run."""
BROKEN: Final = "Claudomator's fence could not judge this call, so it was denied."


def main() -> int:
    """Judge the call by the order in ``sys.argv[1]``, see ``agents.fence``. Exit code 0: the verdict is printed."""
    try:
        order = json.loads(base64.urlsafe_b64decode(sys.argv[1]))
        event = json.loads(sys.stdin.buffer.read())
        verdict, granted = judge(order, event)
        print(json.dumps(_response(order, verdict, granted=granted)))  # noqa: T201 - that is the protocol
    except Exception as error:
        print(f"{BROKEN} ({type(error).__name__}: {error})", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def judge(order: Mapping[str, Any], event: Mapping[str, Any]) -> tuple[BeyondReach | None, bool]:
    """Return how the call goes too far, and whether a person has granted it. A malformed event raises any exception."""
    tool, given = str(event["tool_name"]), event.get("tool_input")
    given = given if isinstance(given, dict) else {"input": given}
    folder = str(event["cwd"])
    within = next((given[name] for name in FOLDERS if isinstance(given.get(name), str)), "")
    project = next((found for name in PROJECTS if (found := os.environ.get(name))), folder)
    place = Place(
        folder=os.path.join(folder, within),  # noqa: PTH118 - lexically, as the data's rules are
        trees=(project, *order["folders"]),
        home=os.environ.get("HOME"),
        variables={name: value for name, value in os.environ.items() if not name.startswith(OWN)},
        read=_Reader().read,
    )
    far = exceeding(tool, given, Reach(order["reach"]), place, allowed=order["commands"])
    granted = far is not None and far.digest in order["granted"]
    return None if granted else far, granted


def _response(order: Mapping[str, Any], verdict: BeyondReach | None, *, granted: bool) -> dict[str, Any]:
    """Return the verdict in the CLI's form; empty: the CLI decides by itself."""
    reason = "" if verdict is None else _reason(verdict)
    if order["dialect"] == "plain":
        return {} if verdict is None else {"decision": "deny", "reason": reason}
    if verdict is None and not (granted and order["allows"]):
        return {}
    decision = {"permissionDecision": "allow" if verdict is None else "deny"}
    why = {"permissionDecisionReason": reason or "A person has allowed this call."}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision, **why}}


def _reason(verdict: BeyondReach) -> str:
    return (
        f"This run may reach no further than `{verdict.reach}`, and this call needs `{verdict.needs}`: {verdict.does}. "
        "Nothing of the call was run. Do not look for another way: a person is asked to allow exactly this call. Do "
        f"what else there is to do, then end your turn and say that this is left. [beyond reach {verdict.digest}]"
    )


class _Reader:
    """Reads scripts and recipes: only regular files, up to ``MAX_FILE`` bytes each and ``MAX_FILES`` in all."""

    def __init__(self) -> None:
        self._left = MAX_FILES

    def read(self, path: str) -> str | None:
        """Return the file's text; None: it cannot be read."""
        self._left -= 1
        if self._left < 0:
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(MAX_FILE).decode(errors="replace")
        finally:
            os.close(descriptor)
