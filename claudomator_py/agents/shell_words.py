"""Parse a command as a shell does. Standard library only, as programs within runs need it too."""

import shlex

_OPERATORS = set("();<>|&")


def is_simple(command: str) -> bool:
    """Return whether it is a single command, without redirections or substitutions.

    A CLI judges several commands in a line one by one, so a rule for the whole line would allow none of them.
    """
    if any(mark in command for mark in ("`", "$(", "\n", "\r")):
        return False
    try:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
    except ValueError:
        return False
    return not any(word and set(word) <= _OPERATORS for word in words)
