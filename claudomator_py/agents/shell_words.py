"""A command as its shell sees it. The standard library alone: programs that runs start need it too."""

import shlex

_OPERATORS = set("();<>|&")


def is_simple(command: str) -> bool:
    """Return whether it is one command, without redirections or substitutions.

    A command line that holds several is judged command by command, and a rule for the whole allows none of them.
    """
    if any(mark in command for mark in ("`", "$(", "\n", "\r")):
        return False
    try:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
    except ValueError:
        return False
    return not any(word and set(word) <= _OPERATORS for word in words)
