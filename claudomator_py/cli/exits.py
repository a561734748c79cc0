"""Exit codes; scripts rely on them."""

from typing import Final

OK: Final = 0
FAILURE: Final = 1
USAGE: Final = 2
NOT_RUNNING: Final = 3
NOT_AUTHORISED: Final = 4
RUN_FAILED: Final = 5
TIMED_OUT: Final = 124
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
