"""The command line: one module per group of commands. Data goes to stdout, messages to stderr."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes; scripts rely on them."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_RUNNING = 3
    NOT_AUTHORISED = 4
    RUN_FAILED = 5
    TIMED_OUT = 124
    INTERRUPTED = 130
    BROKEN_PIPE = 141
