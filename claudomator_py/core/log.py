"""How the daemon's log is written, and how much of it."""

from enum import StrEnum


class LogFormat(StrEnum):
    """Lines for people, or one JSON object a line."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The least important lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
