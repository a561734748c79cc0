"""Any program as an agent: what everybody may know of it."""

from typing import Final

from claudomator_py.domain.kind import KindInfo, Reports

_SHELLS: Final = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_INTERPRETERS: Final = _SHELLS | {"node", "perl", "php", "psql", "python", "python3", "ruby", "sqlite3"}
"""What does as its standard input says where no argument names a script."""
_AGENTS: Final = frozenset(
    {"aider", "amp", "claude", "codex", "copilot", "crush", "droid", "gemini", "goose", "opencode", "qwen"}
)


def _reads_task(command: tuple[str, ...]) -> bool:
    """Return whether a program does what a task's text says, as far as its command line shows. command: argv."""
    program = command[0].rpartition("/")[2] if command else ""
    if program == "env":
        return _reads_task(tuple(word for word in command[1:] if "=" not in word and not word.startswith("-")))
    by_stdin = program in _INTERPRETERS and all(word in ("-", "-s") for word in command[1:])
    return by_stdin or program in _AGENTS or any("{prompt_file}" in word for word in command)


INFO = KindInfo(
    name="command",
    has_account=False,
    asks_model=False,
    reads_task=_reads_task,
    reports=Reports.NOTHING,
    plain_output=True,
)
