"""The daemon's log on stderr: lines for people or JSON for programs, with journald priorities.

An event has a stable name and fields; ``task``, ``task_id``, ``run_id``, ``agent`` and ``reason`` mean the same in
every event. Records that other libraries log through the standard module are formatted alike.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, TextIO

from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.units import format_passing_instant
from claudomator_py.schema.settings import Log, LogFormat
from claudomator_py.texts import plain
from claudomator_py.values import regex

JOURNAL_VARIABLE = "JOURNAL_STREAM"
CHATTY = ("alembic", "uvicorn", "httpx", "httpcore")
"""Libraries that log every step; only their warnings are shown."""

Clean = Callable[[str], str]
Event = dict[str, object]

_PRIORITIES = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}
_LEFTOVERS = frozenset({"message", "asctime", "taskName", "color_message"})
_NO_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | _LEFTOVERS
"""Attributes of every record, and those that other handlers and libraries leave on it."""
_BARE = regex(r"[^\s\"=\\]+")
_PLAIN = regex(r"[!#-<>-\[\]-~]+")
"""Characters that need no quotes and look the same in every terminal."""


class FieldLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose keyword arguments become fields. extra: fields of every event."""

    extra: Mapping[str, object]

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Return the message and the arguments for the logger proper."""
        problem = kwargs.pop("exc_info", None)
        return msg, {"exc_info": problem, "extra": {**self.extra, **kwargs}}

    def bind(self, **fields: object) -> "FieldLogger":
        """Return a logger with these fields in addition."""
        return FieldLogger(self.logger, {**self.extra, **fields})


def get_logger(name: str) -> FieldLogger:
    """Return the logger of that name."""
    return FieldLogger(logging.getLogger(name), {})


class _DaemonHandler(logging.StreamHandler[TextIO]):
    """The handler installed by ``set_up``. clean: applied to each text before it is written."""

    clean: Clean = staticmethod(Redactor().redact)

    def format(self, record: logging.LogRecord) -> str:
        return self.clean(super().format(record))


def set_up(log: Log, *, stream: TextIO | None = None, environ: Mapping[str, str] = os.environ) -> None:
    """Log to the stream (default stderr) from now on; may be called again.

    Anything that looks like a secret is redacted; see ``clean_with`` for known secrets.
    """
    target = stream or sys.stderr
    handler = _DaemonHandler(target)
    handler.setFormatter(_Formatter(log.format, journal=is_journal(target, environ)))
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known, _DaemonHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    # Where a line was written from, and by which thread, no line says.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    level = logging.getLevelNamesMapping()[log.level.upper()]
    root.setLevel(level)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(max(level, logging.WARNING))


def clean_with(clean: Clean) -> None:
    """Remove secrets from everything logged from now on. clean: must be thread-safe and must not log."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _DaemonHandler):
            handler.clean = clean


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether the stream is the journal itself, whose device and inode systemd puts into the environment."""
    device, _, inode = environ.get(JOURNAL_VARIABLE, "").partition(":")
    try:
        info = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return (device, inode) == (str(info.st_dev), str(info.st_ino))


class _Formatter(logging.Formatter):
    """Fields in order: time, level, logger, event, the event's own fields, exception."""

    def __init__(self, form: LogFormat, *, journal: bool) -> None:
        super().__init__()
        self._render = _as_json if form is LogFormat.JSON else _as_text
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        event: Event = {
            "ts": format_passing_instant(int(record.created * 1000)),
            "level": level,
            "logger": record.name,
            "event": record.getMessage(),
            **{name: value for name, value in record.__dict__.items() if name not in _NO_FIELDS},
        }
        if record.exc_info and record.exc_info[0] is not None:
            event["exception"] = self.formatException(record.exc_info)
        text = self._render(event, journal=self._journal)
        if not self._journal:
            return text
        # The journal stores each line as an entry of its own.
        return "\n".join(f"<{_PRIORITIES.get(level, 6)}>{line}" for line in text.split("\n"))


def _as_json(event: Event, *, journal: bool) -> str:
    del journal  # programs that read it expect the same fields everywhere
    return json.dumps(event, default=str)


def _as_text(event: Event, *, journal: bool) -> str:
    """One line of text, without fields that have no value. Control characters written by agents never reach the
    terminal; the journal adds its own timestamp."""
    words = [] if journal else [str(event["ts"])]
    words += [f"{str(event['level']).upper():<7}", f"{event['logger']}:", _line(str(event["event"]))]
    trace, plainly = event.get("exception"), _PLAIN.fullmatch
    for key, value in event.items():
        if key not in _PLACED and value is not None:
            words.append(f"{key}={value if type(value) is str and plainly(value) else _value(value)}")
    return " ".join(words) + (f"\n{plain(str(trace))}" if trace else "")


_PLACED = frozenset(("ts", "level", "logger", "event", "exception"))


def _line(text: str) -> str:
    return plain(text).replace("\n", "\\n")


def _value(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    if _PLAIN.fullmatch(text):
        return text
    text = _line(text)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
