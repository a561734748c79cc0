"""Following an event stream of the daemon: over lost connections and restarts of it, without a gap or a repetition."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from httpx_sse import EventSource, ServerSentEvent

from claudomator_py.client.errors import DaemonNotRunning, ServiceProblem

PATIENCE_S = 60.0
"""How long a daemon that was there before is waited for."""
SILENCE_S = 45.0
"""After so much silence a stream is taken for lost: the daemon says something every 15 seconds."""

_FIRST_PAUSE_S = 0.25
_MAX_PAUSE_S = 5.0
_UNAVAILABLE = 503

Connect = Callable[[str | None], AbstractContextManager[EventSource | None]]
"""Opens the stream behind the event of that id; None: where it begins. What it gives is None when nothing is left."""


def follow(connect: Connect, patience_s: float = PATIENCE_S) -> Iterator[ServerSentEvent]:
    """The events of the stream, without those that have no data. Ends when the daemon says that nothing is left.

    Raises what connect raises: at once when it never worked, and if the daemon is not back within patience_s seconds.
    """
    last_id: str | None = None
    pause_s = _FIRST_PAUSE_S
    give_up: float | None = None
    while True:
        try:
            with connect(last_id) as source:
                if source is None:
                    return
                for event in source.iter_sse():
                    last_id = event.id or last_id
                    pause_s, give_up = _FIRST_PAUSE_S, None
                    if event.data:
                        yield event
        except (DaemonNotRunning, ServiceProblem) as error:
            passing = isinstance(error, DaemonNotRunning) or error.details.status == _UNAVAILABLE
            if last_id is None or not passing or (give_up is not None and time.monotonic() >= give_up):
                raise
        if give_up is None:
            give_up = time.monotonic() + patience_s
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)
