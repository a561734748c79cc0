"""Claude Code's permission rules: the one that allows a single call, as ``--allowedTools`` takes it."""

import re
from urllib.parse import urlsplit

from claudomator_py.agents.jsonlines import Event, text_of
from claudomator_py.agents.shell_words import is_simple

# One rule covers all tools that change files, and one all that read them.
_FILES = {
    **dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit", "Write"), "Edit"),
    **dict.fromkeys(("Glob", "Grep", "Read"), "Read"),
}
# A star stands for anything in a rule, and in a path so do these.
_PATTERN = re.compile(r"[*?\[\]!()\\]")


def rule_for(tool: str, given: Event) -> str | None:
    """Return the rule; None where it would allow more than the call."""
    if tool == "Bash":
        command = text_of(given, "command")
        narrow = command is not None and "*" not in command and is_simple(command)
        return f"Bash({command})" if narrow else None
    if tool in _FILES:
        path = text_of(given, "file_path") or text_of(given, "notebook_path") or text_of(given, "path") or ""
        # Rules begin at the root with a second slash.
        return f"{_FILES[tool]}(/{path})" if path.startswith("/") and not _PATTERN.search(path) else None
    if tool == "WebFetch":
        try:
            host = urlsplit(text_of(given, "url") or "").hostname
        except ValueError:
            host = None
        return f"WebFetch(domain:{host})" if host else None
    return tool if re.fullmatch(r"[A-Za-z_][\w-]*", tool) else None
