"""What an agent writes down about its session while it works, one JSON object a line. It contains what the agent does
not say over the protocol: why a turn failed, that a request is sent again, and tokens."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from glob import escape, glob
from typing import Any, Final

from claudomator_py.json_fields import Event, count_of

IN_A_PATH: Final = re.compile(r"\w[\w.-]*")
"""Session ids that can be part of a path."""
_MAX_READ: Final = 1 << 24


class Journal:
    """The lines of one turn. where: the profile's ``journal``. session: the session's id."""

    def __init__(self, where: Mapping[str, Any], session: str) -> None:
        self._where = where
        self._session = session
        self._taken = {path: os.stat(path).st_size for path in self._paths("lines")}  # noqa: PTH116 - imports delay runs
        self.failed: Any = None
        """The error with which the last request failed: a text or an object; None: it was answered."""
        self.retry: tuple[str, Event] | None = None
        """Why the last request is sent again, and the line that says so."""
        self.stop: str | None = None
        """Why the model's last answer ended, as a stop reason of ACP; None: the turn goes on."""
        self.text: str | None = None
        """The model's last answer, without what failed attempts at it had said; None: not written."""
        self._pieces: list[str] = []
        self.counts: tuple[int, int] | None = None
        """Input and output tokens; None: none were counted."""

    @property
    def is_over(self) -> bool:
        """Whether the end of the turn was written."""
        return self.failed is not None or self.stop is not None

    def read(self) -> None:
        """Take the lines written since the last call."""
        main = self._paths("main")
        for path in self._paths("lines"):
            for line in self._new_lines(path):
                self.take(line, of_a_helper=path not in main)

    def take(self, line: Event, *, of_a_helper: bool = False) -> None:
        """Take a line. of_a_helper: whether a subagent wrote it, of which only the tokens count."""
        self._count(line)
        if not of_a_helper:
            self._take(line)

    def _paths(self, key: str) -> list[str]:
        if not IN_A_PATH.fullmatch(self._session):
            return []
        folder = os.environ.get(self._where["variable"]) or os.path.expanduser(f"~/{self._where['folder']}")  # noqa: PTH111
        return sorted(glob(f"{escape(folder)}/{self._where[key].format(session=self._session)}"))  # noqa: PTH207

    def _new_lines(self, path: str) -> Iterator[Event]:
        taken = self._taken.get(path, 0)
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                file.seek(taken)
                data = file.read(_MAX_READ)
        except OSError:
            return
        whole = data.rfind(b"\n") + 1 or (len(data) if len(data) == _MAX_READ else 0)
        self._taken[path] = taken + whole
        for text in data[:whole].splitlines():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, Mapping):
                yield line

    def _count(self, line: Event) -> None:
        used, made = ([count_at(line, path) for path in self._places(line, key)] for key in ("input", "output"))
        if any(count is not None for count in (*used, *made)):
            before = self.counts or (0, 0)
            self.counts = (before[0] + sum(filter(None, used)), before[1] + sum(filter(None, made)))

    def _take(self, line: Event) -> None:
        for path in self._places(line, "text"):
            self._pieces += [piece] if isinstance(piece := value_at(line, path), str) else []
        for path in self._places(line, "stop"):
            stop = value_at(line, path)
            if isinstance(stop, str):
                self.stop, self.failed, self.retry = self._where["stops"].get(stop), None, None
                self.text = "".join(self._pieces) if self.stop is not None and self._pieces else None
                self._pieces = []
        for path in self._places(line, "error"):
            self.failed = value_at(line, path) or self.failed
        for path in self._places(line, "retry"):
            why = value_at(line, path)
            self.retry = (why, line) if isinstance(why, str) else self.retry

    def _places(self, line: Event, key: str) -> list[str]:
        """Return the paths of that name in a line of this type."""
        places = (place.split() for place in self._where.get(key, ()))
        return [path for kind, path in places if kind == line.get("type")]


def value_at(document: Any, path: str) -> Any:
    """Return the value at a dotted path of a document; None: there is none."""
    for key in path.split("."):
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def count_at(document: Any, path: str) -> int | None:
    """Return the count at a dotted path of a document."""
    return count_of({"": value_at(document, path)}, "")
